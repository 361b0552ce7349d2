"""Runs that several tests look at, simulated once."""

import pytest

from tests.collector.attribution.synthetic import Fault, Plan, Run, simulate


@pytest.fixture(scope="session")
def slow_run() -> Run:
    """A run in which reads of nvme are slow for 20 s."""
    return simulate(Plan(seed=1, fault=Fault.NVME_SLOW))


@pytest.fixture(scope="session")
def healthy_run() -> Run:
    """A run in which nothing goes wrong."""
    return simulate(Plan(seed=1))
