"""Small tables of dataclasses: a title with a unit over each column; the table's own menu saves it as CSV."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """A field, its title, and how it is told: as `%.1f`, `bytes` (in MiB), `share`, or `moment` (UTC); none for text.

    A browser makes a column as wide as its first ten rows need: where a longer text may stand below, `width_px` makes room.
    """

    field: str
    title: str
    form: str | None = None
    width_px: int | None = None


def show_table(lines: Sequence[Any], columns: Sequence[Column]) -> None:
    """One row a line; `lines` are dataclasses with the columns' fields."""
    rows = [tuple(_value(line, column) for column in columns) for line in lines]
    frame = pd.DataFrame(rows, columns=[column.field for column in columns])
    config = {column.field: _config(column) for column in columns}
    st.dataframe(frame, hide_index=True, width="stretch", height="content", column_config=config)


def cut_caption(left_out: int, what: str, listed: str) -> None:
    """Below a table that a collector cut: how many rows are not in it, and which ones are; nothing below a whole one."""
    if left_out:
        st.caption(f"{left_out:,} more {what} are not listed: these are {listed}.")


def show_pairs(pairs: Sequence[tuple[str, str]], name: str) -> None:
    """Names and what they are."""
    frame = pd.DataFrame(pairs, columns=[name, "value"])
    st.dataframe(frame, hide_index=True, width="stretch", height="content")


def _config(column: Column) -> ColumnConfig:
    """How a column is told."""
    if column.form is None:
        return st.column_config.TextColumn(column.title, width=column.width_px)
    if column.form == "share":
        return st.column_config.ProgressColumn(column.title, min_value=0, max_value=1, format="percent")
    if column.form == "moment":
        return st.column_config.DatetimeColumn(column.title, format="YYYY-MM-DD HH:mm:ss.SSS", timezone="UTC")
    if column.form == "bytes":
        return st.column_config.NumberColumn(f"{column.title}, MiB", format="%.1f")
    return st.column_config.NumberColumn(column.title, format=column.form)


def _value(line: Any, column: Column) -> Any:
    """What stands in a cell: bytes in the unit that all pages tell sizes in."""
    value = getattr(line, column.field)
    return value / MIB if column.form == "bytes" and value is not None else value
