"""What `kvtrail engine run` says when not all of what it recorded was taken."""

from kvtrail_cli.commands.engine import EngineRun, _view
from kvtrail_cli.quantiles import quantiles_ms
from rich.console import Console


def shown(**changes: object) -> str:
    """The view of a small run, as people read it."""
    fields: dict[str, object] = {
        "requests": 2,
        "finished": 2,
        "skipped_lines": (),
        "restored_blocks": {},
        "computed_tokens": 3,
        "ttft_ms": quantiles_ms([1_000_000]),
        "tpot_ms": quantiles_ms([]),
        "events_produced": 9,
        "delivered": True,
        "floors": "none",
        "device": "cpu-emulated",
    }
    console = Console(width=300, record=True, quiet=False, file=None)
    with console.capture() as capture:
        console.print(_view(EngineRun(**fields | changes)))  # type: ignore[arg-type]  # the fields of the struct, some changed
    return capture.get()


def test_where_events_lie_and_how_they_are_sent() -> None:
    """A collector that was not there loses nothing: the directories are named, and the command for each."""
    said = shown(delivered=False, undelivered_in=("/dev/shm/rings", "/var/spool"))  # noqa: S108 - a name in a text

    assert "NOT ALL DELIVERED YET" in said
    assert "kvtrail agent recover /dev/shm/rings and kvtrail agent recover /var/spool" in said


def test_nothing_is_said_where_all_is_delivered() -> None:
    """No advice where none is needed."""
    assert "recover" not in shown()
