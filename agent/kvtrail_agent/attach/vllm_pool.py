"""Which blocks lie where on the GPU: what vLLM's block pool enters in its prefix cache, and what it takes out of it.

vLLM hands the pool to a connector (`bind_gpu_block_pool`). Three of its methods are called through ours from then on; each is
carried out first and looked at after. Runs on the scheduler's thread: about 1.5 µs a new block, 0.2 µs a block that is reused.
"""

from collections import OrderedDict
from typing import Any, Final, NamedTuple

from kvtrail_schema.absent import NO_U64
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, EventId, NamespaceId, RequestId
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import ClearReason, EvictReason

from kvtrail_agent.attach.guard import Guard

_MOST_REMEMBERED: Final = 1 << 17
RANK_SHIFT: Final = 48


class Run(NamedTuple):
    """Blocks of a prompt in a row, with their places; `parent` is the one before, absent at the beginning."""

    blocks: list[BlockId]
    slots: list[int]
    parent: BlockId | None
    token_start: int
    block_tokens: int


class Residents:
    """The blocks on the GPU by place, and which eviction took those that went; used by the scheduler's thread."""

    def __init__(self, emit: Emitter, rank: int, bytes_a_block: int) -> None:
        self._emit = emit
        self._bytes = bytes_a_block
        self._next_id = (rank << RANK_SHIFT) + 1
        self._places: dict[int, tuple[BlockId, NamespaceId]] = {}
        self._gone: OrderedDict[BlockId, EventId] = OrderedDict()
        self.reason = EvictReason.CAPACITY
        """Why blocks go at this moment."""

    def came(self, run: "Run", req: RequestId, ns: NamespaceId) -> None:
        """Blocks of one request, in a row, can be found from now on."""
        if run.parent is None and len(run.blocks) > 1:  # the first has no parent, and the others have: two chains to emit
            rest = Run(run.blocks[1:], run.slots[1:], run.blocks[0], run.token_start + run.block_tokens, run.block_tokens)
            self.came(run._replace(blocks=run.blocks[:1], slots=run.slots[:1]), req, ns)
            self.came(rest, req, ns)
            return
        self._emit.emit_blocks(
            Kind.BLOCK_CREATED,
            run.blocks,
            run.slots,
            tier=Tier.GPU,
            ns=ns,
            parent=NO_U64 if run.parent is None else run.parent,
            req=req,
            tokens=run.block_tokens,
            token_start=run.token_start,
            bytes=self._bytes,
        )
        self.there(run.blocks, run.slots, ns)

    def there(self, blocks: list[BlockId], slots: list[int], ns: NamespaceId) -> None:
        """Blocks lie in these places; somebody else tells how they came."""
        for block, slot in zip(blocks, slots, strict=True):
            self._places[slot] = (block, ns)
            self._gone.pop(block, None)

    def went(self, slot: int) -> None:
        """The block in a place cannot be found any more."""
        held = self._places.pop(slot, None)
        if held is None:
            return
        block, ns = held
        cause, self._next_id = EventId(self._next_id), self._next_id + 1
        self._emit.evicted(block, Tier.GPU, slot, self.reason, id=cause, bytes=self._bytes, ns=ns)  # type: ignore[arg-type] # a place
        self._gone[block] = cause
        if len(self._gone) > _MOST_REMEMBERED:
            self._gone.popitem(last=False)

    def cleared(self) -> None:
        """The whole prefix cache was emptied."""
        self._emit.tier_cleared(Tier.GPU, ClearReason.RESET)
        self._places.clear()
        self._gone.clear()

    def eviction_of(self, block: BlockId) -> EventId | None:
        """The eviction that took a block which has not come back; None where none is remembered."""
        return self._gone.get(block)


def watch_pool(pool: Any, residents: Residents, guard: Guard, created: Any) -> None:
    """Have the pool's own methods called through ours.

    `created(request, blocks, first, last, block_tokens)` is told of blocks that were entered. A pool without these methods is
    left alone, method by method.
    """
    _after(
        pool,
        "cache_full_blocks",
        lambda _result, request, blocks, first, last, size, *_: created(request, blocks, first, last, size),
        guard,
    )
    _after(pool, "reset_prefix_cache", lambda result: residents.cleared() if result else None, guard)
    _watch_evictions(pool, residents, guard)


def _after(pool: Any, name: str, step: Any, guard: Guard) -> None:
    """Call `step(result, …)` after a method of the pool; nothing happens where the pool has no such method."""
    original = getattr(pool, name, None)
    if original is None:
        return

    def called(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        guard.run(_positional, step, result, args, kwargs)
        return result

    setattr(pool, name, called)


_ORDER: Final = ("request", "blocks", "num_cached_blocks", "num_full_blocks", "block_size", "kv_cache_group_id")


def _positional(step: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Named arguments in the order in which vLLM declares them."""
    step(result, *args, *(kwargs[name] for name in _ORDER if name in kwargs))


def _watch_evictions(pool: Any, residents: Residents, guard: Guard) -> None:
    """A block is handed out again, or found to be bad."""
    original = getattr(pool, "_maybe_evict_cached_block", None)
    if original is None:
        return

    def evict(block: Any) -> Any:
        result = original(block)
        if result:
            guard.run(lambda: residents.went(block.block_id))
        return result

    pool._maybe_evict_cached_block = evict  # noqa: SLF001 - vLLM has no public name for it
    by_id = getattr(pool, "evict_blocks", None)
    if by_id is None:
        return

    def evict_bad(*args: Any, **kwargs: Any) -> Any:
        residents.reason = EvictReason.ABORT
        try:
            return by_id(*args, **kwargs)
        finally:
            residents.reason = EvictReason.CAPACITY

    pool.evict_blocks = evict_bad
