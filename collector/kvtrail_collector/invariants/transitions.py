"""Which was the last transition of a copy before a row, among transitions of the same rows: for many keys at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvtrail_collector.invariants.rows import Ids, Ints


class Keyed(NamedTuple):
    """Rows with the key of what they are about; `places` ascend, and so do seqs."""

    keys: Ids
    places: Ints

    def only(self, chosen: Ints) -> Keyed:
        """Some of them."""
        return Keyed(self.keys[chosen], self.places[chosen])


def among(keys: Ids, others: Ids) -> Ints:
    """The places of keys that stand among others too."""
    if not len(keys) or not len(others):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.isin(keys, others))


def last_before(moves: Keyed, asked: Keyed) -> Ints:
    """For each row that is asked for, the place of the last move of its key before it; -1 where none is. Sorts both."""
    keys = np.concatenate([moves.keys, asked.keys])
    places = np.concatenate([moves.places, asked.places])
    order = np.lexsort((places, keys))
    is_move = order < len(moves.keys)
    latest = np.maximum.accumulate(np.where(is_move, np.arange(len(order)), -1))
    same = (latest >= 0) & (keys[order[np.maximum(latest, 0)]] == keys[order])
    answers = np.where(same, places[order[np.maximum(latest, 0)]], -1)
    found = np.empty(len(asked.keys), dtype=np.int64)
    found[order[~is_move] - len(moves.keys)] = answers[~is_move]
    return found
