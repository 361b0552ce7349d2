"""Golden bytes: frames written by every version ever released, and what they must be read as by this one."""

from pathlib import Path

import msgspec
import pytest
from kvtrail_schema.arrow_schema import events_of
from kvtrail_schema.batch import BatchHeader, decode_batch, name_of, peek_header, unknown_in
from kvtrail_schema.enums import Stage
from kvtrail_schema.errors import ChecksumMismatch, CodecError, NotABatch
from kvtrail_schema.jsonl import read_file
from kvtrail_schema.kinds import Kind, kind_of
from kvtrail_schema.reasons import DropReason

GOLDEN = Path(__file__).parent / "golden"
FRAMES = sorted(GOLDEN.glob("*.bin"))
PREFIX_BYTES = 14
SMALL = (GOLDEN / "v3-killed.bin").read_bytes()


def test_golden_frames_are_there() -> None:
    """A checkout without them would test nothing and say that all is well."""
    always = ("every-kind", "header-from-a-newer-sender", "killed")
    expected = {f"v{version}-{name}" for version in (1, 2, 3) for name in always}
    expected |= {"v2-overlapping-requests", "v3-overlapping-requests"}

    assert expected == {path.stem for path in FRAMES}


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.stem)
def test_golden_frame_reads_as_its_events(path: Path) -> None:
    """Bytes from the past mean today what they meant then, field by field."""
    expected = [line.event for line in read_file(str(path.with_suffix(".jsonl")))]

    assert expected == events_of(decode_batch(path.read_bytes()).table)


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.stem)
def test_golden_header_reads_as_it_was_written(path: Path) -> None:
    """The books of a stream rest on its headers: produced, drops, clocks, state."""
    expected = msgspec.json.decode(path.with_suffix(".header.json").read_bytes(), type=BatchHeader)
    header = peek_header(path.read_bytes())

    assert expected == msgspec.structs.replace(header, body_bytes=0)
    assert header == decode_batch(path.read_bytes()).header


def test_what_a_newer_sender_says_of_drops_is_kept_and_counted() -> None:
    """A stage, a reason or a state that this version does not know refuses no frame: it is kept, shown by number, counted."""
    header = peek_header((GOLDEN / "v1-header-from-a-newer-sender.bin").read_bytes())

    assert ("state=17", "stage=42", "reason=251", "stage=43", "reason=252") == unknown_in(header)
    assert ["unknown-42", "ring", "unknown-43"] == [name_of(Stage, drop.stage) for drop in header.drops]
    assert ["full", "unknown-251", "unknown-252"] == [name_of(DropReason, drop.reason) for drop in header.drops]


def test_golden_frame_holds_every_kind() -> None:
    """No kind of the first version escapes the promise; a kind added later brings a frame of its own."""
    events = [line.event for path in FRAMES for line in read_file(str(path.with_suffix(".jsonl")))]

    assert set(Kind) == {kind_of(event) for event in events}


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.stem)
def test_every_flipped_byte_is_noticed(path: Path) -> None:
    """Whatever happens to one byte on the way, the frame is refused by an error of the codec."""
    for position, frame in enumerate(_flipped(path.read_bytes(), 0xFF)):
        with pytest.raises(NotABatch if position < 4 else CodecError):
            decode_batch(frame)


def test_every_flipped_bit_is_noticed() -> None:
    """The same, bit by bit, on a small frame."""
    for bit in range(8):
        for position, frame in enumerate(_flipped(SMALL, 1 << bit)):
            with pytest.raises(_expected(position)):
                decode_batch(frame)


def _flipped(frame: bytes, mask: int) -> list[bytes]:
    """The frame with one byte changed, at each position in turn."""
    return [frame[:at] + bytes([frame[at] ^ mask]) + frame[at + 1 :] for at in range(len(frame))]


def _expected(position: int) -> type[CodecError]:
    """The error that a change at a position ends in: mark, version, length, checksum and what it covers."""
    if position < 4:
        return NotABatch
    if position < 6:
        return CodecError  # an unknown version, or one that the checksum was not begun with
    return CodecError if position < 10 else ChecksumMismatch


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.stem)
def test_every_truncation_is_noticed(path: Path) -> None:
    """A frame that was cut is never taken for a shorter one."""
    frame = path.read_bytes()

    for length in range(len(frame)):
        with pytest.raises(NotABatch if length < PREFIX_BYTES else CodecError):
            decode_batch(frame[:length])


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.stem)
def test_bytes_behind_a_frame_are_noticed(path: Path) -> None:
    """Two frames run together are not one frame."""
    with pytest.raises(ChecksumMismatch):
        decode_batch(path.read_bytes() + b"\0")
