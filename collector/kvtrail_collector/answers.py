"""Answers that need computing: rows from the store, the pure computation over them, one cache in front.

Everything here runs on worker threads and may take seconds; nothing of it runs on the event loop or the writer's thread.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec

from kvtrail_collector.attribution_shapes import Attribution, Measure
from kvtrail_collector.block_life import BlockLife
from kvtrail_collector.errors import Busy, NotFound, QuestionInvalid
from kvtrail_collector.questions.attribution import attribute_stored
from kvtrail_collector.questions.block import block_life
from kvtrail_collector.questions.clocks import clock_offset_ns, one_clock
from kvtrail_collector.questions.facts import devices, kinds_present
from kvtrail_collector.questions.requests import find_request
from kvtrail_collector.questions.rows import StreamRow, streams
from kvtrail_collector.questions.why import why_stored
from kvtrail_collector.store import Store
from kvtrail_collector.why import Why

MOST_KEPT: Final = 32
_MOST_WAITING: Final = 8
_HASH: Final = re.compile(r"[0-9a-fA-F]{1,16}")

Span = tuple[int, int]
"""Arrivals in [start, end), in nanoseconds."""


class AttributionQuestion(NamedTuple):
    """What to attribute: arrivals in [start, end) on the engine's monotonic clock; an absent one is searched for."""

    window: Span | None = None
    reference: Span | None = None
    engine: str | None = None
    seed: int = 0
    measure: Measure = Measure.TTFT


def span_of(name: str, start_ns: int | None, end_ns: int | None) -> Span | None:
    """Two bounds as a stretch of time; None where neither is given.

    Raises:
        QuestionInvalid: only one is given, or it ends before it begins.
    """
    if start_ns is None and end_ns is None:
        return None
    if start_ns is None or end_ns is None or start_ns >= end_ns:
        do = "give both bounds, the earlier one as the start, or neither"
        raise QuestionInvalid(f"{name} from {start_ns} to {end_ns} is no stretch of time", where=name, do=do)
    return (start_ns, end_ns)


def block_of(name: str) -> int:
    """The block with this hash.

    Raises:
        QuestionInvalid: it is none.
    """
    digits = name.removeprefix("0x")
    if not _HASH.fullmatch(digits):
        raise QuestionInvalid(f"{name!r} is no hash of a block", where="blocks", do="give up to 16 hexadecimal digits")
    return int(digits, 16)


def apart(window: Span | None, reference: Span | None) -> None:
    """See that a window is not compared with itself.

    Raises:
        QuestionInvalid: the two have time in common.
    """
    if window and reference and window[0] < reference[1] and reference[0] < window[1]:
        what = f"the window {window} and the reference {reference} have time in common"
        raise QuestionInvalid(what, where="reference", do="give a reference that lies before or after the window")


def _heard_of(engine: str | None, known: Sequence[StreamRow]) -> list[StreamRow]:
    """The streams of an engine, or of all.

    Raises:
        NotFound: no stream is of this engine: a misspelt name must not look like one of which nothing is stored.
    """
    wanted = [one for one in known if engine in {None, one.engine}]
    if engine is not None and not wanted:
        names = ", ".join(sorted({one.engine for one in known})) or "none yet"
        raise NotFound(f"no engine {engine!r}", where="streams", do=f"engines that were heard of: {names}")
    return wanted


