"""What explaining asks of a recording, whether it is there whole or read in parts as somebody asks for them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kvtrail_schema.enums import Tier

from kvtrail_collector.facts import RequestFacts, Timeline
from kvtrail_collector.facts_columns import ChunkColumns, RequestColumns, SpanColumns
from kvtrail_collector.facts_ops import OpColumns
from kvtrail_collector.facts_rows import IntArray, Interval, Rows
from kvtrail_collector.facts_steps import StepColumns


class Arrival(NamedTuple):
    """The event that a request began with: its stream's place among those of the recording, its seq, the request's number,
    and the engine's own text for it, if there is one.

    The seq of one that was let go meanwhile is 0, which no event has.
    """

    stream: int
    seq: int
    req: int
    text: str | None


class RequestsColumns(Protocol):
    """Facts of all requests as columns, as in `FactColumns`."""

    @property
    def requests(self) -> RequestColumns:
        """The requests in the order of arrival."""

    @property
    def lookups(self) -> SpanColumns:
        """Their lookups."""

    @property
    def chunks(self) -> ChunkColumns:
        """Their prefill chunks."""

    @property
    def own_request(self) -> IntArray:
        """With `own_op`, pairs of a request and an op that is joined to it, sorted."""

    @property
    def own_op(self) -> IntArray:
        """See `own_request`."""


class Recorded(Protocol):
    """A recording of which each part is there, or is read when it is asked for, once. Used by one thread.

    `rows` has at least those of declarations, of prefetches, and of loads of blocks that were fetched ahead.
    """

    @property
    def rows(self) -> Rows:
        """Rows of events."""

    @property
    def ops(self) -> OpColumns:
        """Transfers."""

    @property
    def steps(self) -> StepColumns:
        """Steps of the scheduler."""

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """What the requests of each stream share."""

    @property
    def columns(self) -> RequestsColumns:
        """Facts of all requests."""

    def facts(self, places: Sequence[int]) -> tuple[RequestFacts, ...]:
        """The facts of some requests."""

    def ops_of(self, places: Sequence[int]) -> IntArray:
        """The places of the ops that are joined to some requests, request after request."""

    def arrivals(self, places: Sequence[int]) -> list[Arrival]:
        """The events that some requests began with."""

    def evicted(self, span: Interval, tier: Tier) -> int:
        """How many copies left a tier in [start, end), whether or not they were written anywhere."""
