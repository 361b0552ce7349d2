"""Promises of `kvtrail agent trtllm` and `kvtrail agent lmcache`: they follow until interrupted, and say what they did."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import msgspec
import pytest
from kvtrail_cli.commands.agent_poll import AgentFollowed
from kvtrail_cli.main import APP
from typer.testing import CliRunner

from tests.attach.importers.cases import LMCACHE, TRTLLM
from tests.attach.live.engines import Drained, trtllm_server


def follower(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """The command in a process of its own, its events into a folder."""
    command = [sys.executable, "-m", "kvtrail_cli.main", "agent", *arguments, "--engine", "e", "--json"]
    command += ["--transport", f"file://{folder}/out"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))


def ended(process: "subprocess.Popen[str]") -> AgentFollowed:
    """Interrupt it, and read what it answers."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 0, err
    return msgspec.json.decode(out, type=AgentFollowed)


def test_trtllm(tmp_path: Path) -> None:
    """What a server gives away is recorded; an interrupt ends it in order."""
    engine = Drained()
    engine.put(*TRTLLM.records[:2])
    with trtllm_server(engine) as url:
        process = follower(tmp_path, "trtllm", url)
        until = time.monotonic() + 60
        while len(engine.asked) < 4 and time.monotonic() < until:
            time.sleep(0.02)
        answer = ended(process)

    assert (4, 0, 0) == (answer.rows, answer.lost, answer.quarantined)


def test_lmcache_by_http(tmp_path: Path) -> None:
    """It says where it listens, and records what is sent there."""
    process = follower(tmp_path, "lmcache", "--listen", "0")
    assert process.stderr is not None
    told = process.stderr.readline().split()
    answer = httpx.post(f"{told[-1]}/events", content=msgspec.json.encode(LMCACHE.records[0]), timeout=30).json()

    assert {"applied": 2, "duplicates": 0, "stale": 0} == answer
    assert 4 == ended(process).rows


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [([], "and not both"), (["kafka://b:1/t", "--listen", "1"], "and not both"), (["http://b:1/t"], "no topic")],
    ids=["neither", "both", "scheme"],
)
def test_lmcache_needs_one_source(arguments: list[str], problem: str) -> None:
    """Neither, both, or another address: an error that says what to give."""
    done = CliRunner().invoke(APP, ["agent", "lmcache", *arguments, "--engine", "e"])

    assert problem in str(done.exception)
