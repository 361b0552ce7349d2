"""The form of a record: what goes in comes out, and nothing that was changed is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_engine.errors import ChecksumError, RecordMissingError, TransferError
from kvtrail_engine.tiers.block import Block
from kvtrail_engine.tiers.envelope import (
    NO_PARENT,
    Header,
    Keeping,
    Origin,
    Stamp,
    check_whole,
    checksum,
    read_header,
    write_frame,
)
from kvtrail_schema.enums import Dtype
from kvtrail_schema.identity import BlockId, NamespaceId, Slot

ALIGN, SIZE = 512, 1024
RECORD = SIZE + 2 * ALIGN
U64 = st.integers(0, NO_PARENT - 1)
NAMES = st.text(max_size=40)

blocks = st.builds(
    Block,
    id=U64.map(BlockId),
    ns=U64.map(NamespaceId),
    parent=st.none() | U64.map(BlockId),
    token_start=st.integers(0, 2**32 - 1),
    tokens=st.integers(0, 2**32 - 1),
    owner=NAMES,
    model_version=NAMES,
    dtype=st.sampled_from(Dtype),
    content=U64,
)
keepings = st.builds(Keeping, st.integers(0, 100), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
headers = st.builds(
    Header,
    block=blocks,
    slot=st.integers(0, 2**32 - 1).map(Slot),
    generation=U64,
    length=st.integers(0, SIZE),
    keeping=keepings,
    origin=st.builds(Origin, U64, U64),
    store=st.binary(min_size=16, max_size=16),
)
payloads = st.binary(min_size=SIZE, max_size=SIZE)


def record_of(header: Header, payload: bytes, tag: bytes = bytes(16)) -> bytearray:
    """A record as it lies in a file."""
    record = bytearray(RECORD)
    view = memoryview(record)
    view[ALIGN:-ALIGN] = payload
    write_frame(header, Stamp(checksum(payload), tag), view[:ALIGN], view[-ALIGN:])
    return record


def check(record: bytes | bytearray) -> tuple[Header, Stamp]:
    """What a record says, or why it is not believed."""
    view = memoryview(bytes(record))
    return check_whole(view[:ALIGN], view[ALIGN:-ALIGN], view[-ALIGN:])


def example() -> bytearray:
    """One record."""
    block = Block(BlockId(7), NamespaceId(1), BlockId(6), 32, 32, "acme", "v1")
    return record_of(Header(block, Slot(3), 9, SIZE, Keeping(), Origin(77), bytes(range(16))), bytes(range(256)) * 4)


@given(header=headers, payload=payloads, tag=st.binary(min_size=16, max_size=16))
def test_what_goes_in_comes_out(header: Header, payload: bytes, tag: bytes) -> None:
    """Every field of a header survives, whatever is in it."""
    assert (header, Stamp(checksum(payload), tag)) == check(record_of(header, payload, tag))


def test_every_flipped_byte_is_noticed() -> None:
    """No byte of header, payload, trailer or the zeros between them can be wrong and be believed."""
    record = example()
    for at in range(RECORD):
        record[at] ^= 0xFF
        with pytest.raises(ChecksumError):
            check(record)
        record[at] ^= 0xFF

    assert check(record)[0].block.id == 7


@given(at=st.integers(0, RECORD - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(at: int, bit: int) -> None:
    """No single bit can be wrong and be believed."""
    record = example()
    record[at] ^= 1 << bit
    with pytest.raises(ChecksumError):
        check(record)


@given(old=headers, new=headers, payloads=st.tuples(payloads, payloads), cut=st.integers(1, RECORD - 1))
def test_a_write_that_was_cut_off_is_no_record(old: Header, new: Header, payloads: tuple[bytes, bytes], cut: int) -> None:
    """Wherever a write over an older record ends early, what lies there is the old record, the new one, or none."""
    before, after = record_of(old, payloads[0]), record_of(new, payloads[1])
    torn = after[:cut] + before[cut:]
    try:
        found = check(torn)
    except TransferError:
        return

    assert bytes(torn) in {bytes(before), bytes(after)}
    assert found[0] in {old, new}


@given(junk=st.binary(min_size=RECORD, max_size=RECORD))
def test_junk_is_no_record(junk: bytes) -> None:
    """Bytes that nobody wrote as a record are never taken for one."""
    with pytest.raises(TransferError):
        check(junk)


def test_a_place_that_was_never_written_is_missing() -> None:
    """Zeros are told from something wrong."""
    with pytest.raises(RecordMissingError):
        read_header(memoryview(bytes(ALIGN)))


def test_a_form_that_is_not_known_is_refused() -> None:
    """A record of a later version is not guessed at, though it is whole."""
    record = example()
    record[28] = 99
    record[ALIGN - 8 : ALIGN] = checksum(record[: ALIGN - 8]).to_bytes(8, "little")
    with pytest.raises(ChecksumError, match="form 99"):
        read_header(memoryview(record)[:ALIGN])
