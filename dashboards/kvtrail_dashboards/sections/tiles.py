"""Figures in large: what it is, how much, and what stands beside it; a sign says how it is to be taken."""

from collections.abc import Mapping, Sequence
from typing import Final

import streamlit as st

from kvtrail_dashboards.compute.now import Mood, Tile
from kvtrail_dashboards.sections.text import plain

_SIGNS: Final[Mapping[Mood, str]] = {
    Mood.GOOD: ":green[:material/check_circle:] ",
    Mood.FAIR: ":orange[:material/warning:] ",
    Mood.BAD: ":red[:material/error:] ",
    Mood.PLAIN: "",
}


def tiles_section(tiles: Sequence[Tile]) -> None:
    """A row of tiles."""
    for place, tile in zip(st.columns(len(tiles)), tiles, strict=True):
        with place.container(border=True, height="stretch"):
            st.metric(tile.label, tile.value)
            st.caption(f"{_SIGNS[tile.mood]}{plain(tile.detail)}")
