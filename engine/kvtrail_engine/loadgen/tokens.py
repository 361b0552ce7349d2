"""Token ids that follow from a name: the same hash id always gives the same tokens, and nothing else does."""

import numpy as np

from kvtrail_engine.request import Tokens


class TokenSource:
    """Draws stretches of tokens by id and keeps the latest ones; a load asks for the same ones again and again."""

    def __init__(self, seed: int, vocabulary: int, stretch_tokens: int, keep: int = 4096) -> None:
        self._seed = seed
        self._vocabulary = vocabulary
        self._stretch_tokens = stretch_tokens
        self._keep = keep
        self._known: dict[int, Tokens] = {}

    def stretch(self, hash_id: int) -> Tokens:
        """The tokens of one id."""
        known = self._known.get(hash_id)
        if known is None:
            if len(self._known) >= self._keep:
                self._known.pop(next(iter(self._known)))
            drawn = np.random.default_rng((self._seed, hash_id))
            known = drawn.integers(0, self._vocabulary, self._stretch_tokens, dtype=np.int64)
            self._known[hash_id] = known
        return known

    def prompt(self, hash_ids: tuple[int, ...], tokens: int) -> Tokens:
        """The first `tokens` tokens of these stretches, one after the other."""
        if not hash_ids:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([self.stretch(hash_id) for hash_id in hash_ids])[:tokens]
