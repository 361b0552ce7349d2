"""Bytes an event on the wire, and what encoding and decoding take, by the size of a batch: `python bench/wire_sizes.py`.

The events are those of `kvtrail bench ingest`: a hundred a request, ids that are random 64-bit numbers. Hundreds of requests
overlap, so that nearly every id of a small batch is new in it: eight bytes each that nothing can shorten. cpu-emulated.
"""

import statistics
import time
from typing import Final

from kvtrail_cli.bench.mix import EVENTS_A_REQUEST, Mix
from kvtrail_schema.batch import decode_batch, encode_batch

SIZES: Final = (64, 256, 1024, 4096, 8192, 16_384, 65_536)
REQUESTS: Final = 2_000
ROUNDS: Final = 5


def main() -> None:
    """One line a size, on the batch in the middle of the run."""
    print("events a batch · bytes an event · encode ns · decode ns")
    for size in SIZES:
        frames = list(Mix(max(REQUESTS, 3 * size // EVENTS_A_REQUEST), epoch=7, seed=7).frames(size))
        batch = decode_batch(frames[len(frames) // 2])
        encode, decode = [], []
        for _ in range(ROUNDS):
            begin = time.perf_counter_ns()
            frame = encode_batch(batch.header, batch.table)
            between = time.perf_counter_ns()
            decode_batch(frame)
            encode.append((between - begin) / size)
            decode.append((time.perf_counter_ns() - between) / size)
        print(f"{size:7,} {len(frame) / size:6.1f} {statistics.median(encode):8,.0f} {statistics.median(decode):8,.0f}")


if __name__ == "__main__":
    main()
