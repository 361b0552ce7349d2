"""Promise of robustness: rows with any values at all end no diagnosis, and blind no rule."""

import os

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.diagnose import diagnose
from kvtrail_collector.loss_shapes import Loss
from kvtrail_schema.arrow_schema import EVENT_SCHEMA
from kvtrail_schema.columns import COLUMNS, Width, limits
from kvtrail_schema.kinds import Kind

ROWS = 400
TEXTS = ('{"a": 1}', "x", "{", "[]", "prefix_hits_total", '{"host_tier_bytes": 99, "memory_limit_bytes": 1, "ranks": 8}')
MOMENTS = (-(2**62), 0, 5, 10**9, 10**12, 2**62, 2**63 - 1, -(2**63) + 1)
SEEDS = range(100 if os.environ.get("KVTRAIL_LONG") == "1" else 4)


def garbage(seed: int) -> pa.Table:
    """Rows of every kind and some that are none, each field absent, small, or as large as can be."""
    rng = np.random.default_rng(seed)
    columns = [_column(name, rng, extreme=seed % 2 == 1) for name in EVENT_SCHEMA.names]
    return pa.Table.from_arrays(columns, schema=EVENT_SCHEMA)


def _column(name: str, rng: np.random.Generator, *, extreme: bool) -> "pa.Array[pa.Scalar[pa.DataType]]":
    """One column."""
    always = name in {"seq", "t_ns", "kind"}
    values = [value if always or rng.random() > 0.3 else None for value in _values(name, rng, extreme=extreme)]
    column: pa.Array[pa.Scalar[pa.DataType]] = pa.array(values, type=EVENT_SCHEMA.field(name).type)
    return column


def _values(name: str, rng: np.random.Generator, *, extreme: bool) -> list[object]:
    """Values of one column, all present."""
    width = COLUMNS[name].width
    bounds = limits(width)
    if bounds is None:
        choices: tuple[object, ...] = (True, False) if width is Width.BOOL else (-1e300, 0.5) if width is Width.F64 else TEXTS
    elif name == "seq":
        choices = tuple(range(1, 300))
    elif name == "kind":
        choices = tuple(range(max(Kind) + 3))
    elif name == "t_ns" and extreme:
        choices = MOMENTS
    else:
        choices = (*bounds, 0, 1, 2, 3, bounds[1] // 2) if extreme else tuple(range(9))
    return [choices[place] for place in rng.integers(0, len(choices), ROWS)]


@pytest.mark.parametrize("seed", SEEDS)
def test_any_rows_can_be_judged(seed: int) -> None:
    """Whatever a sender wrote, every rule is computed."""
    rows = garbage(seed)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("garbage", rows)
        connection.execute("CREATE TABLE events AS SELECT *, (seq % 3)::INTEGER AS stream_id, NULL::TEXT AS extra FROM garbage")
        connection.execute("CREATE TABLE streams (stream_id INTEGER, engine TEXT, epoch UBIGINT, rank USMALLINT)")
        connection.execute("INSERT INTO streams SELECT range, 'e', range, range FROM range(3)")
        found = diagnose(Scene(connection, Loss((), balanced=True)))

    assert [] == [one for one in found.missing if "could not be computed" in one.so_what]
