"""Recordings of real engines, where somebody has them: each imports with the counts that its makers state.

They lie in the folder that `KVTRAIL_SAMPLES` names, or in `shared/samples` beside this repository; they are no part of it.
"""

import os
from pathlib import Path

import pytest
from kvtrail_agent.importers.formats import FORMATS
from kvtrail_agent.importers.frames import Frames
from kvtrail_agent.importers.importing import Import, Totals
from kvtrail_agent.importers.outputs import TransportSender
from kvtrail_agent.testing import RecordingTransport
from kvtrail_schema.events import BlockCreated

from tests.attach.importers.payloads import KEY

FOLDER = Path(os.environ.get("KVTRAIL_SAMPLES", "") or Path(__file__).parents[4] / "shared" / "samples")
WIRE = {"BlockStored": 8, "BlockRemoved": 20, "AllBlocksCleared": 1}


def imported(format_name: str, name: str) -> tuple[Totals, RecordingTransport]:
    """Import a sample, or skip by its name."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"sample missing: {path}: set KVTRAIL_SAMPLES")
    transport = RecordingTransport()
    return Import(FORMATS[format_name], KEY, Frames(TransportSender(transport), 0)).run([path]), transport


@pytest.mark.parametrize(
    ("format_name", "name", "records", "seen"),
    [
        (
            *("vllm", "vllm-0.32.0-kv-events.jsonl", 54),
            {"BlockStored": 56, "BlockRemoved": 111, "AllBlocksCleared": 1},
        ),
        ("vllm", "vllm_wire_frames_int.jsonl", 8, WIRE),
        ("vllm", "vllm_wire_frames_bytes.jsonl", 8, WIRE),
        ("trtllm", "trtllm_golden_samples.json", 17, {"created": 3, "stored": 8, "updated": 5, "removed": 1}),
    ],
    ids=["vllm-0.32.0", "int", "bytes", "trtllm"],
)
def test_counts(format_name: str, name: str, records: int, seen: dict[str, int]) -> None:
    """All of a sample is read, nothing is unknown, nothing is missing, nothing is broken."""
    totals, _ = imported(format_name, name)

    assert (records, seen, {}, 0) == (totals.records, totals.seen, totals.unknown, totals.quarantined)
    assert 0 == sum(one.lost for one in totals.streams.values())


def test_both_forms_of_hashes_name_the_same_blocks() -> None:
    """A stream with hashes of 64 bits and one with whole digests, of the same run, tell of the same blocks."""
    ints, digests = (imported("vllm", f"vllm_wire_frames_{form}.jsonl")[1].events for form in ("int", "bytes"))
    blocks = [[event.block for event in events if isinstance(event, BlockCreated)] for events in (ints, digests)]

    assert blocks[0] == blocks[1]
