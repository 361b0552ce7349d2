"""hint-storm: very many sessions are announced, and go on elsewhere; what is fetched ahead for them, nobody uses."""

from dataclasses import replace
from typing import Final

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import SettingsError
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.request import RequestSpec
from kvtrail_engine.settings import EngineSettings, PrefetchSettings

TENANT: Final = "hasty-neighbour"
_BLOCKS: Final = 2
_DOCUMENTS_A_SESSION: Final = 4
_USE_IN_NS: Final = 2_000_000_000
_GROUPS: Final = 4
_STORE_S: Final = 60.0


class HintStorm(Drill):
    """So many sessions, each announced anew with another of its documents five times a second: seldom enough that what is read
    for it is there, and wasted, before the next one comes.

    Each read ahead takes its turn at nvme, where everybody's restores wait behind it. Unlike with `prefetch-flood`, whose guest
    reads by itself, it is the engine's own prefetcher that reads: an engine that is told to stop prefetching is rid of it.
    """

    name = "hint-storm"
    tier = Tier.NVME

    def __init__(self, seed: int = 0, sessions: int = 64) -> None:
        self._random = np.random.default_rng((seed, 6))
        self._sessions = sessions
        self._documents: list[RequestSpec] = []
        self._turn = 0

    @property
    def value(self) -> float:
        """How many sessions."""
        return float(self._sessions)

    def prepare(self, engine: Engine) -> None:
        """Have the documents computed once, and moved down to nvme."""
        if not engine.settings.prefetch.is_on:
            message = "hint-storm needs an engine that fetches ahead: set prefetch.window"
            raise SettingsError(message)
        tokens = _BLOCKS * engine.settings.block_tokens
        for number in range(self._sessions * _DOCUMENTS_A_SESSION):
            prompt = self._random.integers(0, engine.settings.model.vocabulary, tokens, dtype=np.int64)
            self._documents.append(RequestSpec(f"{TENANT}-{number}", prompt, 1, TENANT))
        for handle in [engine.submit(document) for document in self._documents]:
            handle.result(_STORE_S)
        settle(engine)
        sink(engine, Tier.NVME)
        engine.ask(lambda: engine.maintenance.clear(Tier.GPU))

    def begin(self, engine: Engine) -> None:
        """The first announcements."""
        self._announce(engine)

    def tick(self, engine: Engine, elapsed_s: float) -> None:
        """A part of the sessions is announced, each with its next document."""
        del elapsed_s
        self._announce(engine)

    def end(self, engine: Engine) -> None:
        """They are announced no more."""
        for session in range(self._sessions):
            engine.forget_hint(f"{TENANT}-{session}")

    def _announce(self, engine: Engine) -> None:
        """One turn: a part of the sessions at each tick, so that they do not come all at once."""
        group, turn = self._turn % _GROUPS, self._turn // _GROUPS
        for session in range(group, self._sessions, _GROUPS):
            document = self._documents[(turn % _DOCUMENTS_A_SESSION) * self._sessions + session]
            engine.hint(f"{TENANT}-{session}", document, _USE_IN_NS)
        self._turn += 1


def with_prefetch(settings: EngineSettings) -> EngineSettings:
    """The same engine, fetching ahead into host, from an nvme that few readers fill: so a storm needs few announcements."""
    nvme = replace(settings.nvme, workers=3)
    return replace(settings, nvme=nvme, prefetch=PrefetchSettings(window=16, gpu_reserve_slots=settings.gpu.slots))
