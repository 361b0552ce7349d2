"""`kvtrail compare`: the same requests on five paths (gpu-only, host, nvme, remote, recompute), in turn."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kvtrail_cli.errors import Exit
from kvtrail_cli.options import Json
from kvtrail_cli.output import OUT, note, print_json, progress

NAME = "compare"


class SweepPath(StrEnum):
    """The path that a sweep runs on."""

    HOST = "host"
    NVME = "nvme"
    REMOTE = "remote"


def command(  # noqa: PLR0917 - one parameter a flag
    requests: Annotated[int, typer.Option(min=4, help="Requests on each path, over all scenarios.")] = 240,
    seed: Annotated[int, typer.Option(help="Seed of weights and load.")] = 0,
    slo: Annotated[float, typer.Option(min=1, help="Goodput counts answers whose first token came within this (ms).")] = 40.0,
    sweep: Annotated[
        str | None, typer.Option(help="Then change one setting of the engine at a time: name=a,b,c, as op_blocks=4,8,16.")
    ] = None,
    sweep_path: Annotated[SweepPath, typer.Option(help="The path that the sweep runs on.")] = SweepPath.NVME,
    picture: Annotated[Path | None, typer.Option(help="Draw it into this file (.svg or .html).")] = None,
    remote_url: Annotated[
        str | None,
        typer.Option(help="A Redis server for the remote path (redis:// or rediss://); absent: a redis-server of its own."),
    ] = None,
    remote_password_file: Annotated[Path | None, typer.Option(help="Its password, in a file of mode 0600.")] = None,
    *,
    json: Json = False,
) -> None:
    """Run the same fixed requests on five paths in turn, and show which one wins where."""
    from kvtrail_cli.compare.picture import check_picture, write_picture  # noqa: PLC0415 - only this verb draws

    check_picture(picture)
    from kvtrail_cli.compare.run import CompareChoice, run_compare  # noqa: PLC0415 - loads torch

    choice = CompareChoice(requests, seed, slo, sweep, sweep_path.value, remote_url, remote_password_file)
    with progress("compare: requests answered") as advance:
        answer = run_compare(choice, advance)
    if picture is not None:
        write_picture(answer, picture)
        note(f"picture: {picture}")
    if json:
        print_json(answer)
    else:
        from kvtrail_cli.compare.view import compare_view  # noqa: PLC0415 - only people need it

        OUT.print(compare_view(answer))
    has_errors = any(figures.error_rate for figures in answer.paths)
    raise typer.Exit(Exit.GOOD if answer.outputs_equal and not has_errors else Exit.BAD)
