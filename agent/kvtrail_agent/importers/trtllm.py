"""What a TensorRT-LLM server gives away, in one decoder: cache events, iterations, requests, each known by what it holds."""

from collections import Counter

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.decoded import Bad, Decoded
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.hashes import shown
from kvtrail_agent.importers.trtllm_blocks import levels_of
from kvtrail_agent.importers.trtllm_events import TrtllmEvents
from kvtrail_agent.importers.trtllm_requests import TrtllmRequests
from kvtrail_agent.importers.trtllm_stats import TrtllmStats


class TrtllmDecoder:
    """Decodes records of all three sorts in any mixture; used by one thread. Statistics before events name the levels."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._events: dict[str, TrtllmEvents] = {}
        self._stats = TrtllmStats(source.number)
        self._requests = TrtllmRequests(source.key, source.number)

    def decode(self, value: object, sequence: str = "") -> Decoded:
        """One record."""
        if isinstance(value, dict) and "event_id" in value:
            return self._events_of(sequence).decode(value)
        if isinstance(value, dict) and "iter" in value:
            decoded = self._stats.decode(value)
            return self._with_levels(decoded)
        if isinstance(value, dict) and "perf_metrics" in value:
            return self._requests.decode(value)
        problem = f"{shown(value)} is neither an event (event_id), nor an iteration (iter), nor a request (perf_metrics)"
        return Decoded(bad=[Bad("", problem)])

    def finish(self) -> Decoded:
        """Requests joined with the iterations over which they ran."""
        return self._requests.joined(self._stats.iterations)

    def _events_of(self, sequence: str) -> TrtllmEvents:
        """The decoder of one sequence of a file; it takes the levels that were told by now."""
        known = self._events.get(sequence)
        if known is None:
            known = self._events[sequence] = TrtllmEvents(self._source.key, self._source.number, sequence)
            self._with_levels(Decoded())
        return known

    def _with_levels(self, decoded: Decoded) -> Decoded:
        """Tell the events what their levels are, once the statistics have said it."""
        if self._stats.tiers:
            try:
                levels = levels_of(self._stats.tiers)
            except ForeignInvalid as error:
                decoded.unknown += Counter({str(error): 1})
                return decoded
            for events in self._events.values():
                events.levels = levels
        return decoded
