"""What happens when the engine itself has a defect."""

from dataclasses import replace
from pathlib import Path

import pytest
from kvtrail_engine.drills.device_lost import lose_device
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import EngineFailedError
from kvtrail_engine.settings import DeviceChoice
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.events import Error
from kvtrail_schema.reasons import ErrorReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny


def submit_many(engine: Engine) -> None:
    """Submit until somebody says no."""
    for number in range(1000):
        engine.submit(ask(number)).result(10)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_reaches_everybody_who_waits(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Senders hear of it, observers hear of it, and the engine takes no more."""
    engine = start_engine(tiny(data_dir))

    def defect() -> None:
        message = "on purpose"
        raise RuntimeError(message)

    engine.call_on_thread(defect)
    with pytest.raises(EngineFailedError, match="on purpose"):
        submit_many(engine)

    assert [event.reason for event in recorded.of(Error)] == [ErrorReason.INTERNAL]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_lost_device_is_told_as_the_devices(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Requests that are active, copies that meet it, and requests that come later all end, and the reason is named."""
    engine = start_engine(replace(tiny(data_dir), device=DeviceChoice.CPU))
    engine.submit(ask(1)).result(10)
    lose_device(engine)
    with pytest.raises(EngineFailedError, match="the device is lost"):
        submit_many(engine)

    assert {ErrorReason.DEVICE} == {event.reason for event in recorded.of(Error)} - {ErrorReason.IO}
