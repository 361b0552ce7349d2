"""A live run: recorded by a real recorder, judged from the recording alone, and not made twice."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from kvtrail_cli.drill.judge import Judged, Truth, judge
from kvtrail_cli.drill.live import LivePlan, judge_recording, name_of, record, run_live
from kvtrail_cli.drill.recordings import table_of, truth_of
from kvtrail_cli.drill.results import Results
from kvtrail_cli.errors import InputInvalid
from kvtrail_engine.drills.profile import Scenario
from kvtrail_engine.drills.registry import Strength
from kvtrail_schema.kinds import Kind

SHORT_S = 4.0


@pytest.fixture(scope="module")
def recorded_flood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one short recording."""
    folder = tmp_path_factory.mktemp("live")
    scenario = Scenario("tenant-flood", 1, Strength.MILD, SHORT_S)
    record(scenario, folder / name_of(scenario))
    return folder


def test_a_recording_has_every_event_and_the_truth_beside_it(recorded_flood: Path) -> None:
    """Nothing is missing in seq, and what was injected stands in a file of its own."""
    table = table_of(recorded_flood / "tenant-flood-mild-1")
    truth = truth_of(recorded_flood / "tenant-flood-mild-1")
    seqs = np.sort(table["seq"].to_numpy()).tolist()

    assert seqs == list(range(1, len(seqs) + 1))
    assert truth is not None
    assert truth.faults == ("tenant-flood",)
    assert truth.start_ns is not None
    assert Kind.FAULT_INJECTED.value not in set(table["kind"].to_pylist())


def test_a_run_that_is_there_is_not_made_again(recorded_flood: Path) -> None:
    """A recording without a judgement is judged; with one, nothing is done at all."""
    plan = LivePlan(("tenant-flood",), (Strength.MILD,), (1,))
    told: list[str] = []
    for _ in range(2):
        results = Results(recorded_flood / "results.jsonl", "v1")
        run_live(plan, recorded_flood, results, lambda _done, _total: None, lambda judged: told.append(judged.run.name))

    assert told == ["tenant-flood-mild-1"]
    assert json.loads((recorded_flood / "results.jsonl").read_text(encoding="utf-8"))["faults"] == ["tenant-flood"]


def test_the_neighbour_is_known_as_the_events_name_it(recorded_flood: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tenants are hashed in events; the truth finds the drill's one by the names of its requests."""
    folder, truths = recorded_flood / "tenant-flood-mild-1", list[Truth]()

    def noting(table: pa.Table, truth: Truth, seconds: float) -> Judged:
        """Judges, and keeps what it was told of the truth."""
        truths.append(truth)
        return judge(table, truth, seconds)

    monkeypatch.setattr("kvtrail_cli.drill.live.judge", noting)
    judged = judge_recording(folder)
    events = table_of(folder).select(["kind", "ns", "text"]).to_pylist()
    named = [row["ns"] for row in events if "flood-neighbour-" in (row["text"] or "")]
    declared = {row["ns"]: json.loads(row["text"]) for row in events if row["kind"] == Kind.NAMESPACE_DECLARED.value}

    assert judged.run.requests > len(named) > 10
    assert {truths[0].neighbour} == {declared[ns]["tenant"] for ns in named}
    assert {truths[0].neighbour} < {each["tenant"] for each in declared.values()}


def test_a_recording_that_was_cut_short_is_none(tmp_path: Path) -> None:
    """Without the truth that is written last there is nothing to judge."""
    with pytest.raises(InputInvalid, match="no whole recording"):
        judge_recording(tmp_path)
