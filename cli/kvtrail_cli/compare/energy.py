"""What the device took, as its driver counts it; where nobody counts, the reason."""

from dataclasses import dataclass
from typing import Any, Final

_MJ_PER_J: Final = 1000


@dataclass(frozen=True, slots=True)
class NoMeter:
    """Nobody counts the device's energy, and why."""

    reason: str


class NvmlMeter:
    """The counter of one NVIDIA device, through its driver's own library."""

    def __init__(self, nvml: Any, device: int) -> None:
        self._nvml = nvml
        self._handle = nvml.nvmlDeviceGetHandleByIndex(device)

    def joules(self) -> float:
        """Energy since the driver was loaded."""
        millijoules: int = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        return millijoules / _MJ_PER_J


def energy_meter(device: str) -> NvmlMeter | NoMeter:
    """The meter of the device that a run is labelled with."""
    if device != "cuda":
        return NoMeter("no NVIDIA device: the engine computes on the CPU")
    try:
        import pynvml  # noqa: PLC0415 - only machines with a device have it
    except ModuleNotFoundError:
        return NoMeter("nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
        meter = NvmlMeter(pynvml, 0)
        meter.joules()
    except pynvml.NVMLError as error:
        return NoMeter(f"the driver does not count it: {error}")
    return meter
