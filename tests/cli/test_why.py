"""Promise of `kvtrail why`: a request is found by the text that its engine calls it, whatever that is made of."""

import json
from collections.abc import Iterator

import pytest
from kvtrail_cli.main import APP
from kvtrail_collector.testing import running_collector
from kvtrail_schema.jsonl import read_lines
from typer.testing import CliRunner

from tests.collector.frames import events_batch

NAMES = ("r?1", "r#2/x%2F", "chat/7", "../engines", "50 % & more", "7:0")


@pytest.fixture(scope="module", name="url")
def collector_of_odd_names() -> Iterator[str]:
    """A collector that knows a request of each name."""
    lines = [
        json.dumps({"t_ms": 10 * number + later, "kind": kind, "req": number, **more})
        for number, name in enumerate(NAMES, 1)
        for later, kind, more in (
            (0, "request_arrived", {"tokens": 5, "text": name}),
            (1, "request_admitted", {}),
            (number + 1, "request_first_token", {}),
        )
    ]
    with running_collector() as collector:
        collector.store.submit(events_batch([line.event for line in read_lines(lines)])).result()
        yield collector.url


@pytest.mark.parametrize(("number", "name"), list(enumerate(NAMES, 1)))
def test_any_name(url: str, number: int, name: str) -> None:
    """What means something in an address means itself in a name."""
    told = CliRunner().invoke(APP, ["why", name, "--json", "--url", url])

    assert 0 == told.exit_code, told.stderr
    assert (name, (number + 1) * 1_000_000) == (json.loads(told.stdout)["request"], json.loads(told.stdout)["ttft_ns"])
