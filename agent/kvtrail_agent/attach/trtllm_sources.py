"""Where a poller of TensorRT-LLM reads: a server's endpoints, or the Python call of an `LLM` in this process."""

from typing import Any, Final, Protocol

import httpx

from kvtrail_agent.errors import ForeignInvalid, TransportUnavailable
from kvtrail_agent.importers.records import json_of

_TIMEOUT: Final = httpx.Timeout(5.0, connect=2.0)
_EVENTS: Final = "/kv_cache_events"
_STATS: Final = "/metrics"
_REQUESTS: Final = "/perf_metrics"
_NOT_THERE: Final = frozenset({404, 405, 501})


class TrtllmSource(Protocol):
    """**Protocol:** what is drained. Each call takes what there is since the last one: nobody else may read the same engine."""

    def events(self) -> list[object]:
        """Cache events. Raises `TransportUnavailable` where nobody answers now."""
        ...

    def figures(self) -> list[object]:
        """Iteration statistics and requests; empty where the engine does not keep them. Raises as `events`."""
        ...


class TrtllmServer:
    """`trtllm-serve` by its endpoints. `POST /kv_cache_events`, as its own router does; GET where a version wants that."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=_TIMEOUT, trust_env=False)
        self._verb = "POST"
        self._absent: set[str] = set()

    def events(self) -> list[object]:
        """Drain the cache events of the server."""
        found = self._asked(self._verb, _EVENTS)
        if found is None and self._verb == "POST":
            self._verb = "GET"
            found = self._asked(self._verb, _EVENTS)
        if found is None:
            raise TransportUnavailable(f"{self._client.base_url}{_EVENTS} is not there: start with event_buffer_max_size > 0")
        return found

    def figures(self) -> list[object]:
        """Drain statistics and requests; an endpoint that is not there is not asked again."""
        found: list[object] = []
        for path in (_STATS, _REQUESTS):
            answer = None if path in self._absent else self._asked("GET", path)
            if answer is None:
                self._absent.add(path)
            found += answer or []
        return found

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _asked(self, verb: str, path: str) -> list[object] | None:
        """A JSON array; None where there is no such endpoint."""
        try:
            response = self._client.request(verb, path)
        except httpx.HTTPError as error:
            raise TransportUnavailable(f"{self._client.base_url}{path}: {type(error).__name__}: {error}") from error
        if response.status_code in _NOT_THERE:
            return None
        if not response.is_success:
            raise TransportUnavailable(f"{self._client.base_url}{path} answered {response.status_code}")
        try:
            found = json_of(response.content or b"[]")
        except ForeignInvalid:
            # Something that is no array is one thing that cannot be read, and what was drained is gone.
            return [response.text[:200]]
        return found if isinstance(found, list) else [found]


class TrtllmCalls:
    """An `LLM` object of this process: `get_kv_cache_events` and, where it keeps them, `get_stats`."""

    def __init__(self, llm: Any, timeout_s: float = 0.0) -> None:
        self._llm = llm
        self._timeout_s = timeout_s

    def events(self) -> list[object]:
        """Drain the cache events. Versions that find none raise; that is no error."""
        return self._called("get_kv_cache_events")

    def figures(self) -> list[object]:
        """Drain the iteration statistics, which some versions give as texts of JSON."""
        found = self._called("get_stats")
        return [json_of(one.encode()) if isinstance(one, str) else one for one in found]

    def _called(self, name: str) -> list[object]:
        """What a call gives; nothing where the object has no such call."""
        call = getattr(self._llm, name, None)
        if call is None:
            return []
        try:
            return list(call(self._timeout_s) or [])
        except (IndexError, TimeoutError):
            return []
        except Exception as error:
            if type(error).__name__ in {"QueueEmpty", "Empty"}:
                return []
            raise TransportUnavailable(f"{name}: {type(error).__name__}: {error}") from error
