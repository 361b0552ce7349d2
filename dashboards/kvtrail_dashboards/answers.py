"""What the collector answers, as far as the pages read it. Fields that they do not know are passed over.

The shapes are those of the published API; they stand here on their own because a dashboard may be newer or older than
its collector. Times are on the engine's monotonic clock unless the name says `wall`.
"""

import msgspec

Figure = float | int | str


class Window(msgspec.Struct, frozen=True):
    """A stretch of time by arrival, [start, end), with the share of it that is covered by events."""

    start_ns: int
    end_ns: int
    requests: int = 0
    coverage: float | None = None


class EventRef(msgspec.Struct, frozen=True):
    """Names one event."""

    engine: str
    epoch: int
    rank: int
    seq: int


class Verdict(msgspec.Struct, frozen=True):
    """What is wrong, how sure, on which basis and by which figures, and what helps."""

    code: str
    basis: str
    action: str
    tier: str | None = None
    tenant: str | None = None
    component: str | None = None
    share: float | None = None
    confidence: float | None = None
    window: Window | None = None
    evidence: dict[str, Figure | None] = {}
    events: tuple[EventRef, ...] = ()
    also: tuple[str, ...] = ()


class Delta(msgspec.Struct, frozen=True):
    """How much more of one component the tail of the window has, in ms, with its bootstrap interval."""

    component: str
    excess_ms: float
    tier: str | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    share: float | None = None


class BlameRow(msgspec.Struct, frozen=True):
    """So much of the waiting in a queue was behind work of this tenant and kind."""

    queue: str
    kind: str
    waited_ns: int
    tenant: str | None = None
    share: float | None = None


class Attribution(msgspec.Struct, frozen=True):
    """What made the slow requests of a window slower than those of a reference. No window: no spike was found."""

    window: Window | None = None
    reference: Window | None = None
    quantile: float | None = None
    excess_tail_ms: float | None = None
    excess_quantile_ms: float | None = None
    mix_ms: float | None = None
    components: tuple[Delta, ...] = ()
    identified: bool = False
    why_not: str | None = None
    blame: tuple[BlameRow, ...] = ()
    exemplars: tuple[str | int, ...] = ()
    exemplar_requests: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    device: str | None = None


class SeriesRow(msgspec.Struct, frozen=True):
    """Requests of one engine that arrived in one bucket and their times to first token; null where none has one."""

    start_ns: int
    wall_ns: int
    requests: int
    engine: str | None = None
    censored: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


class Series(msgspec.Struct, frozen=True):
    """Percentiles of TTFT in buckets of equal length; buckets in which nothing arrived are left out."""

    bucket_ms: int
    series: tuple[SeriesRow, ...] = ()
    device: str | None = None


class RequestRow(msgspec.Struct, frozen=True):
    """One line of the list of requests; `ttft_ns` is null, and it is censored, while it has no first token."""

    request: int | str
    arrived_ns: int
    arrived_wall_ns: int
    epoch: int | None = None
    rank: int = 0
    text: str | None = None
    ttft_ns: int | None = None
    censored: bool = False
    prompt_tokens: int | None = None
    output_tokens: int | None = None


class Requests(msgspec.Struct, frozen=True):
    """The slowest requests of a window, the slowest first."""

    requests: tuple[RequestRow, ...] = ()
    device: str | None = None


class Part(msgspec.Struct, frozen=True):
    """So many nanoseconds spent on one thing."""

    component: str
    ns: int
    tier: str | None = None
    reason: str | None = None


class TokenGap(msgspec.Struct, frozen=True):
    """The wait between two tokens."""

    step: int
    ns: int
    parts: tuple[Part, ...] = ()


class WaitedOn(msgspec.Struct, frozen=True):
    """An operation that was in service while the request stood in a queue, and for how long; no op: none was."""

    ns: int
    op: int | str | None = None
    tier: str | None = None
    owner: str | None = None


class ChainLink(msgspec.Struct, frozen=True):
    """One step back from the slow request towards what began it."""

    text: str
    event: EventRef | str | int | None = None


class Why(msgspec.Struct, frozen=True):
    """Where one request's time went: `parts` add up to `ttft_ns`; `hidden` is overlapped work and does not add up."""

    request: str | int
    ttft_ns: int | None = None
    censored: bool = False
    parts: tuple[Part, ...] = ()
    hidden: tuple[Part, ...] = ()
    gaps: tuple[TokenGap, ...] = ()
    waited_on: tuple[WaitedOn, ...] = ()
    chain: tuple[ChainLink, ...] = ()
    recompute_estimate_ns: int | None = None
    device: str | None = None


class DropCount(msgspec.Struct, frozen=True):
    """How many events a stage dropped for a reason."""

    stage: str
    reason: str
    count: int


class StreamLoss(msgspec.Struct, frozen=True):
    """The balance of one stream of events."""

    engine: str
    epoch: int
    rank: int
    produced: int
    stored: int
    in_flight: int = 0
    unaccounted: int = 0
    dropped: tuple[DropCount, ...] = ()
    gaps: tuple[tuple[int, int], ...] = ()
    lost_before_stored: int = 0


class Loss(msgspec.Struct, frozen=True):
    """The balance of all streams."""

    balanced: bool
    streams: tuple[StreamLoss, ...] = ()
    device: str | None = None


class Trouble(msgspec.Struct, frozen=True):
    """An error in the collector's own words."""

    what: str
    where: str = ""
    do: str = ""


class ErrorReply(msgspec.Struct, frozen=True):
    """The shape of an error."""

    error: Trouble
