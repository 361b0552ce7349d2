"""Text that comes from elsewhere, made safe for Markdown."""

import re
from typing import Final

_SPECIAL: Final = re.compile(r"([\\*_{}\[\]()#+!|<>~$:&])")
_SPECIAL_AND_CODE: Final = re.compile(r"([\\`*_{}\[\]()#+!|<>~$:&])")


def plain(text: str, *, code: bool = False) -> str:
    """Text as it is: nothing in it becomes a link, an image, an icon or a formula. `code` keeps backticks of our own."""
    if not code:
        return _SPECIAL_AND_CODE.sub(r"\\\1", text)
    pieces = text.split("`")
    return "`".join(piece if place % 2 else _SPECIAL.sub(r"\\\1", piece) for place, piece in enumerate(pieces))
