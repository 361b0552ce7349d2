"""Records that nobody can read, though they are there whole: memory that went bad, or a writer of another make.

One of them must not stop its shipper for good: it is told as a drop by (encode, encode_error), and reading goes on.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from kvtrail_schema.batch import DropRange
from kvtrail_schema.enums import Stage
from kvtrail_schema.kinds import FIELDS_OF, Kind
from kvtrail_schema.reasons import DropReason

from kvtrail_agent import ring_layout as layout

_KINDS: Final = 256


def _table(*, of_runs: bool) -> npt.NDArray[np.bool_]:
    """By number of kind: whether it is known, or can be the head of a run."""
    known = np.zeros(_KINDS, dtype=np.bool_)
    known[[kind for kind in Kind if not of_runs or "block" in FIELDS_OF[kind]]] = True
    return known


_READABLE: Final = _table(of_runs=False)
_RUNNABLE: Final = _table(of_runs=True)


def readable(
    kinds: npt.NDArray[np.uint8], distances: npt.NDArray[np.uint32], indexes: npt.NDArray[np.intp]
) -> npt.NDArray[np.bool_]:
    """Which of the records in some slots are of a kind that can be read; a row of a run, if its head is; and not what
    stands where rows have their head, and cannot be one.

    `kinds` and `distances` are those of all slots. Costs a look at one byte a record.
    """
    found: npt.NDArray[np.bool_] = _READABLE[kinds[indexes]]
    rows = np.flatnonzero(kinds[indexes] == layout.ROW_KIND)
    heads = (indexes[rows] - distances[indexes[rows]].astype(np.intp)) & (len(kinds) - 1)
    found[rows] = _RUNNABLE[kinds[heads]]
    headless = rows[~found[rows]]
    if len(headless):  # nobody told the event that a spoiled kind made of the head
        first = headless[distances[indexes[headless]] == 1]
        found[np.isin(indexes, (indexes[first] - 1) & (len(kinds) - 1))] = False
    return found


def as_drops(seqs: npt.NDArray[np.uint64]) -> list[DropRange]:
    """Ascending seqs as what could not be encoded."""
    runs = np.split(seqs, np.flatnonzero(np.diff(seqs) != 1) + 1) if len(seqs) else []
    return [DropRange(Stage.ENCODE, DropReason.ENCODE_ERROR, int(run[0]), int(run[-1]), len(run)) for run in runs]
