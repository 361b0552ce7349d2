"""Text that comes from elsewhere, made safe for Markdown."""

import re
from typing import Final

_SPECIAL: Final = re.compile(r"([\\*_{}\[\]()#+!|<>~$:&])")
_SPECIAL_AND_CODE: Final = re.compile(r"([\\`*_{}\[\]()#+!|<>~$:&])")
# Bare addresses become links even where escaped; a word joiner, which nobody sees, keeps them text.
_LINK: Final = re.compile(r":(?=//)|www(?=\.)|@", re.IGNORECASE)
_JOINER: Final = "\u2060"


def as_code(text: str) -> str:
    """Text as inline code."""
    return f"`{text.replace('`', ' ')}`"


def plain(text: str, *, code: bool = False) -> str:
    """Text as it is: nothing in it becomes a link, an image, an icon or a formula. `code` keeps backticks of our own."""
    text = _LINK.sub(lambda found: found.group() + _JOINER, " ".join(text.split()))
    if not code:
        return _SPECIAL_AND_CODE.sub(r"\\\1", text)
    pieces = text.split("`")
    return "`".join(piece if place % 2 else _SPECIAL.sub(r"\\\1", piece) for place, piece in enumerate(pieces))
