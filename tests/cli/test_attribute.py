"""`kvtrail attribute` as a person calls it: windows in wall time, references, gaps, and what is said of nonsense."""

import json
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from kvtrail_cli.errors import CommandError
from kvtrail_cli.main import APP
from kvtrail_collector.testing import RunningCollector, running_collector
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, encode_batch
from typer.testing import CliRunner, Result

from tests.collector.attribution.synthetic import SECOND, Fault, Plan, simulate
from tests.collector.frames import header

PLAN = Plan(seed=1, fault=Fault.NVME_SLOW)


@pytest.fixture(scope="module")
def recorded() -> Iterator[RunningCollector]:
    """A collector that holds a run in which reads of nvme are slow for 20 s."""
    events = simulate(PLAN).numbered()
    with running_collector() as running, httpx.Client(base_url=running.url, timeout=60.0) as client:
        for begin in range(0, len(events), 8_192):
            part = events[begin : begin + 8_192]
            body = encode_batch(header([event.seq for event in part], engine="one"), table_of(part))
            client.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE}).raise_for_status()
        yield running


def attribute(*words: str) -> Result:
    """Run the verb in this process: how a process ends is told by the tests of all verbs."""
    return CliRunner().invoke(APP, ["attribute", *words])


def test_a_window_in_wall_time(recorded: RunningCollector) -> None:
    """Wall time is turned to the engine's clock by the calibration of its batches; the answer says how to turn it back."""
    one = httpx.get(f"{recorded.url}/v1/engines", timeout=60.0).json()["engines"][0]
    wall_ns = int(PLAN.start_s * SECOND) + int(one["wall_offset_ns"])
    start = iso(wall_ns)
    done = attribute("--window", f"{start}..{iso(wall_ns + 20 * SECOND)}", "--json", "--url", recorded.url)
    answer = json.loads(done.stdout)

    assert done.exit_code == 0, done.exception
    assert abs(answer["window"]["start_ns"] + answer["clock_offset_ns"] - wall_ns) < 1_000
    assert ("TIER_SLOW", "nvme") == (answer["verdicts"][0]["code"], answer["verdicts"][0]["tier"])


def iso(wall_ns: int) -> str:
    """A wall time in ISO 8601, to the microsecond."""
    return f"{np.datetime64(wall_ns // 1_000, 'us')}Z"


def test_for_people(recorded: RunningCollector) -> None:
    """The headline says when it was, in wall time, and how much slower the tail; the reference can be given."""
    window, reference = f"{45 * SECOND}..{65 * SECOND}", f"{70 * SECOND}.."
    done = attribute("--window", window, "--reference", reference, "--url", recorded.url)
    shown = " ".join(done.stdout.split())

    assert done.exit_code == 0, done.exception
    assert "Spike of 20.0 s from 19" in shown
    assert "reference given" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--window", "noon"), "noon"),
        (("--window", "last 5m", "--start-ns", "1"), "twice"),
        (("--start-ns", "5"), "both bounds"),
        (("--window", "10..50", "--reference", "40..90"), "time in common"),
    ],
    ids=["no-time", "twice", "half", "overlap"],
)
def test_nonsense(recorded: RunningCollector, words: tuple[str, ...], said: str) -> None:
    """A window that is none is an error of one line that says what is wrong with it."""
    done = attribute(*words, "--url", recorded.url)

    assert isinstance(done.exception, CommandError)
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)


def test_gaps(recorded: RunningCollector) -> None:
    """Gaps are asked for by a flag; a run whose requests got one token each has none."""
    answer = json.loads(attribute("--gaps", "--json", "--url", recorded.url).stdout)

    assert ("gaps", "no request got two tokens") == (answer["measure"], answer["why_not"])
