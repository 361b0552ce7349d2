"""A run to build facts from, simulated once."""

import pytest

from tests.collector.attribution.synthetic import Fault, Plan, Run, simulate


@pytest.fixture(scope="session")
def slow_run() -> Run:
    """Half a minute in which reads of nvme are slow for a while."""
    return simulate(Plan(seed=2, fault=Fault.NVME_SLOW, start_s=12, end_s=20, run_s=30))
