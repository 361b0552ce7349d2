"""The columns of all stored requests, and of what befell them around some time: each is read when something asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_columns import ChunkColumns, RequestColumns, SpanColumns, chunk_columns, lookup_columns
from kvtrail_collector.facts_join import RequestIndex, index_of, joined_ops
from kvtrail_collector.facts_rows import NO_INT, IntArray, Rows
from kvtrail_collector.questions.population import StoredPopulation
from kvtrail_collector.questions.window_look import Look, numbers
from kvtrail_collector.recorded import Recorded

_COLUMNS: Final = "stream_id, kind, seq, t_ns, req, step, tokens, reason, duration_ns"
_KINDS: Final = numbers(Kind.PREFILL_CHUNK, Kind.LOOKUP_FINISHED)


class WindowColumns:
    """As `RequestsColumns` says. Requests stand where they stand in the population: also those of other times. One thread."""

    def __init__(self, look: Look, stored: StoredPopulation, recording: Recorded) -> None:
        self._look, self._stored, self._recording = look, stored, recording

    @cached_property
    def requests(self) -> RequestColumns:
        """All stored requests, as their kept ledgers have them. The rows of their arrivals are not there (-1)."""
        population, stored = self._stored.population, self._stored
        return RequestColumns(
            row=np.full(len(population), NO_INT),
            stream=self._look.places(stored.stream_id),
            req=stored.req,
            ns=stored.ns,
            tokens=population.prompt_tokens,
            arrived_ns=population.arrived_ns,
            end_ns=population.arrived_ns + population.latency_ns,
            end=stored.end,
        )

    @cached_property
    def lookups(self) -> SpanColumns:
        """Lookups that ended near the windows."""
        return lookup_columns(self._rows, self._index)

    @cached_property
    def chunks(self) -> ChunkColumns:
        """Prefill chunks that were computed near the windows."""
        return chunk_columns(self._rows, self._index, self._recording.steps)

    @property
    def own_request(self) -> IntArray:
        """The requests of `own_op`."""
        return self._own[0]

    @property
    def own_op(self) -> IntArray:
        """The ops that are joined to requests."""
        return self._own[1]

    def ops_of(self, places: Sequence[int]) -> IntArray:
        """The ops that are joined to some requests, request after request; without looking at all others."""
        chosen = np.array(places, dtype=np.int64)
        index = index_of(self.requests.stream[chosen], self.requests.req[chosen])
        return joined_ops(self._recording.rows, self._recording.ops, index)[1]

    def named(self, places: Sequence[int]) -> pa.Table:
        """The streams and numbers of some requests, as a table for SQL, with `place`."""
        chosen = np.array(places, dtype=np.int64)
        stream_id = pa.array(self._stored.stream_id[chosen].astype(np.int32))
        return pa.table({"stream_id": stream_id, "req": self._stored.req[chosen], "place": chosen})

    @cached_property
    def _rows(self) -> Rows:
        """Rows of lookups and chunks: who asks for one sort asks for the other, and a look costs more than what it finds."""
        sql = f"SELECT {_COLUMNS} FROM events WHERE {self._look.of_time()} AND kind IN ({_KINDS})"  # noqa: S608  # names and numbers of ours
        return self._look.rows(self._look.table(sql))

    @cached_property
    def _index(self) -> RequestIndex:
        """Finds requests."""
        return index_of(self.requests.stream, self.requests.req)

    @cached_property
    def _own(self) -> tuple[IntArray, IntArray]:
        """Pairs of a request and an op that is joined to it."""
        return joined_ops(self._recording.rows, self._recording.ops, self._index)
