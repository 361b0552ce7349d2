"""Promises of kept ledgers: what is read back is what the events say at that moment, however and whenever they came."""

from collections.abc import Sequence

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_schema.events import Event

from tests.collector.ledger.homes import Homes, Now
from tests.collector.ledger.stories import crowds

PARTS = 3
PASSES_THAT_SUFFICE = 2
MOST_EVENTS = 120
_MIXED = st.lists(st.integers(0, PARTS - 1), min_size=1, max_size=12)
_CUT = st.tuples(*[st.integers(1, 40)] * (PARTS - 1)).map(
    lambda sizes: [*(part for part, size in enumerate(sizes) for _ in range(size)), *[PARTS - 1] * MOST_EVENTS]
)
_PARTS_OF_EVENTS = _MIXED | _CUT


def parted(events: list[Event], parts: Sequence[int]) -> list[list[Event]]:
    """The events in parts: each belongs to the part that is drawn for its place."""
    found: list[list[Event]] = [[] for _ in range(PARTS)]
    for place, event in enumerate(events):
        found[parts[place % len(parts)]].append(event)
    return [part for part in found if part]


def test_kept_is_what_events_say() -> None:
    """After each batch, whether passes came in between or not, and whether rows are late or fill holes."""
    with Homes() as homes:

        @given(crowds(), _PARTS_OF_EVENTS, st.lists(st.integers(0, 2), min_size=PARTS, max_size=PARTS))
        @settings(max_examples=12)
        def holds(events: list[Event], parts: list[int], passes: list[int]) -> None:
            """For any events, in any parts."""
            home = homes.next()
            keeper = LedgerKeeper(home.store, Now(10**30))
            for part, count in zip(parted(events, parts), passes, strict=False):
                home.send(part)

                assert home.from_events() == home.from_ledgers()

                for _ in range(count):
                    keeper.run_once()

                assert home.from_events() == home.from_ledgers()

        holds()


def test_order_of_batches() -> None:
    """Batches leave the same rows, in whichever order they come, and whether they are computed once or more often."""
    with Homes() as homes:

        @given(crowds(), _PARTS_OF_EVENTS)
        @settings(max_examples=6)
        def holds(events: list[Event], parts: list[int]) -> None:
            """For any events, in any parts."""
            found = []
            whole = parted(events, parts)
            for batches in (whole, whole[::-1]):
                home = homes.next()
                keeper = LedgerKeeper(home.store, Now(10**30))
                for batch in batches:
                    home.send(batch)
                    keeper.run_once()
                for _ in range(PASSES_THAT_SUFFICE):
                    keeper.run_once()
                found.append(home.kept())

            assert found[0] == found[1]

        holds()


def test_a_rebuild_computes_the_ledgers_again() -> None:
    """Ledgers that were damaged, lost or belong to nobody are after a rebuild, and a pass, what the events say."""
    with Homes() as homes:

        @given(crowds())
        @settings(max_examples=6)
        def holds(events: list[Event]) -> None:
            """For any events."""
            home = homes.next()
            keeper = LedgerKeeper(home.store, Now(10**30))
            home.send(events)
            for _ in range(PASSES_THAT_SUFFICE):
                keeper.run_once()
            before = home.kept()
            home.store.run(_damage).result()

            assert not before or before != home.kept()

            home.store.rebuild().result()
            for _ in range(PASSES_THAT_SUFFICE):
                keeper.run_once()

            assert before == home.kept()

        holds()


def _damage(connection: duckdb.DuckDBPyConnection) -> None:
    """One request of each stream has lost its ledger, others are wrong, and one more has a ledger and no event."""
    connection.execute("DELETE FROM request_ledgers WHERE req IN (SELECT min(req) FROM request_ledgers GROUP BY stream_id)")
    connection.execute("UPDATE request_ledgers SET end_ns = end_ns + 1")
    connection.execute("INSERT INTO request_ledgers SELECT * REPLACE (987654321 AS req) FROM request_ledgers LIMIT 1")
