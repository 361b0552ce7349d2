"""What happened in two windows, for verdicts and blame: each part is read when something asks for it, and only then."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from string import Template
from typing import Final

import numpy as np
import pyarrow as pa
from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts import RequestFacts, Timeline
from kvtrail_collector.facts_build import Recording
from kvtrail_collector.facts_columns import fact_columns
from kvtrail_collector.facts_ops import OpColumns
from kvtrail_collector.facts_rows import IntArray, Interval, Rows, ids_of, ints_of
from kvtrail_collector.facts_steps import StepColumns, steps_by_time, timeline
from kvtrail_collector.questions.population import StoredPopulation
from kvtrail_collector.questions.window_columns import WindowColumns
from kvtrail_collector.questions.window_look import Look, numbers
from kvtrail_collector.questions.window_ops import window_ops
from kvtrail_collector.recorded import Arrival

_DECLARED: Final = numbers(Kind.NAMESPACE_DECLARED, Kind.MANIFEST_DECLARED)
_OUTCOMES: Final = numbers(Kind.PREFETCH_USED, Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED)
_AHEAD: Final = f"{numbers(Kind.PREFETCH_ISSUED, Kind.PREFETCH_READY)}, {_OUTCOMES}"
_OWN: Final = numbers(
    *(Kind.REQUEST_ARRIVED, Kind.REQUEST_WAITING, Kind.REQUEST_ADMITTED, Kind.REQUEST_PREEMPTED, Kind.REQUEST_RESUMED),
    *(Kind.REQUEST_FIRST_TOKEN, Kind.REQUEST_FINISHED, Kind.REQUEST_CANCELLED, Kind.REQUEST_REJECTED),
    *(Kind.LOOKUP_FINISHED, Kind.PREFILL_CHUNK, Kind.COPY_WAITED, Kind.PREFETCH_USED),
)
_AHEAD_COLUMNS: Final = "stream_id, kind, seq, t_ns, ns, req, op, prefetch, reason, block"
_OWN_COLUMNS: Final = 'stream_id, kind, seq, t_ns, ns, req, op, prefetch, step, reason, tokens, wait_ns, duration_ns, "text"'
_FIRST: Final = "SELECT min(queued_ns) FROM ops SEMI JOIN wanted_in USING (stream_id, prefetch)"
_EARLIEST_NS: Final = -(2**63)
_STARTED, _FINISHED = Kind.STEP_STARTED.value, Kind.STEP_FINISHED.value
_STEPS: Final = f"""
SELECT stream_id, step, min(t_ns) FILTER (kind = {_STARTED}) AS start_ns, max(t_ns) FILTER (kind = {_FINISHED}) AS end_ns,
    max(tokens) AS tokens, max(prefill_tokens) AS prefill_tokens
