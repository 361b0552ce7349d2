"""What an inner connector moves, as seen from around it: loads, saves, failures, and who stood still for them."""

from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    CopyWaited,
    Error,
    LookupFinished,
    PrefillChunk,
    PrefixHit,
    RequestWaiting,
    SwapInFailed,
    SwapInLoaded,
    SwapInQueued,
    SwapOutQueued,
    SwapOutWritten,
)
from kvtrail_schema.reasons import PrefillReason, WaitReason

from tests.attach.vllm.test_requests import parts, prefilled
from tests.attach.vllm.things import BLOCK_BYTES, MS, Request, Scheduler, times


def loading(scheduler: Scheduler, request: Request, found: int = 8, *, is_async: bool = False) -> None:
    """A request that came at 0, was looked up until 2, and is given blocks of which some are to be loaded."""
    scheduler.comes(request, 0)
    scheduler.looks_up(request, 2, found=found, is_async=is_async)
    scheduler.gives(request, 2, [7, 8, 9], found)


def test_a_load_within_a_step_is_storage_time() -> None:
    """Blocks that a step loads before it computes: queued, in service, loaded; the ledger shows the storage, not compute."""
    scheduler, request = Scheduler(), Request("a", 12)
    loading(scheduler, request)
    scheduler.builds(3, new={"a": 8}, tokens={"a": 4})
    request.num_output_tokens = 1
    scheduler.hears(19, times(load=(5, 15)))
    scheduler.ends_step(20)
    emitter = scheduler.emitter
    loaded = emitter.of(SwapInLoaded)

    assert [(Tier.NVME, Tier.GPU, 7), (Tier.NVME, Tier.GPU, 8)] == [
        (one.src, one.dst, one.slot) for one in emitter.of(SwapInQueued)
    ]
    assert [(3 * MS, 10 * MS), (None, None)] == [(one.queue_ns, one.io_ns) for one in loaded]
    assert [BLOCK_BYTES] * 2 == [one.bytes for one in loaded]
    assert [8] == [one.tokens_nvme for one in emitter.of(LookupFinished)]
    assert [Tier.NVME] * 2 == [one.tier for one in emitter.of(PrefixHit)]
    assert {"storage_read": 10, "new_prefill": 7} == {
        name: ms for name, ms in parts(scheduler, request).items() if name in {"storage_read", "new_prefill"}
    }


def test_neighbours_stand_still_for_a_load() -> None:
    """Whoever shares the step waited for the load, too, and the event names whose it was."""
    scheduler, neighbour, request = Scheduler(), Request("n", 4, first_hash=90), Request("a", 12)
    prefilled(scheduler, neighbour, at=-20)
    loading(scheduler, request)
    scheduler.builds(3, new={"a": 8}, again={"n": 5}, tokens={"a": 4, "n": 1})
    scheduler.hears(19, times(load=(5, 15)))
    waits = scheduler.emitter.of(CopyWaited)

    assert 2 == len(waits)
    assert {10 * MS} == {one.wait_ns for one in waits}
    assert 1 == len({one.op for one in waits})


def test_waits_of_layers_count_once_each() -> None:
    """A load that layers wait for ends with the last of them; what they waited in all is told."""
    scheduler, request = Scheduler(), Request("a", 12)
    loading(scheduler, request)
    scheduler.builds(3, new={"a": 8}, tokens={"a": 4})
    scheduler.hears(19, times(load=(5, 6), layers=(4, 14)))

    assert [(1 * MS, 6 * MS), (4 * MS, 14 * MS)] == [(one.wait_ns, one.t_ns) for one in scheduler.emitter.of(CopyWaited)]
    assert [14 * MS] * 2 == [one.t_ns for one in scheduler.emitter.of(SwapInLoaded)]


def test_a_load_that_goes_on_by_itself_is_waited_for() -> None:
    """An asynchronous load: the request waits for it by name, it ends when a worker has it, the rest is nobody looking."""
    scheduler, request = Scheduler(), Request("a", 12)
    loading(scheduler, request, is_async=True)
    scheduler.builds(3)
    scheduler.hears(6, times(load=(4, 5)))
    scheduler.ends_step(6)
    scheduler.builds(7)
    scheduler.hears(25, times(asked=24), received={"a"})
    scheduler.ends_step(25)
    scheduler.builds(30, new={"a": 8}, tokens={"a": 4})
    request.num_output_tokens = 1
    scheduler.ends_step(40)

    assert [WaitReason.KV_LOAD] == [one.reason for one in scheduler.emitter.of(RequestWaiting)]
    assert [24 * MS] * 2 == [one.t_ns for one in scheduler.emitter.of(SwapInLoaded)]
    assert {"lookup": 1, "tier_queue": 2, "storage_read": 20, "sched_wait.deferred": 6, "new_prefill": 10} == {
        name: ms for name, ms in parts(scheduler, request).items() if name != "sched_wait.capacity"
    }


