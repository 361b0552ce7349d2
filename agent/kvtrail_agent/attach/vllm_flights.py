"""The steps that vLLM's scheduler has handed out and not taken back yet, oldest first.

With asynchronous scheduling a step is built while another one computes. A step is said to start when it was built or when the
one before it ended, whichever is later: until then nothing of it computed.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from kvtrail_schema.emitter import Emitter
from kvtrail_schema.identity import StepId

from kvtrail_agent.attach.vllm_request import Watched

_MOST_IN_FLIGHT: Final = 64


@dataclass(slots=True)
class Chunk:
    """Tokens [start, start + tokens) of a request that a step prefills; `ends` where they are its last."""

    watched: Watched
    start: int
    tokens: int
    ends: bool


@dataclass(slots=True)
class Flight:
    """One step: who is in it, and what it is to do. A step without tokens is built for transfers alone, and told of nowhere."""

    step: StepId
    tokens: int
    batch: list[Watched] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    decoding: list[Watched] = field(default_factory=list)
    loading: list[Watched] = field(default_factory=list)
    """Requests whose loads are made by the step itself."""


class Flights:
    """Steps under way; used by the scheduler's thread."""

    def __init__(self, emit: Emitter) -> None:
        self._emit = emit
        self._flights: deque[Flight] = deque()
        self._steps = 0

    @property
    def oldest(self) -> Flight | None:
        """The step whose results come next."""
        return self._flights[0] if self._flights else None

    def begin(self, tokens: int, now_ns: int) -> Flight:
        """A step was built."""
        if len(self._flights) >= _MOST_IN_FLIGHT:
            self._flights.clear()  # a vLLM that takes its steps back in another way: begin anew, and lose those
        self._steps += 1
        flight = Flight(StepId(self._steps), tokens)
        if tokens and not any(before.tokens for before in self._flights):
            self._emit.step_started(flight.step, t_ns=now_ns)
        self._flights.append(flight)
        return flight

    def end(self, now_ns: int) -> Flight | None:
        """The results of the oldest step were taken; the next one computes from here on."""
        if not self._flights:
            return None
        flight = self._flights.popleft()
        if flight.tokens:
            prefill = sum(chunk.tokens for chunk in flight.chunks)
            self._emit.step_finished(flight.step, flight.tokens, prefill, flight.tokens - prefill, t_ns=now_ns)
            following = next((later for later in self._flights if later.tokens), None)
            if following is not None:
                self._emit.step_started(following.step, t_ns=now_ns)
        return flight
