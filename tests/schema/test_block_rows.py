"""One call for many rows says the same as one call a row."""

from kvtrail_schema.block_rows import each_row


def test_rows_of_a_call() -> None:
    """What holds for an op stands on its first row, ids count up, and blocks that are created are a chain."""
    fields = {"op": 3, "queue_ns": 7, "keep_estimate_ns": 9, "id": 20, "parent": 4, "token_start": 64, "tokens": 16}
    expected = [
        fields | {"block": 5, "slot": 1},
        {"op": 3, "id": 21, "parent": 5, "token_start": 80, "tokens": 16, "block": 6, "slot": 2},
        {"op": 3, "id": 22, "parent": 6, "token_start": 96, "tokens": 16, "block": 7, "slot": 3},
    ]

    assert expected == list(each_row([5, 6, 7], [1, 2, 3], fields))


def test_what_is_absent_stays_so() -> None:
    """Nothing is counted up from a value that says that there is none; no slots are no slots."""
    fields = {"id": 2**64 - 1, "parent": 2**64 - 1, "token_start": 2**32 - 1, "tokens": 16}

    assert [fields | {"block": block} for block in (5, 6)] == list(each_row([5, 6], None, fields))
