"""`kvtrail bench engine`: the reference engine's nvme tier, host copies and bookkeeping, each beside its peer."""

import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from kvtrail_cli.bench.engine_shapes import Beside, EngineBench
from kvtrail_cli.options import Json
from kvtrail_cli.output import OUT, print_json, progress

NAME: Final = "engine"


def command(  # noqa: PLR0917 - one parameter a flag
    size: Annotated[int, typer.Option(min=8, help="MiB that each round writes and reads on nvme.")] = 512,
    block: Annotated[int, typer.Option(min=16, max=4096, help="KiB of one block.")] = 256,
    op_blocks: Annotated[int, typer.Option(min=1, max=64, help="Blocks of one op.")] = 8,
    queue_depth: Annotated[int, typer.Option(min=1, max=64, help="Ops on their way at the same time.")] = 8,
    records: Annotated[int, typer.Option(min=100, help="Small records, in one segment and in as many files.")] = 4_000,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds in which ours and the peer take turns.")] = 7,
    directory: Annotated[Path | None, typer.Option(help="Where the files go, on the disk to be measured.")] = None,
    *,
    json: Json = False,
) -> None:
    """Measure the engine's tiers beside plain loops over the same bytes, and what its bookkeeping costs a step."""
    from kvtrail_cli.bench.engine import EngineLoad, bench_engine  # noqa: PLC0415 - loads torch

    load = EngineLoad(size, block, op_blocks, queue_depth, records, rounds)
    with tempfile.TemporaryDirectory(prefix="kvtrail-bench-", dir=directory) as folder, progress("rounds") as advance:
        found = bench_engine(load, Path(folder), advance)
    if json:
        print_json(found)
    else:
        OUT.print(_view(found))


def _view(found: EngineBench) -> Table:
    """The figures for people."""
    title = f"engine, {found.queue_depth} ops of {found.op_blocks} × {found.block_bytes >> 10} KiB at once"
    table = Table("figure", "ours", "peer", "ratio", "of best", title=f"{title}, direct I/O {found.direct_io} ({found.device})")
    rows = {
        "nvme read, GB/s, beside preadv": found.nvme_read_gb_per_s,
        "nvme write, GB/s, beside pwritev": found.nvme_write_gb_per_s,
        "host copy, GB/s, beside torch copy_": found.host_copy_gb_per_s,
        "small record, µs to write, beside a file each": found.small_write_us,
        "small record, µs to read, beside a file each": found.small_read_us,
        "small record, µs at a start, beside a file each": found.small_start_us,
    }
    for name, beside in rows.items():
        table.add_row(name, *_cells(beside))
    table.add_row("a whole step, µs", f"{found.step_us:,.0f}", "", "", "")
    bookkeeping = f"{found.step_overhead_us:,.0f}", f"{found.step_compute_us:,.0f}", f"{found.step_overhead_ratio:.2f}", ""
    table.add_row("bookkeeping of a step, µs, beside its compute", *bookkeeping)
    table.add_row("load of the machine before, per processor", f"{found.load_per_cpu:.1f}", "", "", "")
    return table


def _cells(beside: Beside) -> tuple[str, str, str, str]:
    """One row's figures."""
    return f"{beside.ours:,.2f}", f"{beside.peer:,.2f}", f"{beside.ratio:.2f}", f"{beside.ratio_of_best:.2f}"