class Answers:
    """Computes each answer once for each version of the stored data, and keeps those asked last, `MOST_KEPT` of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places = threading.BoundedSemaphore(_MOST_WAITING)
        self._one_at_a_time = threading.Lock()
        self._known: dict[AttributionQuestion, Attribution] = {}  # guarded by _one_at_a_time; the one asked last stands last
        self._version = -1  # guarded by _one_at_a_time
        self._device_lock = threading.Lock()
        self._devices: dict[str | None, str | None] = {}  # guarded by _device_lock
        self._device_streams = -1  # guarded by _device_lock

    def device(self, engine: str | None = None) -> str | None:
        """The device that the newest manifest of an engine, or of all, names. Asks the store again only for new streams."""
        return self.devices().get(engine)

    def devices(self) -> Mapping[str | None, str | None]:
        """The device of each engine, and under None that of the engine last heard of."""
        known = len(self._store.accounts())
        with self._device_lock:
            if not self._devices or known != self._device_streams:
                with self._store.read() as cursor:
                    self._devices = devices(cursor)
                self._device_streams = known
            return self._devices

    def attribution(self, question: AttributionQuestion) -> Attribution:
        """What made the slow requests slow. Seconds a million events the first time; two callers never compute at once.

        Raises:
            Busy: as many callers wait already as may.
        """
        with self._place_to_wait(), self._one_at_a_time:
            version = self._store.version
            if version != self._version:
                self._known, self._version = {}, version
            found = self._known.pop(question, None) or self._attribute(question)
            self._known = dict([*list(self._known.items())[-MOST_KEPT + 1 :], (question, found)])
            return found

    @contextmanager
    def _place_to_wait(self) -> Iterator[None]:
        """One of few places, so that those who wait for an answer never take all threads."""
        if not self._places.acquire(blocking=False):
            raise Busy("others wait for such an answer already", where="attribution", do="ask again in a few seconds")
        try:
            yield
        finally:
            self._places.release()

    def why(self, name: str, engine: str | None, within: Span | None = None) -> Why:
        """Where the time of one request went.

        Args:
            name: the request's number, the engine's own text for it, or `epoch:rank:number`, which names one only.
            engine: whose request; absent, that of the engine last heard of.
            within: of several with this name, one that arrived within is meant.

        Raises:
            NotFound: no request has this name, or no engine that one.
        """
        with self._store.read() as cursor:
            _heard_of(engine, streams(cursor))
            found = find_request(cursor, name, engine, within)
            if found is None:
                raise NotFound(f"no request {name!r} is stored", where="requests", do="list them with /v1/requests")
            own = [one for one in streams(cursor) if (one.engine, one.epoch) == (found.stream.engine, found.stream.epoch)]
            answer = why_stored(cursor, found, own)
        if answer is None:
            what = f"the arrival of request {name!r} is not stored: its time cannot be told"
            raise NotFound(what, where="requests", do="ask /v1/loss for what is missing")
        return answer

    def block(self, name: str, engine: str | None, at_ns: int | None) -> BlockLife:
        """The life of a block, or where its copies were at a moment.

        Args:
            name: its hash, as up to sixteen hexadecimal digits.
            engine: whose copies; absent, those of all.
            at_ns: the moment, on the engine's monotonic clock.

        Raises:
            NotFound: no event names this block, or nobody knows this engine.
            QuestionInvalid: the name is no hash.
        """
        block = block_of(name)
        with self._store.read() as cursor:
            found = block_life(cursor, _heard_of(engine, streams(cursor)), block, at_ns)
        if found is None:
            whose, do = ("", "blocks are named by 16 hexadecimal digits")
            if engine is not None:
                whose, do = (f" of engine {engine!r}", "ask without an engine, or a moment, for its life on all of them")
            raise NotFound(f"no event{whose} names block {name}", where="blocks", do=do)
        return msgspec.structs.replace(found, device=self.device(engine))

    def kinds(self) -> frozenset[int]:
        """The kinds of which there is at least one event."""
        with self._store.read() as cursor:
            return kinds_present(cursor)

    def _attribute(self, question: AttributionQuestion) -> Attribution:
        """Compute one answer."""
        with self._store.read() as cursor:
            wanted, notes = one_clock(cursor, _heard_of(question.engine, streams(cursor)), question.window)
            found = attribute_stored(
                cursor, wanted, question.window, question.reference, seed=question.seed, measure=question.measure
            )
            offset_ns = clock_offset_ns(cursor, wanted)
        device = self.device(wanted[0].engine if wanted else question.engine)
        return msgspec.structs.replace(found, device=device, clock_offset_ns=offset_ns, notes=(*notes, *found.notes))
