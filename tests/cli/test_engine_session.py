"""What a measured run leaves out of garbage collection, and that it gives it back."""

import gc

from kvtrail_cli.engine_session import frozen_heap


def test_what_is_loaded_is_not_looked_at_meanwhile() -> None:
    """A full collection has only what was made since to look at, and afterwards everything again."""
    before = gc.get_freeze_count()
    with frozen_heap():
        frozen, left = gc.get_freeze_count(), len(gc.get_objects())
    after = len(gc.get_objects())

    assert frozen > before
    assert left < after
    assert gc.get_freeze_count() == 0
