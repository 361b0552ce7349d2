"""Transfers that are taken as they are kept are what all of their rows say, whatever is missing of them."""

import random
from dataclasses import fields

import msgspec
import numpy as np
import pytest
from kvtrail_collector.facts_ops import OpColumns, op_columns
from kvtrail_collector.facts_rows import rows_of_table
from kvtrail_collector.questions.rows import event_rows, streams
from kvtrail_collector.questions.window_look import Look
from kvtrail_collector.questions.window_ops import window_ops
from kvtrail_collector.testing import memory_store
from kvtrail_schema.events import Event, SwapInFailed, SwapInLoaded
from kvtrail_schema.identity import NamespaceId
from kvtrail_schema.reasons import SwapInFailReason

from tests.collector.attribution.synthetic import Run
from tests.collector.frames import events_batch

EVER = (-(2**62), 2**62)


def spoiled(events: list[Event], rng: random.Random) -> list[Event]:
    """Some transfers fail, some rows are lost, some name a namespace, some parts stand on two rows."""
    told: list[Event] = []
    for event in events:
        chance = rng.random()
        if isinstance(event, SwapInLoaded) and chance < 0.1:
            own = {name: getattr(event, name) for name in SwapInFailed.__struct_fields__ if hasattr(event, name)}
            told.append(SwapInFailed(**own, reason=SwapInFailReason.IO))
        elif isinstance(event, SwapInLoaded) and chance < 0.2:
            told += [event, msgspec.structs.replace(event, t_ns=event.t_ns + 7, io_ns=3)]
        elif isinstance(event, SwapInLoaded) and chance < 0.3:
            told.append(msgspec.structs.replace(event, ns=NamespaceId(9)))
        elif chance > 0.1:
            told.append(event)
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(told, start=1)]


@pytest.mark.parametrize("seed", [1, 2])
def test_kept_transfers_are_what_rows_say(slow_run: Run, seed: int) -> None:
    """Every column of every transfer, of one that failed, lost rows, or was told twice."""
    events = spoiled(slow_run.numbered()[:20_000], random.Random(seed))
    with memory_store() as store:
        store.submit(events_batch(events)).result()
        with store.read() as cursor:
            known = streams(cursor)
            found = window_ops(Look.at(cursor, known, EVER))
            expected = op_columns(rows_of_table(event_rows(cursor, known)))

    assert len(expected.op) > 500
    assert [] == [field.name for field in fields(OpColumns) if not _is_same(expected, found, field.name)]


def _is_same(one: OpColumns, other: OpColumns, name: str) -> bool:
    """Whether a column of both is the same."""
    return np.array_equal(getattr(one, name), getattr(other, name))
