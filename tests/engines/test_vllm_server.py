"""vLLM as the OpenAI server: a collector that is killed costs no request, and what happened meanwhile arrives later."""

from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.agent.waiting import wait_for
from tests.cli.test_verbs import kvtrail
from tests.engines.runs import connector, prompts
from tests.engines.servers import another_port, collector_process, complete, openai_server

REQUESTS = 8


def finished(url: str) -> int:
    """How many requests of the engine have ended, by the collector."""
    query = """SELECT count(*) FROM requests JOIN streams USING (stream_id)
        WHERE engine = 'served' AND rank = 0 AND ended_ns IS NOT NULL"""
    done = kvtrail("sql", query, "--json", "--url", url)
    rows: list[list[Any]] = msgspec.json.decode(done.stdout)["rows"] if done.returncode == 0 else [[-1]]
    return int(rows[0][0])


def test_a_collector_that_is_killed_costs_no_request(
    engines_python: Path, model: Path, free_port: int, tmp_path: Path, private_dir: Path
) -> None:
    """Before, while and after a collector is dead every request is answered, and in the end all of them are stored."""
    collector_port, store = free_port, tmp_path / "events.duckdb"
    url = f"http://127.0.0.1:{collector_port}"
    told = {"engine": "served", "transport": url}
    wrapped = connector(tmp_path / "store", told)
    asked = prompts(3 * REQUESTS, seed=5)
    first = collector_process(store, collector_port, tmp_path / "collector.log")
    second = None
    try:
        server_port = another_port(collector_port)
        more = {"XDG_STATE_HOME": str(private_dir), "KVTRAIL_ENGINE": "served", "KVTRAIL_TRANSPORT": url}
        with openai_server(engines_python, model, server_port, wrapped, tmp_path, **more) as server:
            before = [complete(server, prompt) for prompt in asked[:REQUESTS]]
            first.kill()
            first.wait()
            during = [complete(server, prompt) for prompt in asked[REQUESTS : 2 * REQUESTS]]
            second = collector_process(store, collector_port, tmp_path / "collector.log")
            after = [complete(server, prompt) for prompt in asked[2 * REQUESTS :]]
            wait_for(lambda: finished(url) == 3 * REQUESTS, "all requests at the collector", 300)
            metrics = httpx.get(f"{server.url}/metrics").text
        log = server.log.read_text(encoding="utf-8", errors="replace")
        counters = kvtrail(
            "sql", "SELECT DISTINCT \"text\" FROM events WHERE kind_name(kind) = 'counter_sampled'", "--url", url
        )
    finally:
        first.kill()
        if second is not None:
            second.kill()
            second.wait()

    assert [8] * 3 * REQUESTS == before + during + after
    assert "a step failed" not in log
    assert "vllm:external_prefix_cache_hits" in metrics
    assert "vllm:prefix_cache_hits" in counters.stdout
