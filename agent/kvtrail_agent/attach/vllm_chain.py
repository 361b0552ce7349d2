"""The blocks of one request: their ids by place in the prompt, what of them was found, and what was not, and why."""

from typing import Any

from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import MissReason

from kvtrail_agent.attach.vllm_names import Names
from kvtrail_agent.attach.vllm_pool import Residents, Run
from kvtrail_agent.attach.vllm_request import Watched


class Chains:
    """Blocks of requests by their place. `block_tokens` is a block's size, `hash_tokens` that of what vLLM hashes."""

    def __init__(self, emit: Emitter, names: Names, residents: Residents, block_tokens: int, hash_tokens: int) -> None:
        self._emit = emit
        self._names = names
        self._residents = residents
        self.block_tokens = block_tokens
        self._hash_tokens = hash_tokens

    def blocks(self, request: Any, first: int, last: int, block_tokens: int | None = None) -> list[BlockId]:
        """The ids of blocks [first, last) as far as they are full; a microsecond for each that was not seen lately."""
        step = max((block_tokens or self.block_tokens) // self._hash_tokens, 1)
        hashes = request.block_hashes
        last = min(last, len(hashes) // step)
        return [self._names.block(hashes[(place + 1) * step - 1]) for place in range(first, last)]

    def told(self, watched: Watched) -> None:
        """What a look-up found of a request that is now given its blocks, and what it did not find; once for each start."""
        found = watched.lookup
        if found is None:
            return
        gpu, outer = found.gpu_tokens // self.block_tokens, (found.gpu_tokens + found.outer_tokens) // self.block_tokens
        self._hits(watched, 0, gpu, Tier.GPU)
        self._hits(watched, gpu, outer, found.tier)
        watched.again = self._misses(watched, outer)

    def _hits(self, watched: Watched, first: int, last: int, tier: Tier) -> None:
        """Blocks that were found in a tier."""
        if blocks := self.blocks(watched.request, first, last):
            self._emit.emit_blocks(Kind.PREFIX_HIT, blocks, req=watched.req, tier=tier, tokens=self.block_tokens, ns=watched.ns)

    def _misses(self, watched: Watched, first: int) -> list[tuple[int, int]]:
        """Blocks that were not found: evicted before, by which event, or never stored since this recorder began.

        Returns the stretches of tokens that were evicted.
        """
        again, never = [], []
        for place, block in enumerate(self.blocks(watched.request, first, 1 << 30), first):
            cause = self._residents.eviction_of(block)
            if cause is None:
                never.append(block)
                continue
            self._emit.prefix_miss(watched.req, block, MissReason.GPU_POOL, self.block_tokens, cause, watched.ns)
            again.append((place * self.block_tokens, (place + 1) * self.block_tokens))
        if never:
            self._emit.emit_blocks(
                Kind.PREFIX_MISS,
                never,
                req=watched.req,
                reason=MissReason.NEVER_STORED,
                tokens=self.block_tokens,
                ns=watched.ns,
            )
        return again

    def entered(self, watched: Watched, blocks: list[Any], first: int, last: int, size: int) -> None:
        """Blocks [first, last) of a request were entered in the prefix cache; those that a load brings are told by the load."""
        ids = self.blocks(watched.request, first, last, size)
        run: list[tuple[int, BlockId, int]] = []
        for place, block in enumerate(ids, first):
            brought = watched.outer[0] <= place * size < watched.outer[1]
            if blocks[place].is_null or brought:
                self._flush(watched, run, size)
            else:
                run.append((place, block, blocks[place].block_id))
        self._flush(watched, run, size)

    def _flush(self, watched: Watched, run: list[tuple[int, BlockId, int]], size: int) -> None:
        """A run of blocks in a row."""
        if not run:
            return
        first = run[0][0]
        parents = self.blocks(watched.request, first - 1, first, size) if first else []
        ids, slots = [block for _, block, _ in run], [slot for _, _, slot in run]
        whole = Run(ids, slots, parents[0] if parents else None, first * size, size)
        self._residents.came(whole, watched.req, watched.ns)
        run.clear()