FROM events WHERE $near AND kind IN ({_STARTED}, {_FINISHED}) GROUP BY stream_id, step
"""  # noqa: S608  # numbers of ours
_ARRIVALS: Final = f"""
SELECT place, min(seq), arg_min("text", seq) FROM events JOIN wanted_in USING (stream_id, req)
WHERE $near AND kind = {Kind.REQUEST_ARRIVED.value} GROUP BY place
"""  # noqa: S608  # numbers of ours
_OWN_ROWS: Final = f"""
SELECT {_OWN_COLUMNS} FROM events SEMI JOIN wanted_in USING (stream_id, req) WHERE $near AND kind IN ({_OWN})
"""  # noqa: S608  # names and numbers of ours
_LOADS: Final = f"""
SELECT {_AHEAD_COLUMNS} FROM events SEMI JOIN wanted_in USING (block) WHERE $near AND kind = {Kind.SWAP_IN_QUEUED.value}
"""  # noqa: S608  # names and numbers of ours

_EVICTED: Final = f"SELECT count(*) FROM events WHERE {{when}} AND kind = {Kind.EVICTED.value} AND tier = {{tier}}"  # noqa: S608  # numbers of ours


class WindowsRecording:
    """As `Recorded` says: what was recorded around a span of time, out of all that is stored. Worker thread, one at a time.

    To make one reads nothing. Requests are named by their places in the population.
    """

    def __init__(self, look: Look, stored: StoredPopulation) -> None:
        self._look = look
        self.columns = WindowColumns(look, stored, self)

    @cached_property
    def rows(self) -> Rows:
        """Declarations, prefetches, and loads of blocks that were fetched ahead; and where rows are missing.

        What is used near the windows may have been fetched up to a minute before. What became of prefetches is told whenever
        it is: whose work one waited for hangs on it.
        """
        look = self._look
        ahead = self._table(_AHEAD_COLUMNS, f"{look.back_to(_EARLIEST_NS).of_time()} AND kind IN ({_AHEAD})")
        parts = [ahead, *self._loads_of(ahead)]
        parts.append(self._table(_AHEAD_COLUMNS, f"{look.of_streams} AND t_ns > {look.near[1]} AND kind IN ({_OUTCOMES})"))
        parts.append(self._table('stream_id, kind, seq, t_ns, ns, "text"', f"{look.of_streams} AND kind IN ({_DECLARED})"))
        return look.rows(pa.concat_tables(parts, promote_options="default"), look.holes())

    @cached_property
    def ops(self) -> OpColumns:
        """Transfers of which anything was told, from the first on of what was fetched ahead and used."""
        rows = self.rows
        used = rows.of_kinds(Kind.PREFETCH_USED)
        used = used[(rows.t_ns[used] >= self._look.near[0]) & (rows.t_ns[used] <= self._look.near[1])]
        if not len(used):
            return window_ops(self._look)
        stream_id = np.array(self._look.ids, dtype=np.int32)[rows.stream[used]]
        named = pa.table({"stream_id": stream_id, "prefetch": rows.ids["prefetch"][used]})
        first = self._look.table_about(_FIRST, named)[0][0].as_py()
        return window_ops(self._look if first is None else self._look.back_to(first))

    @cached_property
    def steps(self) -> StepColumns:
        """Steps of the scheduler."""
        table = self._look.table(Template(_STEPS).substitute(near=self._look.of_time()))
        stream, step = self._look.places(table["stream_id"].to_numpy()), ids_of(table, "step")
        order = np.lexsort((step, stream))
        figures = (ints_of(table, name)[order] for name in ("start_ns", "end_ns", "tokens", "prefill_tokens"))
        return steps_by_time(StepColumns(stream[order], step[order], *figures))

    @cached_property
    def timelines(self) -> tuple[Timeline, ...]:
        """What the requests of each stream share."""
        last_ns = enumerate(self._look.last_ns())
        return tuple(timeline(self.rows, self.steps.of_stream(index), index, now_ns) for index, now_ns in last_ns)

    def facts(self, places: Sequence[int]) -> tuple[RequestFacts, ...]:
        """The facts of some requests, whose arrivals are still stored. Some 50 ms however many there are."""
        found = self._part(places)
        index = found.columns.index.find(self.columns.requests.stream[list(places)], self.columns.requests.req[list(places)])
        return found.facts([place for place in index.tolist() if place >= 0])

    def ops_of(self, places: Sequence[int]) -> IntArray:
        """The places of the ops that are joined to some requests, request after request."""
        return self.columns.ops_of(places)

    def arrivals(self, places: Sequence[int]) -> list[Arrival]:
        """The events that some requests began with. A look at the time in which they came."""
        wanted, requests = self.columns.named(places), self.columns.requests
        if not wanted.num_rows:
            return []
        own = requests.arrived_ns[list(places)]
        table = self._look.table_about(
            Template(_ARRIVALS).substitute(near=self._look.of_time((int(own.min()), int(own.max())))), wanted
        )
        told = {place: (seq, text) for place, seq, text in zip(*(column.to_pylist() for column in table.columns), strict=True)}
        found = [(place, *told.get(place, (0, None))) for place in places]
        return [Arrival(int(requests.stream[place]), seq, int(requests.req[place]), text or None) for place, seq, text in found]

    def evicted(self, span: Interval, tier: Tier) -> int:
        """How many copies left a tier in [start, end). A look at that time."""
        when = self._look.of_time((span[0], span[1] - 1))
        found = self._look.table(_EVICTED.format(when=when, tier=tier.value))
        return int(found[0][0].as_py())

    def _part(self, places: Sequence[int]) -> Recording:
        """Some requests, with all that they did near the windows."""
        look, arrived_ns = self._look, self.columns.requests.arrived_ns[list(places)]
        span = min(int(arrived_ns.min(initial=look.near[0])), look.near[0]), look.near[1]
        table = look.table_about(Template(_OWN_ROWS).substitute(near=look.of_time(span)), self.columns.named(places))
        rows = look.rows(table, self.rows.holes)
        return Recording(rows, self.ops, self.steps, self.timelines, fact_columns(rows, self.ops, self.steps, self.timelines))

    def _table(self, columns: str, condition: str) -> pa.Table:
        """Some columns of some rows."""
        return self._look.table(f"SELECT {columns} FROM events WHERE {condition}")  # noqa: S608  # names and numbers of ours

    def _loads_of(self, ahead: pa.Table) -> list[pa.Table]:
        """Rows of loads, near the windows, of blocks that are named by rows of prefetches."""
        blocks = pa.table({"block": ahead["block"].unique().drop_null()})
        if not blocks.num_rows:
            return []
        return [self._look.table_about(Template(_LOADS).substitute(near=self._look.of_time()), blocks)]
