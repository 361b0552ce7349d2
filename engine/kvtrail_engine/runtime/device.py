"""Which device the model computes on, and how it is named on every result."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kvtrail_engine.errors import DeviceLostError, SettingsError
from kvtrail_engine.settings import DeviceChoice

CPU_LABEL = "cpu-emulated"
CUDA_LABEL = "cuda"


def choose_device(choice: DeviceChoice) -> torch.device:
    """The device for this choice.

    Raises:
        SettingsError: CUDA was asked for and is not there.
    """
    if choice is DeviceChoice.CUDA and not torch.cuda.is_available():
        message = "device is cuda, but torch finds no CUDA device; use auto or cpu"
        raise SettingsError(message)
    use_cuda = choice is not DeviceChoice.CPU and torch.cuda.is_available()
    return torch.device("cuda") if use_cuda else torch.device("cpu")


def label_of(device: torch.device) -> str:
    """The label of every figure that was taken on this device."""
    return CUDA_LABEL if device.type == "cuda" else CPU_LABEL


@contextmanager
def map_device_errors() -> Iterator[None]:
    """The only place where an error of the device becomes ours. After one the device's context answers nothing else."""
    try:
        yield
    except torch.AcceleratorError as exc:
        raise DeviceLostError(f"the device is lost: {exc}") from exc


def make_deterministic(device: torch.device) -> None:
    """One thread on the CPU, full fp32 on CUDA: the same shapes give the same bits. Settings of the whole process."""
    torch.set_num_threads(1)
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False


def settle_device(device: torch.device) -> None:
    """Wait for what was submitted while an engine was made. Blocks; called once, before it has threads.

    Arenas are zeroed on the compute stream, and copy streams do not wait for that one: a load at once could be zeroed again.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
