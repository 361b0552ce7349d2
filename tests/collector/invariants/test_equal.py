"""The promise of the watch: what it finds while events come in is what the rules find in the same events, in any batches."""

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import duckdb
import msgspec
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kvtrail_collector.detectors.judge import answer_of
from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.diagnose_file import FileEvents, events_of_lines, scene_of
from kvtrail_collector.invariants.rows import NEEDED, Rows
from kvtrail_collector.invariants.silence import silent
from kvtrail_collector.invariants.stream_watch import StreamWatch
from kvtrail_schema.events import Event
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.jsonl import write_line

from tests.collector.invariants.streams import streams

SECOND_NS: Final = 1_000_000_000
EXAMPLES: Final = 500 if os.environ.get("KVTRAIL_LONG") == "1" else 6
THRESHOLDS: Final = {"ENGINE_STALL": {"silence_s": 0.01}, "AGENT_DEAD": {"silence_s": 0.01}}
SETTINGS: Final = {rule.code: rule.settings(THRESHOLDS.get(rule.code, {})) for rule in RULES}
COUNTS: Final = {
    "CAP_EXCEEDED": "samples",
    "PIN_FAILED": "failures",
    "CLOCK_STEP": "steps",
    "LEASE_EXPIRED": "refused_blocks",
    "SCHEMA_UNKNOWN": "events",
    "MALFORMED": "events",
    "HOST_TIER_TOO_BIG": "",
    "READ_AFTER_RELEASE": "reads",
    "READ_OF_CLEARED": "reads",
    "DST_CONFLICT": "conflicts",
    "REFCOUNT_NEGATIVE": "unpins_without_pin",
    "CORRUPT_BLOCK": "failures",
    "ORDER_VIOLATION": "violations",
    "ENGINE_STALL": "",
    "AGENT_DEAD": "",
}
"""What counts the occurrences in the answer of each rule; nothing where there is one a row."""
ACCOUNTING: Final = ("lookups", "samples", "steps")
ELSEWHERE: Final = {
    "read before it was loaded",
    "parts of a transfer exceed its span",
    "loaded, and computed all the same",
}
"""What is left to the rules: it takes more than a stream's own order to tell."""
Tally = dict[tuple[str, int, int | None, str], int]


def by_rules(scene: Scene) -> Tally:
    """What the rules find: how often, by code, stream, tier and what is wrong."""
    found: Tally = {}
    for rule in RULES:
        if rule.code in COUNTS or rule.code == "ACCOUNTING_INVALID":
            for row in answer_of(rule, scene, THRESHOLDS):
                what = str(row.get("what", ""))
                if what not in ELSEWHERE:
                    names = ACCOUNTING if rule.code == "ACCOUNTING_INVALID" else (COUNTS[rule.code],)
                    cases = next((int(str(row[name])) for name in names if name in row), 1)
                    _add(found, (rule.code, _stream(row["refs"]), _tier(row.get("tier")), what), cases)
                    if rule.code == "CORRUPT_BLOCK" and row["served"]:
                        _add(found, (rule.code, _stream(row["refs"]), None, "served"), 1)
    return found


def _add(found: Tally, key: tuple[str, int, int | None, str], cases: int) -> None:
    """Count. Steps of a clock are of an engine, whichever of its ranks tells of them."""
    code, stream, tier, what = key
    of_engine = (code, 0 if code == "CLOCK_STEP" else stream, tier, what)
    found[of_engine] = found.get(of_engine, 0) + cases


def _stream(refs: object) -> int:
    """The stream of the first event that a row names."""
    assert isinstance(refs, list)
    return int(refs[0]["stream"])


def _tier(cell: object) -> int | None:
    """A tier of a row."""
    return None if cell is None else int(str(cell))


