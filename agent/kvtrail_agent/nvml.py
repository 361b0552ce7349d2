"""What NVIDIA's management library says of each device, as `gpu_sampled` events. Its own thread; nothing on the engine's.

```python
sampler = NvmlSampler(recorder)
sampler.start()
...
sampler.close()
```

Needs `nvidia-ml-py` (imported as `pynvml`) and a driver. Without them there is one event that says so, and no error.
"""

import importlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol, Self, TypeVar

from kvtrail_schema.absent import NO_F64, NO_U8, NO_U64
from kvtrail_schema.reasons import SampleReason

LOG: Final = logging.getLogger("kvtrail")
_JOIN_TIMEOUT_S: Final = 5.0
_KIB: Final = 1024
_TX, _RX = 0, 1  # which way PCIe throughput is asked for
_NOT_SUPPORTED: Final = 3  # NVML_ERROR_NOT_SUPPORTED
Value = TypeVar("Value")


class SampleEmitter(Protocol):
    """**Protocol:** the one method of an emitter that samples need; a recorder has it. Called on the sampler's thread."""

    def gpu_sampled(
        self,
        device: int,
        *,
        utilisation_pct: float = NO_F64,
        idle_pct: float = NO_F64,
        memory_bytes: int = NO_U64,
        pcie_rx_bytes_per_s: float = NO_F64,
        pcie_tx_bytes_per_s: float = NO_F64,
        power_mw: int = NO_U64,
        reason: SampleReason = NO_U8,
    ) -> int:
        """The state of a device; `reason` explains what is absent."""
        ...


class SamplerState(Enum):
    """What came of starting a sampler."""

    RUNNING = "running"
    NO_LIBRARY = "no_library"
    NO_DEVICE = "no_device"


def load_pynvml() -> Any:
    """The library; it has no types.

    Raises:
        ImportError: it is not installed.
    """
    return importlib.import_module("pynvml")


@dataclass(slots=True)
class _Reasons:
    """Why something was absent in one sample; an error outweighs a device that merely does not know."""

    found: set[SampleReason] = field(default_factory=set)

    @property
    def worst(self) -> SampleReason:
        """The reason that the event carries; none where all is there."""
        if SampleReason.ERROR in self.found:
            return SampleReason.ERROR
        return SampleReason.UNSUPPORTED if self.found else NO_U8


class NvmlSampler:
    """Samples every device at an interval, on a thread named `kvtrail-nvml`. A context manager, or call `close`."""

    def __init__(self, emitter: SampleEmitter, *, interval_s: float = 1.0, load: Callable[[], Any] = load_pynvml) -> None:
        self._emitter = emitter
        self._interval_s = interval_s
        self._load = load
        self._nvml: Any = None  # set by `start`, then read by the thread alone
        self._devices: list[Any] = []  # as `_nvml`
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> SamplerState:
        """Find the devices and begin. Runs once; some milliseconds; never raises. What is not there is said in one event."""
        state = self._open()
        if state is not SamplerState.RUNNING:
            self._emitter.gpu_sampled(0, reason=SampleReason.NO_DEVICE)
            return state
        self._thread = threading.Thread(target=self._run, name="kvtrail-nvml", daemon=True)
        self._thread.start()
        return state

    def close(self) -> None:
        """End the thread and let go of the library. Bounded; may be called again."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_JOIN_TIMEOUT_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def sample(self) -> None:
        """Record one sample of each device. Runs on the sampler's thread; a few driver calls a device; never raises."""
        for number, device in enumerate(self._devices):
            self._sample_device(number, device)

    def _open(self) -> SamplerState:
        """Load the library and get hold of the devices."""
        try:
            self._nvml = self._load()
        except ImportError:
            return SamplerState.NO_LIBRARY
        try:
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
            self._devices = [self._nvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
        except self._nvml.NVMLError as error:
            LOG.info("kvtrail: no samples of GPUs: %s", error)
            return SamplerState.NO_DEVICE
        return SamplerState.RUNNING if self._devices else SamplerState.NO_DEVICE

    def _run(self) -> None:
        """Sample at once, then at each interval, until closed."""
        while True:
            self.sample()
            if self._stop.wait(self._interval_s):
                break
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError as error:
            LOG.info("kvtrail: NVML did not close: %s", error)

    def _sample_device(self, number: int, device: Any) -> None:
        """One event of one device."""
        nvml, reasons = self._nvml, _Reasons()
        busy_pct = self._ask(lambda: float(nvml.nvmlDeviceGetUtilizationRates(device).gpu), NO_F64, reasons)
        self._emitter.gpu_sampled(
            number,
            utilisation_pct=busy_pct,
            idle_pct=100.0 - busy_pct,  # of an absent one, absent: it is NaN
            memory_bytes=self._ask(lambda: int(nvml.nvmlDeviceGetMemoryInfo(device).used), NO_U64, reasons),
            pcie_rx_bytes_per_s=self._ask(lambda: self._pcie_bytes_per_s(device, _RX), NO_F64, reasons),
            pcie_tx_bytes_per_s=self._ask(lambda: self._pcie_bytes_per_s(device, _TX), NO_F64, reasons),
            power_mw=self._ask(lambda: int(nvml.nvmlDeviceGetPowerUsage(device)), NO_U64, reasons),
            reason=reasons.worst,
        )

    def _pcie_bytes_per_s(self, device: Any, way: int) -> float:
        """The library counts in KiB/s, over 20 ms."""
        return float(self._nvml.nvmlDeviceGetPcieThroughput(device, way)) * _KIB

    def _ask(self, question: Callable[[], Value], absent: Value, reasons: _Reasons) -> Value:
        """The answer, or the absent value with its reason. The one place where the library's errors become ours."""
        try:
            return question()
        except self._nvml.NVMLError as error:
            is_unsupported = getattr(error, "value", None) == _NOT_SUPPORTED
            reasons.found.add(SampleReason.UNSUPPORTED if is_unsupported else SampleReason.ERROR)
            return absent
