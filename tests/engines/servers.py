"""vLLM's OpenAI server and a collector, as processes that can be killed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.engines.runs import environment

STARTS_WITHIN_S = 600.0


class Server(NamedTuple):
    """An OpenAI server: its address, its process, and the file that has its log."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def openai_server(
    python: Path, model: Path, port: int, connector: dict[str, Any] | None, folder: Path, **more: str
) -> Iterator[Server]:
    """A server on a port of loopback, with a connector or without, ready to answer; asked to end at the end."""
    log = folder / "server.log"
    words = ["--model", str(model), "--skip-tokenizer-init", "--dtype", "bfloat16", "--block-size", "32", "--enforce-eager"]
    words += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "1024", "--max-num-seqs", "4"]
    words += ["--num-gpu-blocks-override", "96"]
    words += ["--kv-transfer-config", json.dumps(connector)] if connector is not None else []
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", *words]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment(**more), start_new_session=True)
    try:
        wait_until_it_answers(f"http://127.0.0.1:{port}/health", process, log)
        yield Server(f"http://127.0.0.1:{port}", process, log)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its own session: this server and what it started
            process.wait(10)


def wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until a server answers with 200.

    Raises:
        AssertionError: it ended, or took too long; with the end of its log.
    """
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, timeout=5).is_success:
                return

        assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")[-4000:]

        time.sleep(0.5)
    raise AssertionError(f"{url} did not answer:\n{log.read_text(encoding='utf-8', errors='replace')[-4000:]}")


def complete(server: Server, prompt: list[int]) -> int:
    """One completion of a prompt of token ids; how many tokens it gave."""
    asked = {
        "prompt": prompt,
        "max_tokens": 8,
        "ignore_eos": True,
        "temperature": 0,
        "return_token_ids": True,
        "detokenize": False,
    }
    answer = httpx.post(f"{server.url}/v1/completions", json=asked, timeout=120)

    assert answer.is_success, answer.text

    return int(answer.json()["usage"]["completion_tokens"])


def collector_process(store: Path, port: int, log: Path, **more: str) -> subprocess.Popen[bytes]:
    """A collector in a process of its own, with more settings than those, answering."""
    command = [sys.executable, "-m", "kvtrail_cli.main", "collector", "serve", "--store", str(store), "--port", str(port)]
    with log.open("ab") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=os.environ | more)
    wait_until_it_answers(f"http://127.0.0.1:{port}/readyz", process, log)
    return process


def another_port(taken: int) -> int:
    """A free port that is not that one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]

    assert port != taken

    return port
