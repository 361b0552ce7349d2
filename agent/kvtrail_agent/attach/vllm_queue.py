"""Why requests of vLLM wait: said by what the scheduler did with the others in the same step."""

from collections.abc import Iterable
from typing import Any

from kvtrail_schema.emitter import Emitter
from kvtrail_schema.reasons import WaitReason

from kvtrail_agent.attach.vllm_request import Phase, Watched


class Queue:
    """Tells each change of reason once; used by the scheduler's thread. `most_*` are vLLM's own limits of a step.

    A request that was looked up and given no blocks waits for room (`capacity`). Those behind it wait since as many run as may
    (`limit`), since the tokens of the step are all given (`budget`), or for room, as it does. Where none of these holds nothing
    is said.
    """

    def __init__(self, emit: Emitter, most_running: int, most_tokens: int) -> None:
        self._emit = emit
        self._most_running = most_running
        self._most_tokens = most_tokens
        self._common: WaitReason | None = None
        self._fresh: list[Watched] = []
        self._asked: list[Watched] = []

    def came(self, watched: Watched) -> None:
        """A request waits from now on."""
        self._fresh.append(watched)

    def asked(self, watched: Watched) -> None:
        """The scheduler looked a request up in the step that it builds."""
        self._asked.append(watched)

    def built(self, waiting: Iterable[Watched], running: int, output: Any, now_ns: int) -> None:
        """A step was built: who is still waiting has a reason."""
        blocked = [one for one in self._asked if one.phase in {Phase.WAITING, Phase.PREEMPTED} and one.load is None]
        common = self._reason(running, int(output.total_num_scheduled_tokens), blocked=bool(blocked))
        for watched in blocked:
            self._say(watched, WaitReason.CAPACITY, now_ns)
        if common is not None:
            for watched in waiting if common is not self._common else self._fresh:
                if watched not in blocked:
                    self._say(watched, common, now_ns)
            self._common = common
            self._fresh.clear()
        self._asked.clear()

    def _reason(self, running: int, tokens: int, *, blocked: bool) -> WaitReason | None:
        """Why those wait that were not looked at."""
        if running >= self._most_running:
            return WaitReason.LIMIT
        if tokens >= self._most_tokens:
            return WaitReason.BUDGET
        return WaitReason.CAPACITY if blocked else None

    def loads(self, watched: Watched, now_ns: int) -> None:
        """A request waits for its load from now on."""
        watched.phase, watched.reason = Phase.LOADING, WaitReason.KV_LOAD
        self._emit.request_waiting(watched.req, WaitReason.KV_LOAD, t_ns=now_ns)

    def _say(self, watched: Watched, reason: WaitReason, now_ns: int) -> None:
        """A reason, where it is another than before."""
        if watched.phase in {Phase.WAITING, Phase.PREEMPTED} and watched.reason is not reason:
            watched.reason = reason
            self._emit.request_waiting(watched.req, reason, t_ns=now_ns)
