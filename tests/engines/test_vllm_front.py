"""vLLM as the OpenAI server, without a connector of ours, and with one whose Kafka broker dies."""

from pathlib import Path
from typing import Any

import msgspec
from kvtrail_cli.demo.broker import local_broker
from kvtrail_collector.testing import running_collector

from tests.agent.waiting import wait_for
from tests.broker import PARTS, jars, new_topic
from tests.cli.test_verbs import kvtrail
from tests.engines.runs import connector, prompts
from tests.engines.servers import another_port, collector_process, complete, openai_server

REQUESTS = 4
PATIENCE_S = 300


def rows(url: str, query: str) -> list[list[Any]]:
    """The rows of a question to a collector."""
    done = kvtrail("sql", query, "--json", "--url", url)

    assert 0 == done.returncode, done.stderr

    found: list[list[Any]] = msgspec.json.decode(done.stdout)["rows"]
    return found


def ended(url: str, rank: int) -> int:
    """How many requests of a rank have ended."""
    query = f"""SELECT count(*) FROM requests JOIN streams USING (stream_id)
        WHERE engine = 'served' AND rank = {rank} AND ended_ns IS NOT NULL"""  # noqa: S608 - a number of the test
    return int(rows(url, query)[0][0])


def test_the_stat_logger_alone_tells_requests_with_vllms_own_durations(
    engines_python: Path, model: Path, free_port: int, tmp_path: Path, private_dir: Path
) -> None:
    """Two variables, no flag: each request of a real server has a ledger of wait and prefill that adds up to its TTFT."""
    with running_collector() as collector:
        told = {"XDG_STATE_HOME": str(private_dir), "KVTRAIL_ENGINE": "served", "KVTRAIL_TRANSPORT": collector.url}
        with openai_server(engines_python, model, free_port, None, tmp_path, **told) as server:
            tokens = [complete(server, prompt) for prompt in prompts(REQUESTS, seed=7)]
            wait_for(lambda: ended(collector.url, 1_000) == REQUESTS, "all requests at the collector", PATIENCE_S)
        names = rows(collector.url, 'SELECT "text" FROM requests JOIN streams USING (stream_id) WHERE rank = 1000')
        done = kvtrail("why", str(names[0][0]), "--engine", "served", "--json", "--url", collector.url)
        log = server.log.read_text(encoding="utf-8", errors="replace")
    why = msgspec.json.decode(done.stdout)

    assert [8] * REQUESTS == tokens
    assert 0 == done.returncode, done.stderr
    assert {"new_prefill"} <= {part["component"] for part in why["parts"]} <= {"new_prefill", "sched_wait.capacity"}
    assert 0 < why["ttft_ns"] == sum(part["ns"] for part in why["parts"])
    assert "a step failed" not in log


def test_a_broker_that_is_killed_costs_no_request(
    engines_python: Path, model: Path, free_port: int, tmp_path: Path, private_dir: Path
) -> None:
    """Before, while and after the Kafka broker is dead every request is answered, and in the end all of them are stored."""
    jars()
    asked = prompts(3 * REQUESTS, seed=9)
    url = f"http://127.0.0.1:{free_port}"
    with local_broker(tmp_path / "broker", PARTS) as broker:
        topic = new_topic(broker.bootstrap)
        source = {"KVTRAIL_KAFKA_BOOTSTRAP": broker.bootstrap, "KVTRAIL_KAFKA_TOPIC": topic}
        wrapped = connector(tmp_path / "store", {"engine": "served", "transport": f"kafka://{broker.bootstrap}/{topic}"})
        server_port = another_port(free_port)
        collector = collector_process(tmp_path / "events.duckdb", free_port, tmp_path / "collector.log", **source)
        try:
            with openai_server(
                engines_python, model, server_port, wrapped, tmp_path, XDG_STATE_HOME=str(private_dir)
            ) as server:
                before = [complete(server, prompt) for prompt in asked[:REQUESTS]]
                broker.kill()
                during = [complete(server, prompt) for prompt in asked[REQUESTS : 2 * REQUESTS]]
                broker.start()
                after = [complete(server, prompt) for prompt in asked[2 * REQUESTS :]]
                wait_for(lambda: ended(url, 0) == 3 * REQUESTS, "all requests at the collector", PATIENCE_S)
        finally:
            collector.kill()
            collector.wait()
        log = server.log.read_text(encoding="utf-8", errors="replace")

    assert [8] * 3 * REQUESTS == before + during + after
    assert "a step failed" not in log
