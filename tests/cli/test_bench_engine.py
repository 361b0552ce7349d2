"""Promises of `kvtrail bench engine`: each figure stands beside its peer's, and comes from a real run."""

from pathlib import Path

import msgspec
import pytest
from kvtrail_cli.bench.engine_rounds import in_turns
from kvtrail_cli.bench.engine_shapes import EngineBench
from kvtrail_cli.main import APP
from typer.testing import CliRunner


def test_ours_and_the_peer_take_turns() -> None:
    """Neither is always first, and the ratio is that of figures taken side by side."""
    order: list[str] = []

    def run(name: str, value: float) -> float:
        order.append(name)
        return value

    found = in_turns(lambda: run("ours", 3.0), lambda: run("peer", 2.0), 3, lambda: None)

    assert ["ours", "peer", "peer", "ours", "ours", "peer"] == order
    assert (3.0, 2.0, 1.5, 1.5) == (found.ours, found.peer, found.ratio, found.ratio_of_best)


@pytest.mark.timeout(300)
def test_a_run_answers_in_its_shape(tmp_path: Path) -> None:
    """A short run fills in every figure, and says what it was taken on."""
    flags = ["--size", "8", "--block", "16", "--rounds", "1", "--records", "100", "--directory", str(tmp_path), "--json"]
    done = CliRunner().invoke(APP, ["bench", "engine", *flags])
    found = msgspec.json.decode(done.stdout, type=EngineBench)
    besides = (found.nvme_read_gb_per_s, found.nvme_write_gb_per_s, found.host_copy_gb_per_s, found.small_start_us)

    assert 0 == done.exit_code
    assert min(min(beside.ours, beside.peer, beside.ratio) for beside in besides) > 0
    assert found.step_us > found.step_overhead_us > 0
    assert "cpu-emulated" == found.device
    assert [] == list(tmp_path.iterdir())
