"""Places into which two transfers may have written at one time: as a rule none, out of very many.

A place is free of that where each transfer begins after all of the one before it has ended. To see it takes one sort of the
beginnings; only what is left is worth a look at every row.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.facts_rows import IntArray, ids_of, ints_of

_BEGINNINGS: Final = """
SELECT own.stream_id, own.dst, own.slot, own.op, least(own.t_ns, op.first_closed_ns) AS begin_ns, op.last_ns
FROM window_events AS own JOIN window_ops AS op ON op.stream_id = own.stream_id AND op.op = own.op
WHERE own.kind IN (kind_no('swap_out_started'), kind_no('swap_in_started')) AND own.slot IS NOT NULL
"""
_MOST_STREAMS: Final = 1 << 15
_MOST_SLOTS: Final = 1 << 40


def crowded_places(scene: Scene) -> pa.Table | None:
    """Rows of `stream_id`, `dst` and `slot` for places that may have been written to twice at once; None: it may be any."""
    begun = scene.table(_BEGINNINGS)
    stream, slot = ints_of(begun, "stream_id"), ids_of(begun, "slot")
    if stream.max(initial=0) >= _MOST_STREAMS or slot.max(initial=0) >= _MOST_SLOTS:
        return None
    place = (stream << 48) | ((ints_of(begun, "dst") + 1) << 40) | slot.astype(np.int64)
    begin_ns, last_ns, op = ints_of(begun, "begin_ns"), ints_of(begun, "last_ns"), ids_of(begun, "op")
    order = _by_place(place, begin_ns)
    after, before = order[1:], order[:-1]
    overlaps = (place[after] == place[before]) & (op[after] != op[before]) & (begin_ns[after] < last_ns[before])
    return begun.select(["stream_id", "dst", "slot"]).take(pa.array(after[overlaps]))


def _by_place(place: IntArray, t_ns: IntArray) -> IntArray:
    """Rows by place and time. By place alone, where they come in the order of time: a third of the work."""
    order = np.argsort(place, kind="stable")
    same = place[order][1:] == place[order][:-1]
    is_in_order = not np.any(same & (t_ns[order][1:] < t_ns[order][:-1]))
    return order if is_in_order else np.lexsort((t_ns, place))
