"""Promises of `/v1/blocks/{hash}` and of the verb: one shape, and refusals that say what to give."""

import json
from collections.abc import Iterator

import httpx
import jsonschema
import pytest
from kvtrail_cli.main import APP
from kvtrail_collector.store import Incoming
from kvtrail_collector.testing import RunningCollector, running_collector
from kvtrail_schema.batch import DecodedBatch
from kvtrail_schema.jsonl import id_of, read_lines
from typer.testing import CliRunner

from tests.collector.block.test_block import BLOCK, STORY
from tests.collector.frames import events_batch, header
from tests.packages import ROOT

SCHEMA = json.loads((ROOT / "docs/reference/outputs.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", name="collector")
def collector_with_a_block() -> Iterator[RunningCollector]:
    """A collector that knows the first events of one block."""
    with running_collector() as collector:
        collector.store.submit(events_batch([line.event for line in read_lines(STORY[:6])])).result()
        yield collector


def test_shape(collector: RunningCollector) -> None:
    """The answer is in its published shape, by HTTP and by the verb alike; the hash is text."""
    found = httpx.get(f"{collector.url}/v1/blocks/{BLOCK:x}", trust_env=False).json()
    told = CliRunner().invoke(APP, ["block", f"{BLOCK:016x}", "--json", "--url", collector.url])

    jsonschema.validate(found, {**SCHEMA, "$ref": SCHEMA["answers"]["block"]["$ref"]})
    assert f"{BLOCK:016x}" == found["block"]
    assert found == json.loads(told.stdout)


def test_for_people(collector: RunningCollector) -> None:
    """With a moment there are the copies of that moment."""
    told = CliRunner().invoke(APP, ["block", f"{BLOCK:016x}", "--at", "15000000", "--url", collector.url])

    assert 0 == told.exit_code
    assert "host" in told.stdout
    assert "resident" in told.stdout
    assert "gpu  " not in told.stdout.split("evicted")[0]


@pytest.mark.parametrize(("name", "status"), [("5", 404), ("zebra", 422), ("12345678123456781", 422)])
def test_refusals(collector: RunningCollector, name: str, status: int) -> None:
    """What is no hash, and a block that nobody named, are told apart."""
    assert status == httpx.get(f"{collector.url}/v1/blocks/{name}", trust_env=False).status_code


def test_causes_say_when(collector: RunningCollector) -> None:
    """Each event of the chain is told with its moment, by the verb and in the answer."""
    found = json.loads(CliRunner().invoke(APP, ["block", f"{BLOCK:016x}", "--json", "--url", collector.url]).stdout)
    told = CliRunner().invoke(APP, ["block", f"{BLOCK:016x}", "--url", collector.url]).stdout

    assert found["chain"]
    assert all(f"{link['t_ns'] / 1e6:,.1f} ms  {link['text']}" in told for link in found["chain"])


def test_a_moment_without_copies_is_told(collector: RunningCollector) -> None:
    """No empty table: a sentence."""
    other = f"{id_of('other'):016x}"
    told = CliRunner().invoke(APP, ["block", other, "--at", "5000000", "--url", collector.url]).stdout

    assert "no copy of it is known anywhere" in " ".join(told.split())
    assert "slot" not in told


def test_a_moment_is_one_of_one_engine() -> None:
    """Clocks of engines differ: with a moment the copies of the engine are told whose clock was read, or those of none."""
    lines = ['{"t_ms": 0, "kind": "block_created", "block": "b", "tier": "gpu"}']
    busy = ['{"t_ms": 900000, "kind": "request_arrived", "req": 1, "tokens": 1}', lines[0].replace("0", "900001", 1)]
    with running_collector() as collector:
        for engine, told in (("busy", busy), ("idle", lines)):
            collector.store.submit(events_batch([line.event for line in read_lines(told)], engine=engine)).result()
        asked = ["block", f"{BLOCK:016x}", "--at", "900001000000", "--json", "--url", collector.url]
        known = [CliRunner().invoke(APP, [*asked, *more]).stdout for more in ([], ["--engine", "idle"])]

    assert [["busy"], ["idle"]] == [[copy["engine"] for copy in json.loads(told)["copies"]] for told in known]


def test_a_lost_end_is_told_without_an_end() -> None:
    """Behind the last stored event nothing is known: people are told from when on."""
    head = header([1], produced=9)
    batch = events_batch([line.event for line in read_lines(STORY[:1])])
    with running_collector() as collector:
        collector.store.submit(Incoming(DecodedBatch(head, batch.batch.table), batch.received_wall_ns)).result()
        told = CliRunner().invoke(APP, ["block", f"{BLOCK:016x}", "--at", "50000000", "--url", collector.url]).stdout

    assert "unknown from 0.0 ms on" in told
    assert "resident" not in told
