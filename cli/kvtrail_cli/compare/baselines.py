"""The baselines, before any load: one request at a time, by what a cache can know of its prompt."""

from collections.abc import Sequence

import numpy as np
from kvtrail_engine.request import RequestResult, Tokens
from kvtrail_schema.enums import Tier

from kvtrail_cli.compare.figures import median_ms
from kvtrail_cli.compare.fleet import Lane, turns
from kvtrail_cli.compare.plan import document, question
from kvtrail_cli.compare.shapes import Baseline
from kvtrail_cli.output import Advance

PREFIX_TOKENS = 512
REPEATS = 3
KINDS = ("cold", "warm", "partial", "miss")
_SERIES = 1_000
"""A number of scenario that no scenario has: baselines share no document with them."""


class Baselines:
    """Runs on every lane in turn, and keeps what was answered."""

    def __init__(self, lanes: Sequence[Lane], seed: int) -> None:
        self._lanes = lanes
        self._seed = seed
        self._draw = np.random.default_rng((seed, _SERIES))
        self.answers: dict[tuple[str, str], list[RequestResult]] = {(lane.path, kind): [] for lane in lanes for kind in KINDS}

    @property
    def total(self) -> int:
        """How many requests it makes."""
        return len(self._lanes) * len(KINDS) * REPEATS

    def run(self, advance: Advance, done: int, total: int) -> int:
        """Every kind, every repeat, every lane; how many requests are done then."""
        for kind in KINDS:
            for repeat in range(REPEATS):
                spec = question(f"baseline-{kind}-{repeat}", self._prefix(kind, repeat), self._draw)
                for lane in turns(self._lanes, repeat):
                    self._prepare(lane, kind)
                    self.answers[lane.path, kind].append(lane.ask(spec))
                    done += 1
                    advance(done, total)
        return done

    def figures(self) -> tuple[Baseline, ...]:
        """A line a path."""
        return tuple(Baseline(lane.path, *(median_ms(self.answers[lane.path, kind]) for kind in KINDS)) for lane in self._lanes)

    def _prefix(self, kind: str, repeat: int) -> Tokens:
        """What the question is about."""
        if kind == "cold":
            return document(self._seed, _SERIES, repeat, PREFIX_TOKENS)
        if kind == "warm":
            return document(self._seed, _SERIES, REPEATS - 1, PREFIX_TOKENS)
        other = document(self._seed, _SERIES, 100 + 10 * KINDS.index(kind) + repeat, PREFIX_TOKENS)
        if kind == "miss":
            return other
        known = document(self._seed, _SERIES, repeat, PREFIX_TOKENS // 2)
        return np.concatenate([known, other[PREFIX_TOKENS // 2 :]])

    def _prepare(self, lane: Lane, kind: str) -> None:
        """For a partial hit the gpu must not have the prefix itself."""
        if kind == "partial":
            lane.engine.ask(lambda: lane.engine.maintenance.clear(Tier.GPU))
