"""Trace files: what is wrong is told with its line, and what is right becomes requests of the asked size."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_engine.errors import SettingsError, TraceError
from kvtrail_engine.loadgen.from_trace import TraceScaling, arrivals_of
from kvtrail_engine.loadgen.trace import Trace, TraceRequest, read_trace


def line(timestamp: float = 0, input_length: int = 1000, output_length: int = 5, **more: Any) -> str:
    """One good line, or one with something changed."""
    ids = list(range(-(-input_length // 512)))
    return json.dumps(
        {"timestamp": timestamp, "input_length": input_length, "output_length": output_length, "hash_ids": ids, **more}
    )


def write(tmp_path: Path, *lines: str) -> Path:
    """A trace of these lines."""
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


WRONG = [
    ("{", "truncated"),
    ("[]", "Expected `object`"),
    (line(hash_ids="no"), "hash_ids"),
    (line(input_length=0, hash_ids=[]), "input_length is 0"),
    (line(output_length=0), "output_length is 0"),
    (line(hash_ids=[1]), "hash_ids has 1 ids, but input_length 1000 needs 2"),
    (line(hash_ids=[1, -2]), "hash_ids holds -2"),
    (line(timestamp=1), "timestamp 1 lies before the line above it (7)"),
    ('{"timestamp": 9}', "input_length"),
]


@pytest.mark.parametrize(("wrong", "problem"), WRONG)
def test_a_wrong_line_is_an_error_with_its_number(tmp_path: Path, wrong: str, problem: str) -> None:
    """File, line and what is wrong: enough to go and mend it."""
    path = write(tmp_path, line(7), "", wrong, line(8))
    with pytest.raises(TraceError) as caught:
        read_trace(path)

    assert caught.value.line == 3
    assert str(caught.value).startswith(f"{path}:3: ")
    assert problem in str(caught.value)


def test_wrong_lines_are_skipped_and_counted_only_when_asked(tmp_path: Path) -> None:
    """Skipping is a choice, and what was skipped is known."""
    trace = read_trace(write(tmp_path, line(1), *(wrong for wrong, _ in WRONG), line(9)), skip_bad_lines=True)

    assert trace.requests[0].timestamp == 1
    assert set(trace.skipped_lines) <= set(range(2, 11))
    assert len(trace.requests) + len(trace.skipped_lines) == 11


def test_a_limit_reads_no_further(tmp_path: Path) -> None:
    """Lines past the limit are not looked at, right or wrong."""
    trace = read_trace(write(tmp_path, line(1), line(2), "{"), limit=2)

    assert len(trace.requests) == 2


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    """No file is no trace."""
    with pytest.raises(TraceError, match="No such file"):
        read_trace(tmp_path / "nothing.jsonl")


def test_scaling_keeps_hash_blocks_whole() -> None:
    """With scale 16 a hash block is 32 tokens, and the same id is the same tokens in any request."""
    trace = Trace((TraceRequest(50, 1000, 160, (7, 8)), TraceRequest(150, 1536, 20, (7, 9, 10))), ())
    first, second = arrivals_of(trace, TraceScaling(scale=16, max_output_tokens=4, time_factor=10))

    assert (len(first.spec.prompt), len(second.spec.prompt)) == (62, 96)
    assert first.spec.prompt[:32].tolist() == second.spec.prompt[:32].tolist()
    assert first.spec.prompt[32:].tolist() != second.spec.prompt[32:62].tolist()
    assert (first.spec.output_tokens, second.spec.output_tokens) == (4, 1)
    assert (first.at_ns, second.at_ns) == (0, 10_000_000)


@pytest.mark.parametrize("scaling", [TraceScaling(scale=3), TraceScaling(scale=0), TraceScaling(time_factor=0)])
def test_a_scale_that_cuts_blocks_is_refused(scaling: TraceScaling) -> None:
    """A scale must leave hash blocks whole, and time must run forwards."""
    with pytest.raises(SettingsError):
        arrivals_of(Trace((), ()), scaling)


@given(length=st.integers(1, 4000), seed=st.integers(0, 3))
def test_prompts_are_a_function_of_ids_and_seed(length: int, seed: int) -> None:
    """Two readings of one trace give the same requests, with the lengths that the scale says."""
    trace = Trace((TraceRequest(0, length, 1, tuple(range(-(-length // 512)))),), ())
    first, second = (arrivals_of(trace, TraceScaling(seed=seed))[0].spec.prompt for _ in range(2))

    assert first.tolist() == second.tolist()
    assert len(first) == max(1, length // 16)
