"""The remote tier as a whole: its records, the breaker in front of them, and the thread that asks whether it is back."""

from typing import NamedTuple, Protocol

from kvtrail_engine.errors import RemoteLostError
from kvtrail_engine.settings import RemoteSettings
from kvtrail_engine.tiers.breaker import Breaker, BreakerStatistics, Prober
from kvtrail_engine.tiers.keeping import WallTerms
from kvtrail_engine.tiers.remote_store import RemoteStore, RemoteStoreStatistics


class RemoteListener(Protocol):
    """**Protocol:** hears whether the remote is there; called on the probing thread, in turn; must not block."""

    def remote_lost(self) -> None:
        """It is given up for now."""
        ...

    def remote_back(self, *, has_kept_all: bool) -> None:
        """It answers again, with nothing in it where it began anew."""
        ...


class RemoteStatistics(NamedTuple):
    """The remote tier at one moment; queue and pool have statistics of their own."""

    breaker: BreakerStatistics
    records: RemoteStoreStatistics


class RemoteTier:
    """Made and closed by the engine; blocks then for at most a few timeouts.

    Raises:
        SettingsError: the server refuses us.
    """

    def __init__(self, settings: RemoteSettings, store: RemoteStore, terms: WallTerms, listener: RemoteListener) -> None:
        self.settings = settings
        self.store = store
        self.terms = terms
        self.breaker = Breaker(settings.failures_to_open)
        self._listener = listener
        self._prober = Prober(
            self.breaker,
            settings.cooldown_ns,
            is_back=self.store.is_back,
            on_lost=listener.remote_lost,
            on_back=self._back,
        )
        try:
            self.store.check()
        except RemoteLostError:
            self.breaker.trip()

    def start(self) -> None:
        """Begin to watch. A remote that could not be reached at first is lost from here on, until it can be."""
        self._prober.start()

    def close(self) -> None:
        """End the probing and hang up."""
        self._prober.close()
        self.store.close()

    def statistics(self) -> RemoteStatistics:
        """From any thread."""
        return RemoteStatistics(self.breaker.statistics(), self.store.statistics())

    def _back(self) -> None:
        """It answers: see whether it still has what we wrote."""
        try:
            has_kept_all = self.store.has_kept_all()
        except RemoteLostError:
            self.breaker.trip()
            has_kept_all = True
        self._listener.remote_back(has_kept_all=has_kept_all)
