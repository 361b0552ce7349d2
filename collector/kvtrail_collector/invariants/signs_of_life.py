"""What a stream did last, for verdicts on those that fell silent: `ENGINE_STALL` and `AGENT_DEAD`."""

from __future__ import annotations

from collections import deque
from typing import Final

from kvtrail_schema.enums import Reason
from kvtrail_schema.kinds import Kind

from kvtrail_collector.invariants.found import Found
from kvtrail_collector.invariants.rows import Rows

_MOST_OPEN: Final = 65_536
_BEATS: Final = 3
_NS_A_S: Final = 1_000_000_000
_ENDS: Final = (Kind.REQUEST_FINISHED, Kind.REQUEST_CANCELLED, Kind.REQUEST_REJECTED)
_IDLE: Final = (
    *(Kind.AGENT_HEARTBEAT, Kind.CAPACITY_SAMPLED, Kind.GPU_SAMPLED, Kind.COUNTER_SAMPLED, Kind.AGENT_STOPPED),
    *(Kind.EVENTS_DROPPED, Kind.CLOCK_STEPPED),
)
_OF_DRILLS: Final = (Kind.FAULT_INJECTED, Kind.FAULT_CLEARED)
_NEVER: Final = -(2**63)


class SignsOfLife:
    """Holds a few moments and the requests that run. Whether it is silent now is asked of it, not found in rows."""

    codes = ("ENGINE_STALL", "AGENT_DEAD")

    def __init__(self) -> None:
        self.last_ns = self.beat_ns = self.act_ns = _NEVER
        self.first_ns = -_NEVER - 1
        self.last_seq = self.act_seq = 0
        self.said_farewell = False
        self.has_beaten = False
        self._beats: deque[int] = deque(maxlen=_BEATS)
        self._running: dict[int, None] = {}
        self._unanswered: dict[int, None] = {}
        self._tells_ends = False
        self._is_full = False

    @property
    def is_sure(self) -> bool:
        """Whether no running request was forgotten."""
        return not self._is_full

    def look(self, rows: Rows) -> list[Found]:
        """Take rows in; finds nothing by itself."""
        self._hear(rows)
        self._act(rows)
        self._beat(rows)
        self._requests(rows)
        return []

    def stall_s(self) -> float | None:
        """For how long only heartbeats were heard though requests run; None where it is not so."""
        later = sum(1 for beat in self._beats if beat > self.act_ns)
        running = self._running if self._tells_ends else self._unanswered
        if not running or later < _BEATS or _NEVER in {self.act_ns, self.beat_ns}:
            return None
        return (self.beat_ns - self.act_ns) / _NS_A_S

    def _hear(self, rows: Rows) -> None:
        """When it was heard first and last; what drills say does not count."""
        heard = rows.other_than(*_OF_DRILLS)
        if not len(heard):
            return
        t_ns = rows.t_ns[heard]
        self.first_ns = min(self.first_ns, int(t_ns.min()))
        if int(t_ns.max()) >= self.last_ns:
            self.last_ns, self.last_seq = int(t_ns.max()), int(rows.seq[heard[int(t_ns.argmax())]])

    def _act(self, rows: Rows) -> None:
        """The last event of anything but measuring and living."""
        acts = rows.other_than(*_IDLE, *_OF_DRILLS)
        if len(acts):
            latest = acts[int(rows.t_ns[acts].argmax())]
            if rows.t_ns[latest] >= self.act_ns:
                self.act_ns, self.act_seq = int(rows.t_ns[latest]), int(rows.seq[latest])

    def _beat(self, rows: Rows) -> None:
        """Heartbeats; those of the recorder are beats of the process, others of who sends for it."""
        beats = rows.of(Kind.AGENT_HEARTBEAT)
        self.has_beaten = self.has_beaten or bool(len(beats))
        self._beats.extend(rows.t_ns[beats].tolist())
        own = beats[rows.numbers_at("reason", beats) == Reason.RECORDER]
        if len(own):
            self.beat_ns = max(self.beat_ns, int(rows.t_ns[own].max()))
        self.said_farewell = self.said_farewell or bool(len(rows.of(Kind.AGENT_STOPPED)))

    def _requests(self, rows: Rows) -> None:
        """Those that came and have not ended, and of them those without a first token; the newest of very many."""
        reqs = rows.ids("req")
        came = dict.fromkeys(reqs[rows.of(Kind.REQUEST_ARRIVED)].tolist())
        ended, answered = reqs[rows.of(*_ENDS)].tolist(), reqs[rows.of(Kind.REQUEST_FIRST_TOKEN)].tolist()
        self._tells_ends = self._tells_ends or bool(ended)
        self._keep(self._running, came, ended)
        self._keep(self._unanswered, came, [*answered, *ended])

    def _keep(self, running: dict[int, None], came: dict[int, None], gone: list[int]) -> None:
        """Requests that come, and that go."""
        running.update(came)
        for req in gone:
            running.pop(req, None)
        while len(running) > _MOST_OPEN:
            del running[next(iter(running))]
            self._is_full = True
