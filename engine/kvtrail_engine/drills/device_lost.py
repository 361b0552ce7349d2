"""The device is lost under an engine: its context answers nothing any more, as after a reset, and its memory is gone."""

from typing import Any

import torch

from kvtrail_engine.engine import Engine

_FAR = 1 << 40


class _Gone(torch.Tensor):
    """Memory of a device that is no more: whatever is asked of it, CUDA's own error is raised."""

    @classmethod
    def __torch_function__(cls, *_asked: Any, **_named: Any) -> Any:
        message = "CUDA error: device-side assert triggered (simulated)"
        raise torch.AcceleratorError(message)


def lose_device(engine: Engine) -> None:
    """Lose it for good: this process cannot use the device again, so call it in a process of its own. Returns at once.

    Real with CUDA: an index out of bounds trips an assertion on the device, after which CUDA refuses every call of the process.
    Without a device it is simulated: its memory is gone, and each use of it raises what CUDA raises.
    """
    engine.call_on_thread(lambda: _trip(engine) if engine.device.type == "cuda" else _simulate(engine))


def _trip(engine: Engine) -> None:
    """On the engine's thread; the launch returns before the assertion trips."""
    place = torch.full((1,), _FAR, dtype=torch.int64, device=engine.device)
    torch.zeros(1, device=engine.device)[place]


def _simulate(engine: Engine) -> None:
    """On the engine's thread."""
    engine.gpu_arena.data = torch.empty(0).as_subclass(_Gone)
