"""The results file: one JSON line a run, appended when the run is over, so that a run that is there is not made again.

One that other code judged, or that was made from something else, is as good as not there.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kvtrail_cli.drill.shapes import Run
from kvtrail_cli.errors import InputInvalid


class Results:
    """Used by one process at a time. Killed in the middle of a line, it has all lines before."""

    def __init__(self, path: Path, judged_by: str) -> None:
        self._path = path
        self._judged_by = judged_by
        self._runs = {name: run for name, run in _read(path).items() if run.judged_by == judged_by}

    def of(self, names: Iterable[str]) -> list[Run]:
        """Those of some runs that are there; of one that was judged again, the last judgement."""
        return [self._runs[name] for name in names if name in self._runs]

    def has(self, name: str) -> bool:
        """Whether a run is there."""
        return name in self._runs

    def add(self, run: Run) -> None:
        """Keep a run: on the disk when this returns."""
        run = msgspec.structs.replace(run, judged_by=self._judged_by)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(run) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._runs[run.name] = run


def _read(path: Path) -> dict[str, Run]:
    """The runs of a file by name; what a kill cut off at its end is left out.

    Raises:
        InputInvalid: it is no file of results.
    """
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    whole = [line for line in lines if line.endswith(b"\n")]
    if whole != lines:
        path.write_bytes(b"".join(whole))
    try:
        runs = [msgspec.json.decode(line, type=Run) for line in whole]
    except msgspec.MsgspecError as error:
        message = f"{path} is no file of results ({error}): name another folder by --dir"
        raise InputInvalid(message) from error
    return {run.name: run for run in runs}
