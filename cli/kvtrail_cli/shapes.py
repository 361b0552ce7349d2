"""Shapes of answers that the command line makes or reads itself (OUTPUTS); the rest comes from the collector's package."""

import msgspec


class WhyPart(msgspec.Struct, frozen=True):
    """So many nanoseconds of one component."""

    component: str
    ns: int
    tier: str | None = None
    reason: str | None = None


class WhyGap(msgspec.Struct, frozen=True):
    """The time between two tokens."""

    step: int
    ns: int
    parts: tuple[WhyPart, ...] = ()


class WhyWait(msgspec.Struct, frozen=True):
    """Time in a queue while this op was in service; nobody's where `op` is None."""

    op: int | None
    tier: str
    owner: str
    ns: int


class WhyLink(msgspec.Struct, frozen=True):
    """One event in the chain of causes, in words, and when it was."""

    text: str
    t_ns: int | None = None


class BlockCopy(msgspec.Struct, frozen=True):
    """One stay of a copy of a block."""

    engine: str
    rank: int
    state: str
    tier: str | None = None
    slot: int | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    ended_by: str | None = None


class BlockWindow(msgspec.Struct, frozen=True):
    """A stretch in which events are missing."""

    start_ns: int
    end_ns: int


class BlockAnswer(msgspec.Struct, frozen=True):
    """The life of one block (OUTPUTS, `block`)."""

    block: str
    copies: tuple[BlockCopy, ...]
    chain: tuple[WhyLink, ...] = ()
    unknown: tuple[BlockWindow, ...] = ()


class WhyAnswer(msgspec.Struct, frozen=True):
    """Where one request's time went (OUTPUTS, `why`)."""

    request: str
    ttft_ns: int
    censored: bool
    parts: tuple[WhyPart, ...]
    hidden: tuple[WhyPart, ...] = ()
    gaps: tuple[WhyGap, ...] = ()
    waited_on: tuple[WhyWait, ...] = ()
    chain: tuple[WhyLink, ...] = ()
    recompute_estimate_ns: int | None = None
    device: str | None = None
