"""How much is worth fetching ahead: what the link brings in the time that is left. Pure."""

from dataclasses import dataclass

from kvtrail_schema.reasons import PrefetchSkipReason


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a window follows from, at one moment."""

    left_ns: int
    """Until the blocks will be used."""
    wait_ns: int
    """In the queue, before the first of them is read."""
    block_ns: int
    """For one block, once it is its turn: the inverse of the bandwidth."""
    left_blocks: int
    """Blocks of the prompt that lie in a slower tier."""
    room_bytes: int
    """Under the byte cap, beside what is fetched already and not used yet."""
    block_bytes: int
    most_blocks: int


@dataclass(frozen=True, slots=True)
class Window:
    """So many blocks are worth fetching; where none is, why not."""

    blocks: int
    limit: PrefetchSkipReason | None = None


def window(outlook: Outlook) -> Window:
    """The most blocks that can be there in time, that the cap allows, and that there are."""
    in_time = max(outlook.left_ns - outlook.wait_ns, 0) // max(outlook.block_ns, 1)
    under_cap = max(outlook.room_bytes, 0) // outlook.block_bytes
    blocks = min(in_time, under_cap, outlook.left_blocks, outlook.most_blocks)
    if blocks > 0 or outlook.left_blocks <= 0:
        return Window(max(blocks, 0))
    return Window(0, PrefetchSkipReason.BYTE_CAP if under_cap == 0 else PrefetchSkipReason.NO_BANDWIDTH)
