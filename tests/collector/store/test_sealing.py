"""Promises of sealing: events that leave the file are still seen, once; retention is told; no crash harms."""

import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from kvtrail_collector.alerts.figures import asked_figures
from kvtrail_collector.errors import StoreError, StoreUnavailable
from kvtrail_collector.loss import FRESH_NS, loss_of
from kvtrail_collector.loss_shapes import DropCount, Loss
from kvtrail_collector.metrics import Metrics
from kvtrail_collector.store import Receipt, SealPolicy, Store, part_file, seal_commit, sealer, take_touched
from kvtrail_collector.store.hot import HOT_TABLES
from kvtrail_collector.store.latencies import MEASURES, Count, Measure, count_latencies
from kvtrail_collector.store.part_file import part_name
from kvtrail_collector.store.ranges import RangeSet, SeqRange
from kvtrail_schema.events import PrefetchReady
from kvtrail_schema.identity import BlockId, PrefetchId

from tests.collector.frames import EVENTS_A_REQUEST, HEARD_NS, batch, events_batch, span

SECOND_NS = 1_000_000_000
ROWS = 40
COMMON_ROWS = ROWS - ROWS // EVENTS_A_REQUEST
"""Of the events of a request one, its arrival, has a rare column."""
EVENTS = "SELECT engine, seq, t_ns, kind, req, op, text, extra FROM events JOIN streams USING (stream_id) ORDER BY ALL"
PROJECTED = ("requests", "ops")


class HandClock:
    """A clock that stands where a test puts it."""

    def __init__(self, wall_ns: int) -> None:
        self._wall_ns = wall_ns

    def monotonic_ns(self) -> int:
        """Nothing here measures."""
        return 0

    def wall_ns(self) -> int:
        """The time of the test."""
        return self._wall_ns

    def move(self, by_ns: int) -> None:
        """Let time pass."""
        self._wall_ns += by_ns


@pytest.fixture
def clock() -> HandClock:
    """A clock long after the events of the tests."""
    return HandClock(HEARD_NS + 100 * SECOND_NS)


def policy(folder: Path, **others: int | None) -> SealPolicy:
    """Seal what is ten seconds old, in parts of `ROWS` rows, when the test says so."""
    plain = SealPolicy(folder=folder / "sealed", seal_after_ns=10 * SECOND_NS, part_rows=COMMON_ROWS, every_s=0)
    return SealPolicy(
        folder=plain.folder,
        seal_after_ns=plain.seal_after_ns,
        retention_ns=others.get("retention_ns"),
        retention_bytes=others.get("retention_bytes"),
        part_rows=plain.part_rows,
        every_s=0,
    )


def opened(folder: Path, clock: HandClock, **others: int | None) -> Store:
    """A store in a folder that seals when it is told to."""
    return Store.open(str(folder / "events.duckdb"), seal=policy(folder, **others), clock=clock)


def fill(store: Store) -> None:
    """Three parts' worth of two streams, the second one with a hole."""
    store.submit(batch(span(1, 80))).result()
    store.submit(batch([*span(1, 15), *span(21, 45)], engine="other")).result()


