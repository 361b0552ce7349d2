"""Promises of the bounded map: what it holds is true, what it forgets is counted, and it never grows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_collector.invariants.key_table import NOWHERE, KeyTable

PLACES = 64
keys = st.lists(st.integers(1, 60), max_size=80)


@given(st.lists(st.tuples(st.booleans(), keys), max_size=8))
def test_it_is_a_map_that_forgets(turns: list[tuple[bool, list[int]]]) -> None:
    """Whatever is put in and taken out: a key that is found has the last value that was set, and only forgotten ones lack."""
    table, model = KeyTable(PLACES), dict[int, int]()
    for turn, (is_removal, numbers) in enumerate(turns, start=1):
        column = np.array(numbers, dtype=np.uint64)
        if is_removal:
            table.remove(table.find(column))
            model = {key: value for key, value in model.items() if key not in numbers}
            continue
        values = np.arange(len(numbers)) + 100 * turn
        table.set_values(0, table.put(column), values)
        model.update(zip(numbers, values.tolist(), strict=True))
    known = np.array(sorted(model), dtype=np.uint64)
    places = table.find(known)
    there = places != NOWHERE

    assert [model[int(key)] for key in known[there]] == table.values(0, places[there]).tolist()
    assert np.count_nonzero(~there) <= table.forgotten
    assert table.held <= PLACES
    assert not len(table.find(np.array([61, 99], dtype=np.uint64))[table.find(np.array([61, 99], dtype=np.uint64)) != NOWHERE])


def test_the_oldest_makes_room() -> None:
    """Of nine keys for eight places the one that was put in, or again, longest ago is gone."""
    table = KeyTable(8)
    for key in (1, 2, 3, 4, 5, 6, 7, 8, 1, 9):
        table.put(np.array([key], dtype=np.uint64))

    assert 1 == table.forgotten
    assert [2] == [key for key in range(1, 10) if table.find(np.array([key], dtype=np.uint64))[0] == NOWHERE]


def test_what_stands_twice_is_known() -> None:
    """Places that are named more than once, in any order."""
    table = KeyTable(PLACES)
    places = table.put(np.array([5, 6, 5, 7, 5], dtype=np.uint64))

    assert [True, False, True, False, True] == table.repeated(places).tolist()
