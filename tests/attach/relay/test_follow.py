"""Numbers of a publisher: each batch once and in order, gaps filled or told, another life seen as one."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_agent.importers.vllm_wire import Dialect
from kvtrail_agent.relay.follow import Follower, Missing, Restarted, Step
from kvtrail_agent.relay.frames import Published, read_live

from tests.attach.relay.publishers import payload, stored


def batch(seq: int, life: int = 0) -> Published:
    """The batch that a life of a publisher has under a number; its time grows with life and number."""
    message = read_live([b"kv", seq.to_bytes(8, "big"), payload([stored(seq)], ts=1e9 + life * 1e6 + seq)], Dialect.VLLM)
    assert message is not None
    return message


def told(steps: Sequence[Step]) -> list[object]:
    """Steps as they read: numbers of batches, and the rest as it is."""
    return [step.seq if isinstance(step, Published) else step for step in steps]


def followed(arriving: Sequence[Published], kept: Sequence[Published] | None = None) -> list[object]:
    """What a follower makes of arriving messages where a replay has those that are kept."""
    follower = Follower(lambda first: None if kept is None else [one for one in kept if one.seq >= first])
    return told([step for message in arriving for step in follower.take(message)])


def test_batches_in_order_go_through() -> None:
    """What comes without a gap is passed on, and nothing is asked."""
    assert [0, 1, 2] == followed([batch(0), batch(1), batch(2)])


def test_a_gap_is_filled_in_its_place() -> None:
    """What got lost on the way is replayed before what came after it."""
    assert [0, 1, 2, 3] == followed([batch(0), batch(3)], [batch(number) for number in range(5)])


def test_what_no_replay_has_is_told() -> None:
    """A publisher without a replay, or whose replay begins too late, leaves a stretch that is named."""
    assert [0, Missing(1, 2), 3] == followed([batch(0), batch(3)])
    assert [0, Missing(1, 1), 2, 3] == followed([batch(0), batch(3)], [batch(2), batch(3)])


def test_what_was_before_us_is_asked_for_and_is_no_loss() -> None:
    """A relay that comes late gets what is kept; what is kept no more was never ours."""
    assert [5, 6, 7] == followed([batch(7)], [batch(5), batch(6), batch(7)])
    assert [7] == followed([batch(7)])


def test_what_comes_twice_is_passed_on_once() -> None:
    """A replay overtakes live messages that still queue; they are not recorded again."""
    assert [0, 1, 2, 3] == followed([batch(0), batch(2), batch(1), batch(2), batch(3)], [batch(0), batch(1), batch(2)])


def test_numbers_that_begin_anew_later_are_another_life() -> None:
    """A smaller number with a later time is a restart; what the new life told before is replayed."""
    kept = [batch(number, life=1) for number in range(3)]

    assert [0, 1, Restarted(), 0] == followed([batch(0), batch(1), batch(0, life=1)])
    assert [0, 1, 2, 3, Restarted(), 0, 1, 2] == followed([*map(batch, range(4)), batch(2, life=1)], kept)


def test_a_restart_that_looks_like_a_gap_is_seen() -> None:
    """A new life that is already further than the old one had come has another batch under our last number."""
    kept = [batch(number, life=1) for number in range(6)]

    assert [0, 1, Restarted(), 0, 1, 2, 3, 4, 5] == followed([batch(0), batch(1), batch(5, life=1)], kept)


@given(st.sets(st.integers(0, 30), min_size=1), st.integers(0, 30))
def test_any_losses_that_are_kept_are_made_good(arrived: set[int], oldest: int) -> None:
    """Whatever arrives, with a replay that has all of it: every batch from the oldest kept one on, once and in order."""
    numbers = sorted(number for number in arrived if number >= oldest) or [oldest]

    assert list(range(oldest, numbers[-1] + 1)) == followed(
        [batch(number) for number in numbers], [batch(number) for number in range(oldest, 31)]
    )


@pytest.mark.parametrize("frames", [[], [b"kv"], [b"kv", b"short", b"x"], [b"kv", b"\0" * 8, b"x", b"y"]])
def test_what_is_no_message_is_none(frames: list[bytes]) -> None:
    """Frames that no publisher sends are told from those that one does."""
    assert read_live(frames, Dialect.VLLM) is None