def by_watch(held: FileEvents, cuts: Mapping[int, Sequence[int]], offset_ns: Mapping[Stream, int]) -> Tally:
    """What the watch finds when the rows of each stream come in these batches."""
    table = held.table.append_column("extra", pa.nulls(held.table.num_rows, pa.utf8())).select(NEEDED)
    watches = {number: StreamWatch(SETTINGS, places=1 << 12) for number in range(len(held.streams))}
    for number, watch in watches.items():
        own = table.filter(pa.array(table["stream_id"].to_numpy() == number))
        edges = sorted({0, own.num_rows, *(cut for cut in cuts.get(number, ()) if cut < own.num_rows)})
        for start, end in itertools.pairwise(edges):
            watch.look(Rows(own.slice(start, end - start)))
    found: Tally = {}
    for number, watch in watches.items():
        assert not watch.unknown() or "MALFORMED" in watch.unknown()
        for code, tier, what in watch.found():
            served = "served" in what
            cases = 1 if served else watch.found()[code, tier, what].cases
            _add(found, (code, number, None if served else tier, "served" if served else what), cases)
    hangs = silent({held.streams[number]: watch.life for number, watch in watches.items()}, offset_ns, SETTINGS)
    for stream, all_ in hangs.items():
        for one in all_:
            found[one.code, held.streams.index(stream), None, ""] = 1
    return found


class Home(NamedTuple):
    """The epoch of a rank, how much later its host's clock began, and what makes it the time of day, where that is known."""

    epoch: int
    late_s: int
    offset_s: int | None


HOMES: Final = st.builds(Home, st.integers(1, 2), st.sampled_from([0, 40, 300]), st.none() | st.sampled_from([0, 1, 30, 200]))


def held_of(ranks: Sequence[Sequence[Event]], homes: Sequence[Home]) -> FileEvents:
    """The events of some processes of one engine, which has three ranks."""
    told = list(zip(streams_of(homes), homes, ranks, strict=True))
    return events_of_lines(
        write_line(stream, msgspec.structs.replace(event, t_ns=event.t_ns + home.late_s * SECOND_NS))
        for stream, home, events in told
        for event in events
    )


def streams_of(homes: Sequence[Home]) -> list[Stream]:
    """Their names: two of one rank have different epochs."""
    return [Stream("one", Epoch(home.epoch + 2 * (place // 3)), Rank(place % 3)) for place, home in enumerate(homes)]


def write_marks(connection: duckdb.DuckDBPyConnection, held: FileEvents, offset_ns: Mapping[Stream, int]) -> None:
    """Say what the time of day was at zero of their clocks, as a store does."""
    connection.execute("CREATE TABLE stream_marks (stream_id INTEGER, monotonic_ns BIGINT, wall_ns BIGINT, error_ns BIGINT)")
    for number, stream in enumerate(held.streams):
        error_ns = 0 if stream in offset_ns else 86_400 * SECOND_NS
        connection.execute("INSERT INTO stream_marks VALUES (?, 0, ?, ?)", [number, offset_ns.get(stream, 0), error_ns])


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.lists(st.tuples(streams(), HOMES), min_size=1, max_size=6),
    st.dictionaries(st.integers(0, 5), st.lists(st.integers(1, 39), max_size=6)),
)
def test_the_watch_finds_what_the_rules_find(ranks: list[tuple[list[Event], Home]], cuts: dict[int, list[int]]) -> None:
    """Every code of the watch, every stream, every tier, and how often; one row at a time or all at once, on any clocks."""
    homes = [home for _, home in ranks]
    held = held_of([events for events, _ in ranks], homes)
    known = zip(streams_of(homes), homes, strict=True)
    offset_ns = {stream: home.offset_s * SECOND_NS for stream, home in known if home.offset_s is not None}
    with duckdb.connect(config={"threads": 1}) as connection:
        write_marks(connection, held, offset_ns)
        expected = by_rules(scene_of(connection, held))

    assert expected == by_watch(held, cuts, offset_ns)
    assert expected == by_watch(held, {number: range(40) for number in range(6)}, offset_ns)
