"""Where the tail waited: the ranks that its requests ran on. What others did explains nothing of it.

Ranks are schedulers, with clocks, that know nothing of each other: what ran on one while a request waited on another is no
cause. A rank that was started again is the same one.
"""

from typing import Final

import numpy as np

from kvtrail_collector.facts_rows import BoolArray
from kvtrail_collector.verdicts_case import Case

LEAST: Final = 0.25
"""Ranks with fewer of the tail's requests than so many times those of the rank that has most are bystanders."""


def victim_streams(case: Case) -> BoolArray:
    """For each stream of the recording, whether its rank is one that the tail waited on. Cheap."""
    streams = case.recording.rows.streams
    ranks = {rank: place for place, rank in enumerate(dict.fromkeys((one.engine, one.rank) for one in streams))}
    rank_of = np.array([ranks[one.engine, one.rank] for one in streams], dtype=np.int64)
    stream = case.recording.columns.requests.stream[case.requests.place[case.excess.window.rows]]
    victims = np.bincount(rank_of[stream], minlength=len(ranks))
    return np.asarray((victims >= max(LEAST * victims.max(initial=0), 1))[rank_of])
