"""Computing a step on the device: one upload, the forward passes, one download; never a wait."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from kvtrail_engine.clock import Clock
from kvtrail_engine.model.transformer import Transformer
from kvtrail_engine.request import Tokens
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.runtime.compute import compute_timer
from kvtrail_engine.runtime.device import map_device_errors
from kvtrail_engine.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class Work:
    """One forward pass: tokens at a start, the slots of all blocks up to theirs, and whether a token is drawn."""

    tokens: Tokens
    start: int
    slots: Tokens
    is_sampled: bool
    keeps_logits: bool = False


@dataclass(frozen=True, slots=True)
class Sampled:
    """The token after a sampled pass, greedily, and its logits where they were asked for."""

    token: int
    logits: npt.NDArray[np.float32] | None


class Executor:
    """The engine's thread only; one step at a time. `launch`, then `is_done` until it is, then `collect`. Each raises
    `DeviceLostError` once there is no device any more.
    """

    def __init__(self, settings: EngineSettings, device: torch.device, arena: Arena, clock: Clock) -> None:
        self._device = device
        self._arena = arena
        self._model = Transformer(settings.model, settings.seed, settings.block_tokens, device)
        self._timer = compute_timer(device, clock)
        self._logits: torch.Tensor | None = None
        self._tokens: torch.Tensor | None = None
        self._kept: list[bool] = []

    def launch(self, works: list[Work]) -> None:
        """Submit all passes of a step, in order. On the CPU they are computed here and now."""
        self._kept = [work.keeps_logits for work in works if work.is_sampled]
        with map_device_errors(), torch.inference_mode():
            uploaded = self._upload(works)
            self._timer.begin()
            rows = self._run(works, uploaded)
            if rows:
                logits = torch.cat(rows)
                self._tokens = self._download(logits.argmax(-1))
                self._logits = self._download(logits) if any(self._kept) else None
            self._timer.end()

    def is_done(self) -> bool:
        """Whether the device has finished the step."""
        with map_device_errors():
            return self._timer.is_done()

    def device_ns(self) -> int:
        """The time that the device computed; once it is done."""
        with map_device_errors():
            return self._timer.device_ns()

    def collect(self) -> list[Sampled]:
        """What was sampled, in the order of the sampled works; once it is done."""
        if not self._kept or self._tokens is None:
            return []
        logits = self._logits
        # Copied, so that an answer that is kept for long holds its own row and not a step's pinned memory.
        kept = [logits[row].numpy().copy() if keeps and logits is not None else None for row, keeps in enumerate(self._kept)]
        return [Sampled(int(token), row) for token, row in zip(self._tokens.tolist(), kept, strict=True)]

    def _upload(self, works: list[Work]) -> torch.Tensor:
        """All token ids and slots of the step in one copy, so that the device is asked once."""
        packed = torch.from_numpy(np.concatenate([part for work in works for part in (work.tokens, work.slots)]))
        if self._device.type == "cpu":
            return packed
        return packed.pin_memory().to(self._device, non_blocking=True)

    def _download(self, result: torch.Tensor) -> torch.Tensor:
        """Into pinned memory, so that the copy waits for the device and this thread does not."""
        if self._device.type == "cpu":
            return result
        target = torch.empty(result.shape, dtype=result.dtype, pin_memory=True)
        return target.copy_(result, non_blocking=True)

    def _run(self, works: list[Work], uploaded: torch.Tensor) -> list[torch.Tensor]:
        """The passes, each on its own views of the upload; the logits of those that are sampled."""
        rows: list[torch.Tensor] = []
        at = 0
        for work in works:
            middle = at + len(work.tokens)
            stop = middle + len(work.slots)
            logits = self._model.forward(uploaded[at:middle], work.start, self._arena.data, uploaded[middle:stop])
            at = stop
            if work.is_sampled:
                rows.append(logits)
        return rows
