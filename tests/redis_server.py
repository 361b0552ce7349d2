"""A real redis-server for tests: on loopback, in a folder of the test's own; paused, killed and brought back at will."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvtrail_engine.redis_process import RedisProcess, find_redis_server
from kvtrail_engine.settings import RemoteSettings

from tests.real import require_real


@contextmanager
def redis_server(directory: Path, *options: str) -> Iterator[RedisProcess]:
    """A server that runs until the block ends; the test is skipped by name where none is installed."""
    require_real("redis-server", found=find_redis_server() is not None, how="install Debian's redis-server")
    with RedisProcess(directory, options) as server:
        yield server


def remote_of(server: RedisProcess, **changes: Any) -> RemoteSettings:
    """Settings of a remote on this server, quick to give up and quick to ask again."""
    usual: dict[str, Any] = {"timeout_ns": 200_000_000, "cooldown_ns": 50_000_000, "password_file": server.password_file}
    return RemoteSettings(server.url, **(usual | changes))


def pause(server: RedisProcess) -> None:
    """It keeps its connections and its memory, and answers nothing."""
    server.process.send_signal(signal.SIGSTOP)


def resume(server: RedisProcess) -> None:
    """It answers again."""
    server.process.send_signal(signal.SIGCONT)


def kill(server: RedisProcess) -> None:
    """It is gone, and so is what it held."""
    server.process.kill()
    server.process.wait()


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    certificate, key = directory / "server.pem", directory / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key
