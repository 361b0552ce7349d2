"""Promises of rows that are left out before ledgers are computed: no ledger is another one without them."""

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.facts_build import recording_of_table
from kvtrail_collector.ledger_columns import ledgers_of
from kvtrail_collector.ledger_thin import thinned
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event, SwapInLoaded, SwapInQueued
from kvtrail_schema.identity import BlockId, OpId, RequestId

from tests.collector.frames import table
from tests.collector.ledger.stories import crowds, numbered

PARTS = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
BLOCKS = 40


def told(events: list[Event]) -> pa.Table:
    """Events as the rows of one stream."""
    plain = table(events)
    names: dict[str, pa.Array[Any]] = {
        "engine": pa.array(["engine"] * len(events), pa.utf8()),
        "epoch": pa.array([1] * len(events), pa.uint64()),
        "rank": pa.array([1] * len(events), pa.uint16()),
    }
    for name, values in names.items():
        plain = plain.append_column(name, values)
    return plain


@st.composite
def of_blocks(draw: st.DrawFn) -> list[Event]:
    """Events of some requests, in which rows of transfers stand once a block, at times that are near each other."""
    found: list[Event] = []
    for event in draw(crowds()):
        found.append(event)
        if hasattr(event, "op") and hasattr(event, "src"):
            for block in range(draw(st.integers(0, 4))):
                other: dict[str, Any] = {"block": BlockId(block), "t_ns": max(0, (event.t_ns or 0) + draw(st.integers(-9, 9)))}
                bare = dict.fromkeys((name for name in PARTS if hasattr(event, name) and draw(st.integers(0, 4))), None)
                found.append(msgspec.structs.replace(event, **other, **bare))
    return numbered(found)


@given(of_blocks())
@settings(max_examples=25)
def test_no_ledger_is_another(events: list[Event]) -> None:
    """Whatever stands on the rows of a transfer, with holes as the whole says, the ledgers are the same."""
    rows = told(events)
    whole = recording_of_table(rows)
    holes = {stream: list(own) for stream, own in zip(whole.rows.streams, whole.rows.holes, strict=True)}
    some = recording_of_table(thinned(rows), holes, now_ns=max(event.t_ns or 0 for event in events))
    one, other = ledgers_of(whole.columns), ledgers_of(some.columns)

    assert np.array_equal(one.end_ns, other.end_ns)
    for shown, again in ((one.parts, other.parts), (one.hidden, other.hidden)):
        assert shown.codes.tolist() == again.codes.tolist()
        assert np.array_equal(shown.ns, again.ns)


def test_rows_of_blocks_go() -> None:
    """Of a transfer of many blocks the ends of each of its stations are left, and the row with its parts."""
    place: dict[str, Any] = {"op": OpId(1), "src": Tier.NVME, "dst": Tier.GPU, "req": RequestId(1)}
    queued = [SwapInQueued(t_ns=100 + block, block=BlockId(block), **place) for block in range(BLOCKS)]
    loaded = [
        SwapInLoaded(t_ns=900 - block, block=BlockId(block), io_ns=7 if not block else None, **place) for block in range(BLOCKS)
    ]
    left = thinned(told(numbered([*queued, *loaded])))

    assert [100, 139, 861, 900] == sorted(left["t_ns"].to_numpy().tolist())
    assert [7] == left["io_ns"].drop_null().to_pylist()
