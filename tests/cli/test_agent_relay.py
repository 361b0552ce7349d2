"""`kvtrail agent relay`, as an operator runs it beside an engine."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import jsonschema
from kvtrail_collector.testing import RunningCollector

from tests.agent.waiting import wait_for
from tests.attach.relay.publishers import Publisher, removed, stored
from tests.cli.test_verbs import SCHEMA, kvtrail


def test_an_engine_is_followed_until_the_relay_is_interrupted(collector: RunningCollector, private_dir: Path) -> None:
    """What the engine published is at the collector, also what got lost on the way; the answer counts it, in its shape."""
    environment = os.environ | {"XDG_STATE_HOME": str(private_dir)}
    with Publisher() as publisher:
        arguments = [
            "agent",
            "relay",
            f"zmq://127.0.0.1:{publisher.port}",
            "--replay",
            f"zmq://127.0.0.1:{publisher.replay_port}",
        ]
        arguments += ["--engine", "vllm-a", "--transport", collector.url, "--json"]
        process = subprocess.Popen(
            [sys.executable, "-m", "kvtrail_cli.main", *arguments], stdout=subprocess.PIPE, text=True, env=environment
        )
        publisher.wait_for_subscriber()
        publisher.publish(stored(1, 2))
        publisher.publish(removed(1), lost=True)
        publisher.publish(stored(3, parent=2))
        wait_for(lambda: stored_events(collector) >= 7, "a start, a manifest, a tenant, three blocks and an eviction")
        process.send_signal(signal.SIGTERM)
        answer = json.loads(process.communicate(timeout=60)[0])

    done = kvtrail("sql", "SELECT count(*) AS n FROM residency WHERE ended_by = 'open'", "--json", "--url", collector.url)

    assert 0 == process.returncode
    assert [[2]] == json.loads(done.stdout)["rows"]
    assert (3, 0, 0) == (answer["batches"], answer["lost_batches"], answer["restarts"])
    jsonschema.validate(answer, SCHEMA["$defs"]["AgentRelay"] | {"$defs": SCHEMA["$defs"]})


def stored_events(collector: RunningCollector) -> int:
    """How many events of any kind are stored."""
    answer = httpx.get(f"{collector.url}/v1/loss").json()
    return sum(int(stream["stored"]) for stream in answer["streams"])


def test_an_address_that_cannot_be_is_refused() -> None:
    """What names no publisher ends with 2 and says how to name one."""
    done = kvtrail("agent", "relay", "http://127.0.0.1:5557", "--engine", "x")

    assert 2 == done.returncode
    assert "zmq://HOST:PORT" in done.stderr
