"""Writers that die in the middle: what they finished is read, what they did not is said."""

from pathlib import Path

from kvtrail_schema.identity import StepId
from kvtrail_schema.reasons import ErrorReason

from tests.agent.rings import SMALLEST_SLOTS, dropped_in, make_ring, settled_seqs


def test_nothing_is_read_past_an_unwritten_seq(private_dir: Path) -> None:
    """While the writer lives, its other threads may still fill a hole: order is kept, and reading waits."""
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(1))
    ring.lose_seq()
    ring.writer.step_started(StepId(3))
    chunk = ring.take()
    after = ring.take()
    ring.close()

    assert chunk.table["seq"].to_pylist() == [1]
    assert after.is_empty


def test_a_dead_writers_rest_is_read_whole(private_dir: Path) -> None:
    """Once the writer is dead, holes are (process, killed), and everything behind them is read."""
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(1))
    ring.lose_seq()
    ring.lose_seq()
    ring.writer.step_started(StepId(-1))
    ring.writer.error(ErrorReason.IO, text="last words")
    rest = ring.reader.read_rest()
    ring.close()

    assert rest.table["seq"].to_pylist() == [1, 5]
    assert rest.table["text"].to_pylist() == [None, "last words"]
    assert dropped_in(rest) == [("PROCESS", "KILLED", 2, 3), ("ENCODE", "ENCODE_ERROR", 4, 4)]


def test_the_rest_settles_each_seq_once(private_dir: Path) -> None:
    """Holes, known drops and rows of a dead writer, in any pattern, add up to what it produced."""
    ring = make_ring(private_dir)
    for number in range(SMALLEST_SLOTS + 9):
        if number % 5 == 0:
            ring.lose_seq()
        else:
            ring.writer.step_started(StepId(-1 if number % 7 == 0 else number))
    rest = ring.reader.read_rest()
    ring.close()

    assert list(range(1, SMALLEST_SLOTS + 10)) == settled_seqs(rest)


def test_an_empty_ring_has_no_rest(private_dir: Path) -> None:
    """A writer that emitted nothing left nothing, and nothing is declared about it."""
    ring = make_ring(private_dir)
    rest = ring.reader.read_rest()
    ring.close()

    assert rest.is_empty
    assert rest.drops == ()


def test_a_hole_can_be_given_up(private_dir: Path) -> None:
    """The unwritten seqs in front of the next written one become one drop, and what follows is read as ever."""
    ring = make_ring(private_dir)
    ring.lose_seq()
    ring.lose_seq()
    ring.writer.step_started(StepId(3))
    hole = ring.reader.read_hole()
    ring.reader.release(hole)
    after = ring.take()
    ring.close()

    assert dropped_in(hole) == [("ENCODE", "KILLED", 1, 2)]
    assert after.table["seq"].to_pylist() == [3]


def test_a_hole_among_drops_is_waited_for(private_dir: Path) -> None:
    """An unwritten seq between two dropped ones is no drop itself while its thread may still come back."""
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(-1))
    ring.lose_seq()
    ring.writer.step_started(StepId(-1))
    chunk = ring.take()
    after = ring.take()
    ring.close()

    assert dropped_in(chunk) == [("ENCODE", "ENCODE_ERROR", 1, 1)]
    assert after.is_empty


def test_a_hole_that_is_given_up_keeps_known_drops_apart(private_dir: Path) -> None:
    """What is known of the seqs behind a hole stays what it is, although nothing is written there."""
    ring = make_ring(private_dir)
    ring.lose_seq()
    ring.writer.step_started(StepId(-1))
    hole = ring.reader.read_hole()
    ring.reader.release(hole)
    after = ring.take()
    ring.close()

    assert dropped_in(hole) == [("ENCODE", "KILLED", 1, 1)]
    assert dropped_in(after) == [("ENCODE", "ENCODE_ERROR", 2, 2)]


def test_halves_settle_what_the_whole_did(private_dir: Path) -> None:
    """A chunk cut in two accounts for the same rows and drops, and the first half releases no text of the second."""
    ring = make_ring(private_dir)
    for number in range(20):
        ring.writer.error(ErrorReason.IO, text=f"text {number}")
        ring.writer.step_started(StepId(-1))
    whole = ring.reader.read(100)
    first, second = whole.halves()
    ring.reader.release(first)
    for size in (2000, 1900, 100):  # the last of them would go round the area, over the texts of the second half
        ring.writer.error(ErrorReason.IO, text="x" * size)
    again = ring.reader.read(first.table.num_rows)
    ring.close()

    assert settled_seqs(whole) == [*settled_seqs(first), *settled_seqs(second)]
    assert (whole.first_seq, whole.last_seq) == (first.first_seq, second.last_seq)
    assert first.last_seq + 1 == second.first_seq
    assert second.table["text"].to_pylist() == again.table["text"].to_pylist()
    assert again.table["text"].to_pylist()[-1] == "text 19"
