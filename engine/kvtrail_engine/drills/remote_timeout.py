"""remote-timeout: the remote's server stops answering for a while, again and again, and keeps what it holds."""

import signal

from kvtrail_schema.enums import Tier

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine
from kvtrail_engine.redis_process import RedisProcess


class RemoteTimeout(Drill):
    """Stops a server that we started ourselves for `pause_s` out of every `every_s`."""

    name = "remote-timeout"
    tier = Tier.REMOTE

    def __init__(self, server: RedisProcess, pause_s: float = 0.6, every_s: float = 1.5) -> None:
        self._server = server
        self._pause_s = pause_s
        self._every_s = every_s
        self._is_paused = False

    @property
    def value(self) -> float:
        """The share of time in which nobody answers."""
        return self._pause_s / self._every_s

    def begin(self, engine: Engine) -> None:
        """The first pause."""
        del engine
        self._pause()

    def tick(self, engine: Engine, elapsed_s: float) -> None:
        """Pause or go on, as the time says."""
        del engine
        if elapsed_s % self._every_s < self._pause_s:
            self._pause()
        else:
            self._go_on()

    def end(self, engine: Engine) -> None:
        """Let it answer."""
        del engine
        self._go_on()

    def _pause(self) -> None:
        """Stop the process, once."""
        if not self._is_paused:
            self._server.process.send_signal(signal.SIGSTOP)
            self._is_paused = True

    def _go_on(self) -> None:
        """Let the process run, once."""
        if self._is_paused:
            self._server.process.send_signal(signal.SIGCONT)
            self._is_paused = False
