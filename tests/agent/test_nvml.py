"""Samples of GPUs: what the library says is recorded, what it does not is absent with its reason, and nothing is raised."""

import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kvtrail_agent.nvml import NvmlSampler, SamplerState, load_pynvml
from kvtrail_schema.absent import NO_U8
from kvtrail_schema.events import GpuSampled
from kvtrail_schema.reasons import SampleReason

from tests.agent.rings import events_in, make_ring
from tests.agent.waiting import wait_for
from tests.real import require_real


class NVMLError(Exception):
    """As the library's own, with its number."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


class Nvml:
    """The library as the sampler calls it, of two devices; named calls fail with a number."""

    NVMLError = NVMLError

    def __init__(self, devices: int = 2, **failures: int) -> None:
        self._devices = devices
        self._failures = failures
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Any call: remembered, and answered or refused."""
        answers: dict[str, Any] = {
            "nvmlDeviceGetCount": self._devices,
            "nvmlDeviceGetHandleByIndex": "device",
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=37, memory=12),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=5 << 30),
            "nvmlDeviceGetPcieThroughput": 2_000,
            "nvmlDeviceGetPowerUsage": 412_000,
        }

        def call(*_args: Any) -> Any:
            self.calls.append(name)
            if name in self._failures:
                raise NVMLError(self._failures[name])
            return answers.get(name)

        return call


def sampled(nvml: Nvml, folder: Path) -> list[GpuSampled]:
    """What one start and one sample of a sampler leave in a real ring."""
    ring = make_ring(folder)
    with NvmlSampler(ring.writer, interval_s=60.0, load=lambda: nvml):
        wait_for(lambda: ring.writer._last_seq() >= 1, "a sample")
    found = [event for event in events_in(ring.take()) if isinstance(event, GpuSampled)]
    ring.close()
    return found


def test_each_device_is_sampled(private_dir: Path) -> None:
    """Use, memory, both ways of PCIe and power, in the units of the contract, one event a device."""
    found = sampled(Nvml(), private_dir)
    first = found[0]

    assert [0, 1] == [event.device for event in found]
    assert (37.0, 63.0, 5 << 30) == (first.utilisation_pct, first.idle_pct, first.memory_bytes)
    assert (2_048_000.0, 2_048_000.0, 412_000) == (first.pcie_rx_bytes_per_s, first.pcie_tx_bytes_per_s, first.power_mw)
    assert first.reason is None


@pytest.mark.parametrize(
    ("call", "absent"),
    [
        ("nvmlDeviceGetUtilizationRates", {"utilisation_pct", "idle_pct"}),
        ("nvmlDeviceGetMemoryInfo", {"memory_bytes"}),
        ("nvmlDeviceGetPcieThroughput", {"pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"}),
        ("nvmlDeviceGetPowerUsage", {"power_mw"}),
    ],
)
@pytest.mark.parametrize(("number", "reason"), [(3, SampleReason.UNSUPPORTED), (15, SampleReason.ERROR)])
def test_what_is_absent_has_its_reason(
    call: str, absent: set[str], number: int, reason: SampleReason, private_dir: Path
) -> None:
    """One thing that a device cannot say takes away itself alone."""
    first = sampled(Nvml(**{call: number}), private_dir)[0]
    fields = ["utilisation_pct", "idle_pct", "memory_bytes", "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s", "power_mw"]

    assert absent == {name for name in fields if getattr(first, name) is None}
    assert reason is first.reason


def test_an_error_outweighs_a_device_that_does_not_know(private_dir: Path) -> None:
    """Where both happen the event says error: that is the one to look into."""
    first = sampled(Nvml(nvmlDeviceGetPowerUsage=3, nvmlDeviceGetMemoryInfo=15), private_dir)[0]

    assert SampleReason.ERROR is first.reason


class Kept:
    """An emitter that keeps its samples."""

    def __init__(self) -> None:
        self.samples: list[tuple[int, float, SampleReason]] = []

    def gpu_sampled(
        self, device: int, utilisation_pct: float = float("nan"), *_rest: Any, reason: Any = NO_U8, **_more: Any
    ) -> int:
        """Keep one."""
        self.samples.append((device, utilisation_pct, reason))
        return len(self.samples)


def no_library() -> Any:
    """As where `nvidia-ml-py` is not installed."""
    raise ModuleNotFoundError("No module named 'pynvml'")


@pytest.mark.parametrize(
    ("load", "state"),
    [
        (no_library, SamplerState.NO_LIBRARY),
        (lambda: Nvml(devices=0), SamplerState.NO_DEVICE),
        (lambda: Nvml(nvmlInit=9), SamplerState.NO_DEVICE),
    ],
    ids=["no library", "no device", "no driver"],
)
def test_a_machine_without_gpus_is_no_error(load: Callable[[], Any], state: SamplerState) -> None:
    """One event says that there is no device; no thread is left running."""
    kept = Kept()
    sampler = NvmlSampler(kept, load=load)

    assert state is sampler.start()

    sampler.close()

    assert [(0, SampleReason.NO_DEVICE)] == [(device, reason) for device, _, reason in kept.samples]
    assert math.isnan(kept.samples[0][1])


def test_samples_come_at_the_interval_until_closed() -> None:
    """At once, then again and again; after the end, none, and the library is let go of."""
    kept, nvml = Kept(), Nvml(devices=1)
    sampler = NvmlSampler(kept, interval_s=0.01, load=lambda: nvml)
    sampler.start()
    wait_for(lambda: len(kept.samples) >= 5, "five samples")
    sampler.close()
    count = len(kept.samples)
    sampler.close()

    assert count == len(kept.samples)
    assert "nvmlShutdown" == nvml.calls[-1]


@pytest.mark.gpu
def test_a_real_device_is_sampled() -> None:
    """On a machine with a GPU and its driver, memory in use is above zero."""
    require_real("nvidia-ml-py", found=find_spec("pynvml") is not None, how="pip install 'kvtrail[gpu]'")
    kept = Kept()
    with NvmlSampler(kept, interval_s=60.0, load=load_pynvml):
        wait_for(lambda: len(kept.samples) >= 1, "a sample")

    assert 0.0 <= kept.samples[0][1] <= 100.0
