"""What `kvtrail loss` shows to people where there is nothing to balance."""

from kvtrail_cli.tables import loss_view
from kvtrail_collector.loss import loss_of
from rich.console import Console


def test_nothing_is_not_called_balanced() -> None:
    """A collector that never heard of a stream says so: whoever forgot to attach an engine must not read that all is well."""
    console = Console(width=120)
    with console.capture() as shown:
        console.print(loss_view(loss_of([], 0)))

    assert "No stream was ever heard of" in shown.get()
    assert "balanced" not in shown.get()