def test_blocks_that_did_not_arrive_are_failures() -> None:
    """Bad blocks of a load fail, the others are loaded; what is computed in their place says why."""
    scheduler, request = Scheduler(), Request("a", 12)
    loading(scheduler, request)
    scheduler.builds(3, new={"a": 8}, tokens={"a": 4})
    scheduler.hears(19, times(load=(5, 15)), bad={8})
    scheduler.ends_step(20)
    scheduler.builds(21, again={"a": 4}, tokens={"a": 8})
    scheduler.ends_step(30)
    emitter = scheduler.emitter

    assert 1 == len(emitter.of(SwapInFailed)) == len(emitter.of(SwapInLoaded)) == len(emitter.of(Error))
    assert PrefillReason.LOAD_FAILED == emitter.of(PrefillChunk)[-1].reason


def test_a_transfer_that_failed_whole_has_no_block() -> None:
    """Where the request is named whose asynchronous load failed, none of its blocks is said to be there."""
    scheduler, request = Scheduler(), Request("a", 12)
    loading(scheduler, request, is_async=True)
    scheduler.builds(3)
    scheduler.hears(6, times(load=(4, 5), asked=6), received={"a"}, failed={"a"})

    assert 2 == len(scheduler.emitter.of(SwapInFailed))
    assert [] == scheduler.emitter.of(SwapInLoaded)


def test_saving_at_once_is_an_op_that_its_step_waits_for() -> None:
    """Pieces of saving between layers are one write, laid up to the end of the last."""
    scheduler, request = Scheduler(), Request("a", 8)
    scheduler.comes(request, 0)
    scheduler.builds(1, new={"a": 0}, tokens={"a": 8})
    scheduler.hears(18, times(save=(6, 16)))

    assert [10 * MS] == [one.t_ns for one in scheduler.emitter.of(SwapOutQueued)]
    assert [(16 * MS, 6 * MS)] == [(one.t_ns, one.io_ns) for one in scheduler.emitter.of(SwapOutWritten)]
    assert [(6 * MS, 1)] == [(one.wait_ns, one.op) for one in scheduler.emitter.of(CopyWaited)]


def test_saving_in_the_background_claims_no_write() -> None:
    """A connector that only hands its saves over is not said to have written; that a step stood still is said."""
    scheduler, request = Scheduler(saves_at_once=False), Request("a", 8)
    scheduler.comes(request, 0)
    scheduler.builds(1, new={"a": 0}, tokens={"a": 8})
    scheduler.hears(18, times(save=(6, 16)))

    assert [] == scheduler.emitter.of(SwapOutWritten)
    assert [None] == [one.op for one in scheduler.emitter.of(CopyWaited)]


def test_blocks_that_stay_for_a_transfer_are_an_op() -> None:
    """A request whose blocks are kept when it ends: a write from then until a worker says that they are sent."""
    scheduler, request = Scheduler(), Request("a", 8)
    prefilled(scheduler, request)
    scheduler.ends(request, 30, slots=2, keeps=True)
    scheduler.hears(50, times(asked=49), sent={"a"})

    assert [30 * MS] == [one.t_ns for one in scheduler.emitter.of(SwapOutQueued)]
    assert [(49 * MS, 2 * BLOCK_BYTES)] == [(one.t_ns, one.bytes) for one in scheduler.emitter.of(SwapOutWritten)]


def test_calls_that_do_nothing_are_no_waits() -> None:
    """What the calls of an idle connector cost is not told as a wait or a write."""
    scheduler, request = Scheduler(), Request("a", 8)
    scheduler.comes(request, 0)
    scheduler.builds(1, new={"a": 0}, tokens={"a": 8})
    scheduler.hears(18, times(load=(5, 5))._replace(save_ns=9_000, save_end_ns=16 * MS))

    assert [] == scheduler.emitter.of(CopyWaited)
    assert [] == scheduler.emitter.of(SwapOutWritten)


def test_an_inner_connector_that_does_not_know_yet_is_asked_again() -> None:
    """A look-up without an answer is told as what it took, and blames nothing on room."""
    scheduler, request = Scheduler(), Request("a", 12)
    scheduler.comes(request, 0)
    scheduler.looks_up(request, 2, found=None)
    scheduler.builds(3)
    scheduler.looks_up(request, 5, found=8)

    assert [None, 8] == [one.tokens_nvme for one in scheduler.emitter.of(LookupFinished)]
    assert [] == scheduler.emitter.of(RequestWaiting)
