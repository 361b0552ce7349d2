"""From the observers that an engine was given to the one emitter that its thread calls.

None: a null emitter, whose every method is one shared no-op. One: that observer itself. Several: a fan-out. The engine
never asks which.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from kvtrail_schema.emitter import Emitter


def _nothing(*_args: Any, **_kwargs: Any) -> int:
    """Takes an event and forgets it; 0 says that nothing records."""
    return 0


class _Null:
    """Answers to every kind with the one no-op, kept as an instance attribute after its first use."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        setattr(self, name, _nothing)
        return _nothing


class _FanOut:
    """Answers to every kind by telling all observers in order; the first one's seq is returned."""

    def __init__(self, observers: Sequence[Emitter]) -> None:
        self._observers = tuple(observers)

    def __getattr__(self, name: str) -> Callable[..., int]:
        first, *others = [cast("Callable[..., int]", getattr(observer, name)) for observer in self._observers]

        def emit(*args: Any, **kwargs: Any) -> int:
            seq = first(*args, **kwargs)
            for other in others:
                other(*args, **kwargs)
            return seq

        setattr(self, name, emit)
        return emit


def emitter_of(observers: Sequence[Emitter]) -> Emitter:
    """The emitter for these observers. Costs a call of nothing where there are none. It does not close them."""
    if not observers:
        return cast("Emitter", _Null())
    if len(observers) == 1:
        return observers[0]
    return cast("Emitter", _FanOut(observers))
