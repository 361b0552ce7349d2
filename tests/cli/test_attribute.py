"""`kvtrail attribute` as a person calls it: windows in wall time, references, gaps, and what is said of nonsense."""

import json
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from kvtrail_cli.errors import CommandError
from kvtrail_cli.main import APP
from kvtrail_cli.tables import attribution_view
from kvtrail_cli.tenant_names import names_of, with_names
from kvtrail_cli.verdicts_view import verdicts_view
from kvtrail_collector.attribution_shapes import Attribution, BlameRow, OtherSpike, Verdict, Window
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_collector.engine_shapes import Engines, Named
from kvtrail_collector.testing import RunningCollector, running_collector
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, encode_batch
from rich.console import Console
from typer.testing import CliRunner, Result

from tests.collector.attribution.synthetic import SECOND, Fault, Plan, simulate
from tests.collector.frames import header

WINDOW = Window(0, 1, 1, 1.0)
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
        (("--reference", "noon"), "--reference: 'noon'"),
        (("--reference", "90..40"), "--reference 90..40"),
    ],
    ids=["no-time", "twice", "half", "overlap", "no-reference", "empty-reference"],
)
def test_nonsense(recorded: RunningCollector, words: tuple[str, ...], said: str) -> None:
    """A window that is none is an error of one line that says what is wrong with it."""
    done = attribute(*words, "--url", recorded.url)

    assert isinstance(done.exception, CommandError)
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)


def test_other_spikes_are_told() -> None:
    """A person who is shown the worst spike hears of the others, from either verb."""
    others = (OtherSpike(0, 5_000_000_000, 210), OtherSpike(9_000_000_000, 10_500_000_000, 40))
    console = Console(width=200, record=True)
    console.print(attribution_view(Attribution(window=WINDOW, other_spikes=others[:1])))
    console.print(verdicts_view(Verdicts(1.0, WINDOW, (), (), others)))
    shown = console.export_text()

    assert "1 other spike besides (5.0 s, 210 requests)" in shown
    assert "2 other spikes besides (5.0 s, 210 requests, 1.5 s, 40 requests)" in shown


def test_names_of_the_operator() -> None:
    """People see what the operator calls a tenant, wherever it stands; what has no name keeps its hash."""
    verdict = Verdict("TIER_QUEUE", "nvme", "a1", None, 1.0, 1.0, "population", WINDOW, {"blamed_tenant": "a1", "n": 2}, (), "")
    found = Attribution(
        verdicts=(verdict,), blame=(BlameRow("q", "a1", "demand", 1, 0.5), BlameRow("q", "b2", "demand", 1, 0.5))
    )
    known = Engines(engines=[], tenants=[Named("a1", "acme"), Named("b2", "b2")], models=[])
    shown = with_names(found, names_of(known))

    assert ("acme", {"blamed_tenant": "acme", "n": 2}) == (shown.verdicts[0].tenant, shown.verdicts[0].evidence)
    assert ["acme", "b2"] == [row.tenant for row in shown.blame]


def test_a_window_that_is_no_slower(recorded: RunningCollector) -> None:
    """A window that is as fast as its reference is an answer, and a good one; too few requests leave it undecided."""
    quiet = attribute("--window", f"{25 * SECOND}..{40 * SECOND}", "--json", "--url", recorded.url)
    short = attribute("--window", f"{25 * SECOND}..{25 * SECOND + 1_000_000}", "--json", "--url", recorded.url)

    assert (0, "nothing_slower") == (quiet.exit_code, json.loads(quiet.stdout)["outcome"]), quiet.stdout
    assert (3, "undecided") == (short.exit_code, json.loads(short.stdout)["outcome"])


def test_gaps(recorded: RunningCollector) -> None:
    """Gaps are asked for by a flag; a run whose requests got one token each has none."""
    answer = json.loads(attribute("--gaps", "--json", "--url", recorded.url).stdout)

    assert ("gaps", "no request got two tokens") == (answer["measure"], answer["why_not"])
