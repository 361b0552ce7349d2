"""Bytes an event on the wire, and what encoding and decoding take, by the size of a batch: `python bench/wire_sizes.py`.

The events are those of `kvtrail bench ingest`: a hundred a request, 25 columns, ids that are random 64-bit numbers. An engine
that records 50,000 events a second works on some 75 requests at once; one that records ten times as many, on ten times as
many requests, and then nearly every id of a batch is new in it: eight bytes each that nothing can shorten. cpu-emulated.
"""

import statistics
import time
from typing import Final

from kvtrail_cli.bench.mix import EVENTS_A_REQUEST, REQUEST_EVERY_NS, Mix
from kvtrail_schema.batch import decode_batch, encode_batch, peek_header

SIZES: Final = (1, 16, 64, 100, 256, 1024, 4096, 8192, 65_536)
RATES: Final = {"50,000": 10 * REQUEST_EVERY_NS, "500,000": REQUEST_EVERY_NS}
REQUESTS: Final = 2_000
ROUNDS: Final = 5


def main() -> None:
    """One line a rate and size: sizes as the mean of frames in the middle of a run, times of one of them."""
    print("events a second · a batch · bytes an event · bytes a frame · encode, decode ns an event · decoded events a second")
    for rate, every_ns in RATES.items():
        for size in SIZES:
            mix = Mix(max(REQUESTS, 3 * size // EVENTS_A_REQUEST), epoch=7, seed=7, request_every_ns=every_ns)
            line(rate, size, middle(mix, size))


def middle(mix: Mix, size: int) -> list[bytes]:
    """Frames from the middle of a run."""
    whole = mix.table()
    first = whole.num_rows // 2 // size * size
    part = mix.frames_of(whole.slice(first, 16 * size), size)
    return [frame for frame in part if peek_header(frame).count == size]


def line(rate: str, size: int, frames: list[bytes]) -> None:
    """Measure, and print."""
    batch = decode_batch(frames[0])
    encode, decode = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        encode_batch(batch.header, batch.table)
        between = time.perf_counter_ns()
        decode_batch(frames[0])
        encode.append((between - begin) / size)
        decode.append((time.perf_counter_ns() - between) / size)
    mean, decode_ns = statistics.mean(len(frame) for frame in frames), statistics.median(decode)
    times = f"{statistics.median(encode):9,.0f} {decode_ns:9,.0f} {1e9 / decode_ns:11,.0f}"
    print(f"{rate:>8} {size:7,} {mean / size:6.1f} {mean:9,.0f} {times}")


if __name__ == "__main__":
    main()
