"""Small made-up populations, for figures that can be checked by hand."""

import numpy as np
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause, Population

CAUSES = (Cause(Component.BUDGET, None), Cause(Component.STORAGE_READ, "nvme"), Cause(Component.NEW_PREFILL, None))
MS = 1_000_000


def population(amounts: list[list[int]], every_ns: int = 30 * MS, at: IntArray | None = None) -> Population:
    """Requests that arrive at equal distances, or at given times, and spent these amounts on the causes."""
    arrived = np.arange(len(amounts), dtype=np.int64) * every_ns if at is None else at
    table = np.array(amounts, dtype=np.int64).reshape(len(amounts), len(amounts[0]) if amounts else 0)
    latency = table.sum(axis=1)
    return Population(
        causes=CAUSES[: table.shape[1]],
        arrived_ns=arrived,
        latency_ns=latency,
        censored=np.zeros(len(amounts), dtype=np.bool_),
        amounts_ns=table,
        prompt_tokens=np.full(len(amounts), 100),
        model=np.zeros(len(amounts), dtype=np.int64),
        tenant=np.zeros(len(amounts), dtype=np.int64),
        place=np.arange(len(amounts)),
    )
