"""The life of a block for people: where its copies were, from when until when, and what ended them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kvtrail_dashboards.compute.event import EventLink, link_of_chain
from kvtrail_dashboards.compute.wall import moment
from kvtrail_dashboards.page_answers import Block, BlockCopy, EngineRow

MAX_COPIES: Final = 200
_LEAST: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class CopySpan:
    """One copy as a bar."""

    tier: str
    start: datetime
    end: datetime
    told: str


@dataclass(frozen=True, slots=True)
class BlockView:
    """What is shown of a block; `more` copies are not."""

    spans: tuple[CopySpan, ...]
    more: int
    chain: tuple[EventLink, ...]
    holes: int


def block_view(block: Block, engine: EngineRow) -> BlockView:
    """Lay out a block's life; a copy that is still there lasts until the newest moment that is known."""
    shown = block.copies[-MAX_COPIES:]
    return BlockView(
        spans=tuple(_span(copy, engine) for copy in shown),
        more=len(block.copies) - len(shown),
        chain=tuple(link_of_chain(link) for link in block.chain),
        holes=len(block.unknown),
    )


def _span(copy: BlockCopy, engine: EngineRow) -> CopySpan:
    """One copy as a bar that can be seen, however short it was."""
    newest = engine.last_ns or 0
    start_ns = copy.from_ns if copy.from_ns is not None else engine.first_ns or 0
    end_ns = copy.to_ns if copy.to_ns is not None else max(newest, start_ns)
    start, end = moment(start_ns + engine.wall_offset_ns), moment(end_ns + engine.wall_offset_ns)
    ended = (copy.ended_by or "ended, nobody knows by what").replace("_", " ") if copy.to_ns is not None else "still there"
    slot = "" if copy.slot is None else f"slot {copy.slot}; "
    return CopySpan(copy.tier or "not said", start, max(end, start + _LEAST), f"{slot}{ended}")
