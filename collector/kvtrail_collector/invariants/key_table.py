"""A map from keys to numbers for whole columns at once, of bounded size: where it is full, it forgets the oldest of a few."""

from __future__ import annotations

from typing import Final

import numpy as np

from kvtrail_collector.invariants.rows import Bools, Ids, Ints

_WAYS: Final = 8
_EMPTY: Final = np.uint64(0)
NOWHERE: Final = -1


class KeyTable:
    """Used by one thread. Some 50 ns a key that is looked for, 200 that is put in; 24 bytes a place and column of values.

    Each key has eight places. Where all are taken by others, the one put longest ago is forgotten, and counted. It takes no
    memory before the first key comes.
    """

    def __init__(self, places: int, columns: int = 1) -> None:
        buckets = max(places // _WAYS, 1)
        if buckets & (buckets - 1):
            message = f"{places} places are no power of two"
            raise ValueError(message)
        self._buckets_held = buckets
        self._columns = columns
        self._keys, self._age, self._values = _arrays(0, columns)  # made when the first key comes
        self._scratch: Ints = np.zeros(0, dtype=np.int64)
        self._puts = 0
        self.held = 0
        self.forgotten = 0
        """How many keys had to make room for others."""

    def find(self, keys: Ids) -> Ints:
        """The place of each key, or `NOWHERE`."""
        if not self.held:
            return np.full(len(keys), NOWHERE, dtype=np.int64)
        buckets = self._buckets(keys)
        hit = self._keys[buckets] == keys[:, None]
        way = hit.argmax(axis=1)
        return np.where(hit[np.arange(len(keys)), way], buckets * _WAYS + way, NOWHERE)

    def put(self, keys: Ids) -> Ints:
        """The place of each key, those that were not there taken in with all values 0."""
        places = self.find(keys)
        self._age.reshape(-1)[places[places != NOWHERE]] = self._puts
        new = np.flatnonzero(places == NOWHERE)
        while len(new):
            places[new] = self._take_in(keys[new])
            new = new[places[new] == NOWHERE]
        if len(places):
            places[self._keys.reshape(-1)[places] != keys] = NOWHERE  # forgotten at once: too many came for its bucket
        return places

    def values(self, column: int, places: Ints) -> Ints:
        """A value of the keys at some places."""
        return self._values[column, places] if self.held else np.zeros(len(places), dtype=np.int64)

    def set_values(self, column: int, places: Ints, values: Ints) -> None:
        """Change a value; of keys that stand twice the later one holds. Places that are nowhere are left out."""
        there = places != NOWHERE
        self._values[column, places[there]] = values[there]

    def remove(self, places: Ints) -> None:
        """Give places back."""
        places = places[places != NOWHERE]
        places = places[self._last_of_each(places)]
        self.held -= len(places)
        self._keys.reshape(-1)[places] = _EMPTY
        self._age.reshape(-1)[places] = 0

    def repeated(self, places: Ints) -> Bools:
        """Which of these places stand here more than once."""
        last = self._last_of_each(places)
        if last.all():
            return np.zeros(len(places), dtype=np.bool_)
        self._scratch[places] = 0
        self._scratch[places[~last]] = -1
        return np.asarray(self._scratch[places] == -1)

    def _buckets(self, keys: Ids) -> Ints:
        """Where to look for each key."""
        return (keys & np.uint64(len(self._keys) - 1)).astype(np.int64)

    def _take_in(self, keys: Ids) -> Ints:
        """Give keys that are not there a place, one in each bucket; the places of the others stay nowhere for now."""
        if not len(self._keys):
            self._keys, self._age, self._values = _arrays(self._buckets_held, self._columns)
            self._scratch = np.zeros(self._buckets_held * _WAYS, dtype=np.int64)
        buckets = self._buckets(keys)
        chosen = self._last_of_each(buckets)
        own = buckets[chosen]
        way = self._age[own].argmin(axis=1)
        full = int((self._keys[own, way] != _EMPTY).sum())
        self.forgotten += full
        self.held += len(own) - full
        self._keys[own, way] = keys[chosen]
        self._age[own, way] = self._puts + 1 + np.arange(len(own))
        self._puts += len(own)
        self._values[:, own * _WAYS + way] = 0
        places = np.empty(len(keys), dtype=np.int64)
        places[chosen] = own * _WAYS + way
        leader = self._scratch[buckets]  # who has the place of each bucket, of equal keys for all of them
        return np.where(keys[leader] == keys, places[leader], NOWHERE)

    def _last_of_each(self, numbers: Ints) -> Bools:
        """Which of some small numbers stand for the last time here. No sorting: who writes last is read back."""
        order = np.arange(len(numbers))
        self._scratch[numbers] = order
        return np.asarray(self._scratch[numbers] == order)


def _arrays(buckets: int, columns: int) -> tuple[Ids, Ints, Ints]:
    """Keys, ages and values of a table."""
    shape = (buckets, _WAYS)
    return (
        np.zeros(shape, dtype=np.uint64),
        np.zeros(shape, dtype=np.int64),
        np.zeros((columns, buckets * _WAYS), dtype=np.int64),
    )
