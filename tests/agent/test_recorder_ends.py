"""What a recorder starts beside itself, and where it says that events lie which nobody took."""

import sys
from pathlib import Path

import pytest
from kvtrail_agent.spool import Spool
from kvtrail_schema.events import GpuSampled
from kvtrail_schema.reasons import SampleReason

from tests.agent.frames import frame_of
from tests.agent.test_nvml import Nvml
from tests.agent.test_recorder import recorded, start_unshipped
from tests.agent.waiting import wait_for


def test_gpus_are_sampled_where_a_setting_says_so(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of every device come at the interval, on a thread of their own, until the recorder ends."""
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(devices=2))
    recorder = start_unshipped(private_dir, nvml_interval_ms=10)
    wait_for(lambda: recorder.produced > 20, "samples")
    recorder.close()
    samples = [event for event in recorded(recorder) if isinstance(event, GpuSampled)]

    assert {0, 1} == {sample.device for sample in samples}
    assert len(samples) > 2
    assert all(sample.reason is None for sample in samples)


def test_without_the_library_one_event_says_so(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No driver and no library are no error: one sample that has nothing but its reason."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    recorder = start_unshipped(private_dir, nvml_interval_ms=10)
    recorder.close()
    samples = [event for event in recorded(recorder) if isinstance(event, GpuSampled)]

    assert [SampleReason.NO_DEVICE] == [sample.reason for sample in samples]


def test_nothing_is_sampled_unless_a_setting_says_so(private_dir: Path) -> None:
    """By default no driver is asked for anything."""
    recorder = start_unshipped(private_dir)
    recorder.close()

    assert not any(isinstance(event, GpuSampled) for event in recorded(recorder))


def test_where_events_lie_is_told(private_dir: Path) -> None:
    """The directory of the ring while the ring is there, that of the spool once something waits in it."""
    rings, spools = private_dir / "rings", private_dir / "spools"
    recorder = start_unshipped(rings, spool_dir=spools)
    recorder.close()
    only_ring = recorder.undelivered()
    spool = Spool(spools, recorder.ring_path.stem, recorder.ring_path, 1 << 20)
    spool.append(frame_of(1)[0])
    spool.close()
    both = recorder.undelivered()
    recorder.ring_path.unlink()

    assert (rings,) == only_ring
    assert (rings, spools) == both
    assert (spools,) == recorder.undelivered()
