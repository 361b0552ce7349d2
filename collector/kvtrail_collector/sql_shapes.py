"""What `kvtrail sql` answers; loads no database."""

from typing import Any

import msgspec

Cell = bool | int | float | str | list[Any] | dict[str, Any] | None


class SqlAnswer(msgspec.Struct, frozen=True):
    """Rows of a query by the names of its columns; `is_cut` where there are more than were asked for."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_cut: bool
    schema: int = 1
