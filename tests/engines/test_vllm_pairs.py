"""What recording costs a real engine: a figure, never a promise."""

import statistics
from pathlib import Path

import pytest
from kvtrail_collector.testing import running_collector

from tests.engines.runs import connector, prompts, run_script

PAIRS = 40
"""Single pairs differ by a factor of ten on two cores; of eight the median still moves by a half."""


def test_throughput_with_and_without(
    engines_python: Path, model: Path, tmp_path: Path, private_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Alternating pairs of the same work; the ratio of times is printed. Nothing is asserted of time."""
    with running_collector() as collector:
        wrapped = connector(tmp_path / "unused", {"engine": "pairs", "transport": collector.url})
        del wrapped["kv_connector_extra_config"]["inner"]
        spec = {
            "model": str(model),
            "connectors": {"without": None, "with": wrapped},
            "prompts": prompts(48),
            "tokens": 32,
            "pairs": PAIRS,
        }
        answer = run_script(engines_python, "pairs.py", spec, XDG_STATE_HOME=str(private_dir))
    ratios = sorted(pair["with"] / pair["without"] for pair in answer["pairs"])
    said = f"median {statistics.median(ratios):.3f}, {PAIRS} pairs from {ratios[0]:.3f} to {ratios[-1]:.3f}"
    with capsys.disabled():
        print(f"\nvLLM, time with our connector / without: {said}")  # noqa: T201 - the figure is what this is for

    assert PAIRS == len(ratios)
