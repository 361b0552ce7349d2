"""Blocks on the GPU, by what vLLM's pool does: where they lie, why they go, and what that costs the next one who asks."""

from typing import Any

from kvtrail_agent.attach.guard import Guard
from kvtrail_agent.attach.vllm_pool import watch_pool
from kvtrail_agent.importers.hashes import block_of
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BlockCreated, Evicted, PrefillChunk, PrefixHit, PrefixMiss, TierCleared
from kvtrail_schema.reasons import EvictReason, MissReason, PrefillReason

from tests.attach.vllm.things import BLOCK, KEY, Request, Scheduler


class Block:
    """A block of vLLM's pool."""

    def __init__(self, block_id: int) -> None:
        self.block_id = block_id
        self.is_null = False


class Pool:
    """The three methods of vLLM's `BlockPool` that change what can be found."""

    def __init__(self) -> None:
        self.cached: dict[int, bytes] = {}

    def cache_full_blocks(
        self, request: Request, blocks: list[Block], num_cached_blocks: int, num_full_blocks: int, **_: int
    ) -> None:
        """Enter the blocks of a request."""
        for place in range(num_cached_blocks, num_full_blocks):
            self.cached[blocks[place].block_id] = request.block_hashes[place]

    def _maybe_evict_cached_block(self, block: Block) -> bool:
        """Take a block out."""
        return self.cached.pop(block.block_id, None) is not None

    def evict_blocks(self, block_ids: set[int]) -> None:
        """Take bad blocks out."""
        for block_id in block_ids:
            self._maybe_evict_cached_block(Block(block_id))

    def reset_prefix_cache(self) -> bool:
        """Take all out."""
        self.cached.clear()
        return True

    def take(self, block: Block) -> None:
        """Hand a block out again."""
        self._maybe_evict_cached_block(block)


def watched_pool(scheduler: Scheduler, guard: Guard | None = None) -> Pool:
    """A pool whose doings are recorded."""
    pool = Pool()

    def created(request: Request, blocks: list[Any], first: int, last: int, size: int) -> None:
        scheduler.chains.entered(scheduler.watch.requests[request.request_id], blocks, first, last, size)

    watch_pool(pool, scheduler.residents, guard or Guard("test"), created)
    return pool


def enter(pool: Pool, request: Request, slots: list[int], first: int = 0) -> None:
    """Enter the blocks of a request from one on, as vLLM calls it: by name."""
    blocks = [Block(slot) for slot in slots]
    pool.cache_full_blocks(
        request=request,
        blocks=blocks,
        num_cached_blocks=first,
        num_full_blocks=len(slots),
        block_size=BLOCK,
        kv_cache_group_id=0,
    )


def test_blocks_are_created_where_they_lie() -> None:
    """Each block that can be found has its place, its request, its parent and its tokens, under the id that a relay gives."""
    scheduler, request = Scheduler(), Request("a", 12)
    pool = watched_pool(scheduler)
    scheduler.comes(request, 1)
    enter(pool, request, [5, 6, 7])
    created = scheduler.emitter.of(BlockCreated)
    ids = [block_of(KEY, one) for one in request.block_hashes]

    assert [(ids[0], 5, None, 0), (ids[1], 6, ids[0], 4), (ids[2], 7, ids[1], 8)] == [
        (one.block, one.slot, one.parent, one.token_start) for one in created
    ]


def test_a_block_that_is_handed_out_again_was_evicted() -> None:
    """Only blocks that could be found are evicted; bad blocks go for another reason."""
    scheduler, request = Scheduler(), Request("a", 8)
    pool = watched_pool(scheduler)
    scheduler.comes(request, 1)
    enter(pool, request, [5, 6])
    pool.take(Block(5))
    pool.take(Block(9))
    pool.evict_blocks({6})

    assert [(5, EvictReason.CAPACITY), (6, EvictReason.ABORT)] == [
        (one.slot, one.reason) for one in scheduler.emitter.of(Evicted)
    ]


def test_what_was_evicted_is_missed_by_its_eviction() -> None:
    """The next who asks for it misses it, the event names the eviction, and computing it again says so."""
    scheduler, first, second = Scheduler(), Request("a", 8), Request("b", 12)
    pool = watched_pool(scheduler)
    scheduler.comes(first, 1)
    enter(pool, first, [5, 6])
    pool.take(Block(6))
    scheduler.comes(second, 10)
    scheduler.looks_up(second, 11, gpu=4)
    scheduler.gives(second, 11)
    scheduler.builds(12, new={"b": 4}, tokens={"b": 8})
    second.num_output_tokens = 1
    scheduler.ends_step(20)
    emitter = scheduler.emitter
    misses = {one.reason: one for one in emitter.of(PrefixMiss)}

    assert [Tier.GPU] == [one.tier for one in emitter.of(PrefixHit)]
    assert emitter.of(Evicted)[0].id == misses[MissReason.GPU_POOL].cause
    assert misses[MissReason.NEVER_STORED].cause is None
    assert [(PrefillReason.EVICTED, 4), (PrefillReason.NEW, 4)] == [
        (one.reason, one.tokens) for one in emitter.of(PrefillChunk)
    ]


def test_blocks_that_a_load_brings_are_not_created() -> None:
    """They are entered when the room is given; that they are there is told by the load, when they are."""
    scheduler, request = Scheduler(), Request("a", 12)
    pool = watched_pool(scheduler)
    scheduler.comes(request, 1)
    scheduler.looks_up(request, 2, found=8)
    enter(pool, request, [5, 6, 7])

    assert [7] == [one.slot for one in scheduler.emitter.of(BlockCreated)]


def test_an_emptied_cache_is_told_once() -> None:
    """A reset ends every copy at once, and what was there before counts as never stored."""
    scheduler, request = Scheduler(), Request("a", 4)
    pool = watched_pool(scheduler)
    scheduler.comes(request, 1)
    enter(pool, request, [5])

    assert pool.reset_prefix_cache() is True

    pool.take(Block(5))

    assert 1 == len(scheduler.emitter.of(TierCleared))
    assert [] == scheduler.emitter.of(Evicted)


def test_a_pool_of_another_version_is_left_alone() -> None:
    """Where the methods are not there, nothing is replaced; where they take other arguments, they work and we count."""
    scheduler, guard = Scheduler(), Guard("test")
    watch_pool(object(), scheduler.residents, guard, lambda *_: None)
    pool = watched_pool(scheduler, guard)
    stranger = Request("unknown", 4)
    enter(pool, stranger, [5])

    assert {5: stranger.block_hashes[0]} == pool.cached
    assert 1 == guard.errors