def everything(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """What questions see: all events and all projections."""
    with store.read() as cursor:
        events = cursor.execute(EVENTS).fetchall()
        return {"events": events} | {name: cursor.execute(f"FROM {name} ORDER BY ALL").fetchall() for name in PROJECTED}


def hot_rows(store: Store) -> int:
    """How many events are still in the file."""
    with store.read() as cursor:
        return sum(len(cursor.execute(f"FROM {table}").fetchall()) for table in HOT_TABLES)


def count_touched(store: Store) -> int:
    """How many requests are to be computed again outside ingest."""
    with store.read() as cursor:
        return take_touched(cursor, 1_000).requests.num_rows


def balance(store: Store) -> Loss:
    """The books, long after the last word."""
    return loss_of(store.accounts().values(), HEARD_NS + 1_000 * FRESH_NS)


def test_a_part_may_hold_no_request_at_all(private_dir: Path, clock: HandClock) -> None:
    """An engine that does nothing for anybody is sealed like any other, though nothing of it has what parts are sorted by."""
    idle = [PrefetchReady(seq=seq, t_ns=seq, prefetch=PrefetchId(1), block=BlockId(seq)) for seq in span(1, 80)]
    with opened(private_dir, clock) as store:
        store.submit(events_batch(idle)).result()
        store.seal_now()

        assert (0, 0, 80) == (hot_rows(store), store.sealed().failures, store.sealed().rows)


def test_sealed_events_are_seen_as_before(private_dir: Path, clock: HandClock) -> None:
    """Every question gets the same answer before and after, also from a store that was opened again, and after a rebuild."""
    with opened(private_dir, clock) as store:
        fill(store)
        before = everything(store)
        store.seal_now()

        assert (0, 3, 120) == (hot_rows(store), store.sealed().parts, store.sealed().rows)
        assert before == everything(store)
        assert balance(store).streams[0].stored == 80

        store.rebuild().result()

        assert before == everything(store)
    with opened(private_dir, clock) as store:
        assert before == everything(store)
        assert Receipt(stored=0, duplicate=80) == store.submit(batch(span(1, 80))).result()
        assert Receipt(stored=2, duplicate=1) == store.submit(batch([15, 16, 17], engine="other")).result()


def test_sealed_files_are_for_anybody_that_may_read_them(private_dir: Path, clock: HandClock) -> None:
    """Plain Parquet that names its engine, sorted, readable by its owner alone."""
    with opened(private_dir, clock) as store:
        fill(store)
        store.seal_now()
    files = sorted((private_dir / "sealed").iterdir())
    table = pq.read_table(files[0])
    seqs = [seq or 0 for seq in table["seq"].to_pylist()]

    assert [part_name(number) for number in (1, 2, 3)] == [file.name for file in files]
    assert {0o600} == {file.stat().st_mode & 0o777 for file in files}
    assert {"engine"} == set(table["engine"].to_pylist())
    assert seqs == sorted(seqs)


def test_young_events_stay(private_dir: Path, clock: HandClock) -> None:
    """What is younger than the setting stays in the file; a part that would be small waits until its rows are twice as old."""
    clock.move(-95 * SECOND_NS)
    with opened(private_dir, clock) as store:
        fill(store)
        store.seal_now()

        assert (120, 0) == (hot_rows(store), store.sealed().parts)

        store.submit(batch(span(81, 90))).result()
        clock.move(7 * SECOND_NS)
        store.seal_now()

        assert (10, 3) == (hot_rows(store), store.sealed().parts)

        clock.move(20 * SECOND_NS)
        store.seal_now()

        assert (0, 4) == (hot_rows(store), store.sealed().parts)


def test_a_time_that_cannot_be_holds_nothing_up(private_dir: Path, clock: HandClock) -> None:
    """An event of the future does not keep those before and behind it in the file for ever."""
    clock.move(-200 * SECOND_NS)
    with opened(private_dir, clock) as store:
        fill(store)
        clock.move(SECOND_NS)
        store.seal_now()

        assert store.sealed().parts == 3


def test_retention_is_told_and_forgets_what_is_gone(private_dir: Path, clock: HandClock) -> None:
    """What is too old is counted as dropped by the collector, gone from the projections, not stored again; its file goes."""
    with opened(private_dir, clock, retention_ns=50 * SECOND_NS) as store:
        fill(store)
        with store.read() as cursor:
            computed = take_touched(cursor, 1_000)
        store.run(computed.forget).result()
        store.seal_now()
        first, second = balance(store).streams

        assert (0, 80, (DropCount("collector", "retention", 80),), 0) == (
            first.stored,
            first.produced,
            first.dropped,
            first.unaccounted,
        )
        assert (second.gaps, second.unaccounted) == (((16, 20),), 5)
        assert {"events": [], "requests": [], "ops": []} == everything(store)
        assert Receipt(stored=0, duplicate=80) == store.submit(batch(span(1, 80))).result()
        assert store.sealed().expired_rows == 120
        assert count_touched(store) == 16

        store.seal_now()

        assert list((private_dir / "sealed").iterdir()) == []
    with opened(private_dir, clock) as store:
        assert balance(store).streams[0].dropped == (DropCount("collector", "retention", 80),)


def test_what_expired_is_no_drop_for_whoever_watches(private_dir: Path, clock: HandClock) -> None:
    """Metrics and alerts of dropped events stay still while retention works; what expired is counted by itself."""
    with opened(private_dir, clock, retention_ns=50 * SECOND_NS) as store:
        fill(store)
        store.seal_now()
        text = Metrics(store, clock).text().body.decode()
        heard_ns = max(account.marks.heard_wall_ns for account in store.accounts().values())
        figures = asked_figures(store.accounts().values(), {}, heard_ns).by_subject

    assert {("dropped_events", "engine"): 0.0, ("dropped_events", "other"): 0.0} == {
        key: count for key, count in figures.items() if key[0] == "dropped_events"
    }
    assert "kvtrail_events_expired_total 120.0" in text
    assert "retention" not in text.replace("Events that retention let go", "")


def test_what_requests_felt_outlives_them(private_dir: Path, clock: HandClock) -> None:
    """Histograms are of all that was ever stored, whether all or some of it expired, also after a start."""
    with opened(private_dir, clock) as store:
        fill(store)
        felt = [latencies(store, measure) for measure in MEASURES]
        clock.move(20 * SECOND_NS)
        store.seal_now()
        most = store.sealed().size_bytes - 1
    with opened(private_dir, clock, retention_bytes=most) as store:
        store.seal_now()

        assert felt == [latencies(store, measure) for measure in MEASURES]
        assert any(count.requests for count in felt[0])
        assert store.sealed().expired_rows > 0
    with opened(private_dir, clock, retention_ns=SECOND_NS) as store:
        store.seal_now()

        assert felt == [latencies(store, measure) for measure in MEASURES]
        assert everything(store)["requests"] == []


def latencies(store: Store, measure: Measure) -> list[Count]:
    """What requests felt."""
    with store.read() as cursor:
        return count_latencies(cursor, measure)


def test_retention_by_bytes_keeps_the_newest(private_dir: Path, clock: HandClock) -> None:
    """The oldest parts go until the rest fits; a request of which a part is left is computed from what is left."""
    with opened(private_dir, clock) as store:
        store.submit(batch(span(1, 124))).result()
        clock.move(20 * SECOND_NS)
        store.seal_now()
        most = store.sealed().size_bytes - 1
    with opened(private_dir, clock, retention_bytes=most) as store:
        store.seal_now()
        kept = everything(store)

        assert [event[1] for event in kept["events"]] == list(span(41, 124))

        store.rebuild().result()

        assert kept == everything(store)
        assert (84, (DropCount("collector", "retention", 40),), True) == (
            balance(store).streams[0].stored,
            balance(store).streams[0].dropped,
            balance(store).balanced,
        )


def injected(*_: object, **__: object) -> None:
    """Fail as a full disk does."""
    raise OSError(28, "injected")


@pytest.mark.parametrize("place", ["_write", "_sync_folder"])
def test_a_disk_that_fails_while_a_part_is_written(
    place: str, private_dir: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events stay in the file, no draft is left or a start removes it, and the next try seals them."""
    with opened(private_dir, clock) as store:
        fill(store)
        before = everything(store)
        with monkeypatch.context() as broken:
            broken.setattr(part_file, place, injected)
            with pytest.raises(OSError, match="injected"):
                store.seal_now()

        assert (120, before) == (hot_rows(store), everything(store))
    with opened(private_dir, clock) as store:
        assert not (private_dir / "sealed").exists() or list((private_dir / "sealed").iterdir()) == []

        store.seal_now()

        assert (3, before) == (store.sealed().parts, everything(store))


@pytest.mark.parametrize("place", ["add_part", "show_all", "forget_parts", "write_books", "_forget_keys"])
def test_a_transaction_that_fails_changes_nothing(
    place: str, private_dir: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealing, or expiry, that fails half way leaves tables, view, books and files as they were; later it goes through."""

    def fails(*_: object) -> None:
        raise duckdb.OperationalError("injected")

    with opened(private_dir, clock, retention_ns=50 * SECOND_NS) as store:
        fill(store)
        with monkeypatch.context() as broken:
            broken.setattr(seal_commit, place, fails)
            with pytest.raises(StoreError):
                store.seal_now()
        stored = sum(account.stored.size for account in store.accounts().values())

        assert (120, 120) == (stored, len(everything(store)["events"]))

        store.seal_now()

        assert everything(store)["events"] == []
    with opened(private_dir, clock) as store:
        assert everything(store)["events"] == []


def test_rows_that_moved_are_not_taken_for_those_of_the_file(
    private_dir: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the oldest rows are not those that were written, nothing is taken out of the file, and it is tried again."""

    def wrong(*_: object) -> dict[int, RangeSet]:
        """Ranges of a stream that has no rows."""
        return {77: RangeSet((SeqRange(1, ROWS),))}

    with opened(private_dir, clock) as store:
        fill(store)
        before = everything(store)
        with monkeypatch.context() as broken:
            broken.setattr(sealer, "ranges_of", wrong)
            with pytest.raises(StoreError, match="not those of the file"):
                store.seal_now()

        assert (120, before) == (hot_rows(store), everything(store))


def cut(path: Path) -> None:
    """Take the last byte of a file."""
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize("harm", [Path.unlink, cut], ids=["stolen", "cut"])
def test_a_sealed_file_that_is_gone_is_told(harm: Callable[[Path], None], private_dir: Path, clock: HandClock) -> None:
    """A part that somebody took or cut is a gap in the balance, not silence; the other parts are there."""
    with opened(private_dir, clock) as store:
        store.submit(batch(span(1, 120))).result()
        clock.move(20 * SECOND_NS)
        store.seal_now()
    harm(private_dir / "sealed" / part_name(2))
    with opened(private_dir, clock) as store:
        (stream,) = balance(store).streams

        assert (80, 40, ((41, 80),)) == (stream.stored, stream.unaccounted, stream.gaps)
        assert len(everything(store)["events"]) == 80
        assert Receipt(stored=40, duplicate=0) == store.submit(batch(span(41, 80))).result()
        assert balance(store).balanced


def test_a_wrong_folder_is_no_loss(private_dir: Path, clock: HandClock) -> None:
    """A store whose sealed files are all elsewhere is refused, with what to do; its books stay as they are."""
    with opened(private_dir, clock) as store:
        fill(store)
        store.seal_now()
    with pytest.raises(StoreUnavailable, match="KVTRAIL_SEAL_DIR"):
        Store.open(str(private_dir / "events.duckdb"))
    with opened(private_dir, clock) as store:
        assert store.sealed().parts == 3


def test_a_store_without_a_policy_still_shows_what_was_sealed(private_dir: Path, clock: HandClock) -> None:
    """Who opens a file with sealing switched off sees everything, from the folder beside it."""
    path = private_dir / "events.duckdb"
    beside = SealPolicy(folder=Path(f"{path}.sealed"), seal_after_ns=SECOND_NS, part_rows=COMMON_ROWS, every_s=0)
    with Store.open(str(path), seal=beside, clock=clock) as store:
        fill(store)
        before = everything(store)
        store.seal_now()
    with Store.open(str(path)) as store:
        assert before == everything(store)
        assert store.sealed().parts == 0
