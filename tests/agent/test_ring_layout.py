"""The layout of a ring: what lies where, and that nothing lies on top of anything else."""

import itertools
import struct

import pytest
from kvtrail_agent import ring_layout as layout
from kvtrail_schema.columns import COLUMNS, Width
from kvtrail_schema.kinds import FIELDS_OF, Kind

WORDS = [
    layout.READ_SEQ,
    layout.READ_TEXT,
    layout.READ_DROPS,
    layout.WRITTEN_DROPS,
    layout.STOPPED_SEQ,
    layout.READER_PID,
]


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_fits_its_slot(kind: Kind) -> None:
    """A record is 128 bytes, whatever its kind: fields end before the kind, the kind before the commit word."""
    codes = "".join(COLUMNS[name].width.code for name in FIELDS_OF[kind])

    assert layout.record_struct(kind).size == layout.RECORD_BYTES
    assert struct.calcsize(f"<q{codes}") <= layout.KIND_OFFSET


@pytest.mark.parametrize("kind", Kind)
def test_a_record_holds_each_field_once(kind: Kind) -> None:
    """The order of a record is a permutation of the fields of its class."""
    assert sorted(FIELDS_OF[kind]) == sorted(layout.record_fields(kind))


@pytest.mark.parametrize("kind", Kind)
def test_fields_are_aligned_without_padding(kind: Kind) -> None:
    """Packed and native layout are the same bytes: each field lies on a multiple of its width."""
    offset = layout.PAYLOAD_OFFSET
    for name in layout.record_fields(kind):
        codes = COLUMNS[name].width.code
        if codes != "16s":
            assert offset % struct.calcsize(f"<{codes[0]}") == 0, name
        offset += struct.calcsize(f"<{codes}")


def test_the_commit_word_ends_the_record() -> None:
    """Kind and commit word are the last five bytes of a slot, whatever its kind."""
    packed = layout.record_struct(Kind.STEP_STARTED).pack(0, 0, Kind.STEP_STARTED, 7)

    assert packed[layout.KIND_OFFSET] == Kind.STEP_STARTED
    assert (7).to_bytes(4, "little") == packed[layout.COMMIT_OFFSET :]


def test_a_kind_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who adds a field too many hears of it at import, by the kind's name and what to do."""
    monkeypatch.setitem(FIELDS_OF, Kind.STEP_STARTED, tuple(itertools.repeat("step", 20)))
    layout.record_fields.cache_clear()
    layout.record_struct.cache_clear()

    with pytest.raises(ValueError, match="step_started takes 168 bytes of 123: give it a text, or narrow a field"):
        layout.record_struct(Kind.STEP_STARTED)

    layout.record_fields.cache_clear()
    layout.record_struct.cache_clear()


def test_header_words_lie_apart() -> None:
    """Words that different sides write share no cache line, and lie between the identity and the table of drops."""
    assert layout.IDENTITY.size <= min(WORDS)
    assert max(WORDS) + layout.WORD_BYTES <= layout.HEADER_BYTES
    assert len(WORDS) == len({word // 64 for word in WORDS})
    assert all(word % layout.WORD_BYTES == 0 for word in WORDS)


def test_drop_entries_fill_their_table() -> None:
    """A drop entry is 32 bytes, its two seqs are whole words in it, and slots begin where the table ends."""
    packed = layout.DROP.pack(1, 2, 3, 4)

    assert layout.DROP.size == layout.DROP_BYTES
    assert (3).to_bytes(8, "little") == packed[layout.DROP_FIRST : layout.DROP_FIRST + 8]
    assert (4).to_bytes(8, "little") == packed[layout.DROP_LAST : layout.DROP_LAST + 8]
    assert layout.SLOTS_OFFSET == layout.HEADER_BYTES + layout.DROP_ENTRIES * layout.DROP_BYTES
    assert layout.SLOTS_OFFSET % layout.RECORD_BYTES == 0


@pytest.mark.parametrize("width", [width for width in Width if width not in {Width.F64, Width.TEXT, Width.TRACE}])
def test_absent_values_fit_their_width(width: Width) -> None:
    """The value that says "absent" can be packed in the width that it speaks for."""
    assert width.absent == struct.unpack(f"<{width.code}", struct.pack(f"<{width.code}", width.absent))[0]


def test_trace_ids_are_whole_or_refused() -> None:
    """A trace id is never cut or filled up: 32 digits, or none, or an error."""
    assert bytes(range(16)) == layout.trace_bytes("000102030405060708090a0b0c0d0e0f")
    assert layout.trace_bytes("") == layout.NO_TRACE_BYTES
    with pytest.raises(ValueError, match="trace_id of 2 bytes"):
        layout.trace_bytes("abcd")
