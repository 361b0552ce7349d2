"""`kvtrail diagnose`: everything that is wrong, most important first; of a file, a recording, a store, or a collector."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_schema.clock import SystemClock

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.errors import Exit, InputInvalid
from kvtrail_cli.options import EngineName, Json, TokenFile, Url
from kvtrail_cli.output import OUT, print_json
from kvtrail_cli.recording_folder import check_recording, is_segment_file, stored_recording
from kvtrail_cli.verdicts_view import verdicts_view

if TYPE_CHECKING:
    from kvtrail_collector.detectors.judge import Thresholds
    from kvtrail_collector.store import Store

NAME = "diagnose"
File = Annotated[
    Path | None,
    typer.Argument(
        help="Events as JSON Lines, also by hand; `-` reads standard input. Or a folder that a recorder wrote (file://)."
    ),
]
Db = Annotated[Path | None, typer.Option("--db", help="The file of a store that no collector has open.")]
ThresholdFile = Annotated[
    Path | None, typer.Option("--thresholds", help="TOML file with thresholds, a table a code; for a file or a store.")
]


def command(  # noqa: PLR0917 - one parameter a flag
    file: File = None,
    db: Db = None,
    engine: EngineName = None,
    thresholds: ThresholdFile = None,
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
    *,
    json: Json = False,
) -> None:
    """Say what is wrong and what to do, most important first; ends with 1 where anything is, with 3 where it is not known.

    Without FILE and --db a running collector is asked. What is missing for a sure answer is said.
    """
    _fit_together(file, db, engine, thresholds)
    if file is not None:
        found = _of_file(file, thresholds)
    elif db is not None:
        found = _of_store(db, engine, thresholds)
    else:
        with CollectorClient(url, token_file) as collector:
            found = collector.get("/v1/verdicts", Verdicts, engine=engine)
    if json:
        print_json(found)
    else:
        OUT.print(verdicts_view(found))
    raise typer.Exit(_end(found))


def _end(found: Verdicts) -> Exit:
    """Nothing is well where requests were slower and nobody knows why."""
    if found.verdicts:
        return Exit.BAD
    return Exit.GOOD if found.unexplained is None else Exit.UNDECIDED


def _fit_together(file: Path | None, db: Path | None, engine: str | None, thresholds: Path | None) -> None:
    """See that no flag would be left out of account.

    Raises:
        InputInvalid: two flags exclude each other.
    """
    if file is not None and db is not None:
        raise InputInvalid("a file of events and --db were both given: give one of them")
    if file is not None and engine is not None:
        raise InputInvalid(f"--engine {engine}: a file is judged whole: give it the lines of this engine alone")
    if file is None and db is None and thresholds is not None:
        raise InputInvalid(f"--thresholds {thresholds}: a collector has its own (setting thresholds_file); give a file or --db")


def _of_file(file: Path, thresholds: Path | None) -> Verdicts:
    """Judge a file, what stands on standard input, or a recording.

    Raises:
        InputInvalid: a folder holds no recording; or one of its files was given.
    """
    if file.is_dir():
        check_recording(file)
        with stored_recording(file) as store:
            return _judged(store, None, thresholds)
    if is_segment_file(file):
        raise InputInvalid(f"{file} is one file of a recording: give the folder that it lies in, {file.parent}")
    from kvtrail_collector.diagnose_file import diagnose_lines  # noqa: PLC0415 - loads a database only where it is used

    chosen = _thresholds(thresholds)
    if str(file) == "-":
        return diagnose_lines(sys.stdin, source="standard input", thresholds=chosen)
    with file.open(encoding="utf-8", errors="surrogateescape") as lines:
        return diagnose_lines(lines, source=str(file), thresholds=chosen)


def _of_store(db: Path, engine: str | None, thresholds: Path | None) -> Verdicts:
    """Judge a store."""
    from kvtrail_collector.store import Store  # noqa: PLC0415 - as above

    if not db.exists():
        raise InputInvalid(f"--db {db}: there is no such file: name the DuckDB file of a collector")
    with Store.open(str(db)) as store:
        return _judged(store, engine, thresholds)


def _judged(store: "Store", engine: str | None, thresholds: Path | None) -> Verdicts:
    """Judge what a store holds."""
    from kvtrail_collector.answers import Answers, AttributionQuestion  # noqa: PLC0415 - as above
    from kvtrail_collector.detectors.scene import Bounds  # noqa: PLC0415 - as above
    from kvtrail_collector.diagnose_store import diagnose_store  # noqa: PLC0415 - as above

    found = Answers(store).attribution(AttributionQuestion(engine=engine))
    return diagnose_store(store, found, Bounds(engine=engine), SystemClock().wall_ns(), _thresholds(thresholds))


def _thresholds(path: Path | None) -> "Thresholds":
    """The thresholds of a file; the defaults where none is given."""
    from kvtrail_collector.detectors.thresholds import load_thresholds  # noqa: PLC0415 - as above

    return load_thresholds(path) if path is not None else {}
