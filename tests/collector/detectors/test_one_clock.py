"""Moments of two processes are compared only where their clocks are one, or by the time of day."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import duckdb
import msgspec
import pytest
from kvtrail_collector.detectors.judge import answer_of
from kvtrail_collector.detectors.one_clock import clocks_of, wall_offset_ns
from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.diagnose_file import diagnose_lines, events_of_lines, scene_of
from kvtrail_schema import events as ev
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import BlockId, Epoch, EventId, Rank, RequestId, Slot, Stream
from kvtrail_schema.jsonl import write_line
from kvtrail_schema.reasons import AgentReason, InvalidateReason

SECOND: Final = 1_000_000_000
DAY: Final = 86_400 * SECOND
NOON: Final = 1_790_000_000 * SECOND
BLOCK, SLOT = BlockId(11), Slot(1)


class Process(NamedTuple):
    """Its stream, the time of day at which its host started, and what it told."""

    stream: Stream
    host_started_ns: int
    events: Sequence[Event]


def process(rank: int, epoch: int, host_started_ns: int, *events: Event) -> Process:
    """A process of one engine; events have the time of day, and are told by the clock of its host."""
    return Process(Stream("one", Epoch(epoch), Rank(rank)), host_started_ns, events)


def rows_of(code: str, *processes: Process) -> int:
    """How many rows a rule finds when a store knows the time of day of each process."""
    rule = next(rule for rule in RULES if rule.code == code)
    lines = [
        write_line(one.stream, msgspec.structs.replace(event, seq=seq, t_ns=event.t_ns - one.host_started_ns))
        for one in processes
        for seq, event in enumerate(one.events, 1)
    ]
    held = events_of_lines(lines)
    started = {one.stream: one.host_started_ns for one in processes}
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            "CREATE TABLE stream_marks (stream_id INTEGER, monotonic_ns BIGINT, wall_ns BIGINT, error_ns BIGINT)"
        )
        for number, stream in enumerate(held.streams):
            connection.execute("INSERT INTO stream_marks VALUES (?, 5, ?, 9)", [number, started[stream] + 5])
        return len(answer_of(rule, scene_of(connection, held), {}))


def beats(first_s: int, last_s: int) -> list[Event]:
    """A heartbeat a second, from a time after noon to another."""
    return [
        ev.AgentHeartbeat(t_ns=NOON + at * SECOND, produced=1, reason=AgentReason.RECORDER) for at in range(first_s, last_s + 1)
    ]


@pytest.mark.parametrize(
    ("other_host", "until_s", "found"),
    [
        (NOON - DAY, 25, 1),
        (NOON - DAY, 35, 0),
        (NOON - 30 * DAY, 60, 0),
        (NOON - 30 * DAY, 5, 1),
        (NOON - DAY - 40 * SECOND, 60, 0),
    ],
    ids=["silent", "not for long", "older host", "silent on an older host", "host started just before"],
)
def test_who_is_dead(other_host: int, until_s: int, found: int) -> None:
    """Dead is who was not heard for half a minute while another rank was; of another host by the time of day, and longer."""
    lives = process(0, 1, NOON - DAY, *beats(0, 100 if until_s == 5 else 60))

    assert found == rows_of("AGENT_DEAD", lives, process(1, 2, other_host, *beats(0, until_s)))


@pytest.mark.parametrize("again_s", [300, None])
def test_who_was_started_again_is_not_dead(again_s: int | None) -> None:
    """A process that goes down with its host is not dead once its rank is heard again, nor is the new one; else it is."""
    lives = process(1, 9, NOON - 3 * DAY, *beats(0, 320))
    old = process(0, 2, NOON - DAY, *beats(0, 50))
    new = [] if again_s is None else [process(0, 1, NOON + 100 * SECOND, *beats(again_s, 320))]

    assert (again_s is None) == rows_of("AGENT_DEAD", lives, old, *new)


def revoked_at(t_s: int) -> list[Event]:
    """A block is made, and revoked."""
    made = ev.BlockCreated(t_ns=NOON, block=BLOCK, tier=Tier.NVME, slot=SLOT)
    reason = InvalidateReason.DOCUMENT_DELETED
    return [
        made,
        ev.Invalidated(t_ns=NOON + t_s * SECOND, block=BLOCK, tier=Tier.NVME, slot=SLOT, reason=reason, cause=EventId(1)),
    ]


def read_at(t_s: int) -> Event:
    """The block is read."""
    return ev.AttentionRead(t_ns=NOON + t_s * SECOND, req=RequestId(1), block=BLOCK, tier=Tier.GPU, slot=SLOT)


@pytest.mark.parametrize(("host", "found"), [(NOON - DAY, 1), (NOON + 5 * SECOND, 0), (NOON - 9 * DAY, 0)])
def test_reads_after_a_revocation_by_another_process(host: int, found: int) -> None:
    """A process on the same host must not read what one before it revoked; of another start nothing is claimed by its clock."""
    revoked = process(0, 2, NOON - DAY, *revoked_at(10))

    assert found == rows_of("READ_AFTER_INVALIDATE", revoked, process(0, 1, host, read_at(20)))


def sampled(t_s: int, used: int, free: int) -> Event:
    """What a tier says of its room."""
    capacity = 10**12
    return ev.CapacitySampled(
        t_ns=NOON + t_s * SECOND, tier=Tier.NVME, capacity_bytes=capacity, used_bytes=used, free_bytes=free
    )


@pytest.mark.parametrize("is_reset", [True, False])
def test_what_was_forgotten_after_a_reboot(*, is_reset: bool) -> None:
    """Which run came first is known by the time of day, whatever their clocks say."""
    first, last = process(0, 2, NOON - DAY, sampled(0, 4 * 10**11, 5 * 10**11)), process(0, 1, NOON, sampled(60, 0, 5 * 10**11))
    runs = (first, last) if is_reset else (first._replace(host_started_ns=NOON), last._replace(host_started_ns=NOON - DAY))
    in_order = runs if is_reset else (runs[0]._replace(events=[sampled(90, 4 * 10**11, 5 * 10**11)]), runs[1])

    assert is_reset == rows_of("ACCOUNTING_RESET", *in_order)


def test_one_clock_without_the_time_of_day() -> None:
    """Ranks of one epoch that begin together have one clock; others may not, and nor may engines."""
    first = [Stream("one", Epoch(1), Rank(rank)) for rank in range(3)]
    later, other = Stream("one", Epoch(2), Rank(0)), Stream("two", Epoch(1), Rank(0))
    clocks = clocks_of({first[0]: 0, first[1]: 50 * SECOND, first[2]: DAY, later: 0, other: 0}, {})

    assert clocks[first[0]] == clocks[first[1]]
    assert len({clocks[first[0]], clocks[first[2]], clocks[later], clocks[other]}) == 4


def test_the_time_of_day_may_be_unknown() -> None:
    """An import that does not know the time of day says so by its error; and no reading may overflow a sum."""
    assert 7 == wall_offset_ns(Clocks(monotonic_ns=1, wall_ns=8, error_ns=3))
    assert wall_offset_ns(Clocks(monotonic_ns=1, wall_ns=8, error_ns=DAY)) is None
    assert wall_offset_ns(Clocks(monotonic_ns=1, wall_ns=2**63 - 1, error_ns=0)) is None


def test_moments_may_be_times_of_day() -> None:
    """Events whose clock counts from 1970, as imports have them, are judged as any others."""
    line = f'{{"t_ns": {NOON}, "kind": "capacity_sampled", "tier": "nvme", "capacity_bytes": 100, "used_bytes": 300}}'

    assert ["CAP_EXCEEDED"] == [verdict.code for verdict in diagnose_lines([line]).verdicts]
