"""Epochs are exact for every reader of JSON."""

from kvtrail_agent.recorder import new_epoch


def test_epochs_are_exact_as_doubles() -> None:
    """Each is a whole number that a double holds, never 0, and never the same twice."""
    drawn = [new_epoch() for _ in range(1_000)]

    assert all(0 < epoch < 2**53 for epoch in drawn)
    assert len(drawn) == len(set(drawn))
