"""The engine's own machinery, each part beside its peer."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kvtrail_cli.bench.engine_host import bench_host
from kvtrail_cli.bench.engine_nvme import NvmeBench, NvmeLoad
from kvtrail_cli.bench.engine_shapes import Beside, EngineBench
from kvtrail_cli.bench.engine_small import SmallBench
from kvtrail_cli.bench.engine_steps import bench_steps
from kvtrail_cli.output import Advance

KIB = 1024


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """How much is moved."""

    total_mib: int
    block_kib: int
    op_blocks: int
    queue_depth: int
    small_records: int
    rounds: int

    def nvme(self) -> NvmeLoad:
        """Whole ops only."""
        op_kib = self.block_kib * self.op_blocks
        ops = max(self.total_mib * KIB // op_kib, self.queue_depth)
        return NvmeLoad(ops * self.op_blocks, self.block_kib * KIB, self.op_blocks, self.queue_depth)


def bench_engine(load: EngineLoad, directory: Path, advance: Advance) -> EngineBench:
    """Measure in a folder that lies on the disk to be measured. Blocks for about a minute with the usual load."""
    done, busy = 0, os.getloadavg()[0] / (os.cpu_count() or 1)

    def step() -> None:
        nonlocal done
        done += 1
        advance(done, 6 * load.rounds)

    nvme = load.nvme()
    reads, writes, direct_io = _nvme(directory / "nvme", nvme, load.rounds, step)
    small = SmallBench(directory, load.small_records)
    small_writes, small_reads, small_starts = small.measure(load.rounds, step)
    small.close()
    host = bench_host(nvme.block_bytes, load.op_blocks, load.rounds, step)
    step_us, compute_us = bench_steps(directory / "engine")
    return EngineBench(
        nvme_read_gb_per_s=reads,
        nvme_write_gb_per_s=writes,
        host_copy_gb_per_s=host,
        small_write_us=small_writes,
        small_read_us=small_reads,
        small_start_us=small_starts,
        step_us=step_us,
        step_compute_us=compute_us,
        step_overhead_us=step_us - compute_us,
        step_overhead_ratio=(step_us - compute_us) / compute_us,
        queue_depth=load.queue_depth,
        block_bytes=nvme.block_bytes,
        op_blocks=load.op_blocks,
        total_bytes=nvme.total_bytes,
        direct_io=direct_io,
        rounds=load.rounds,
        load_per_cpu=busy,
    )


def _nvme(directory: Path, load: NvmeLoad, rounds: int, step: Callable[[], None]) -> tuple[Beside, Beside, str]:
    """The nvme tier's figures; its files are gone afterwards."""
    bench = NvmeBench(directory, load)
    try:
        reads, writes = bench.measure(rounds, step)
    finally:
        bench.close()
    return reads, writes, bench.direct_io
