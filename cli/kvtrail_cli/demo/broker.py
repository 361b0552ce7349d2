"""A real Apache Kafka broker on this machine, for as long as a demo or a test lasts: one node, on loopback.

Its jars come from Maven Central, once, into a folder that is kept. Needs a Java runtime of 17 or newer, and Maven the first
time.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kvtrail_cli.errors import PartMissing

KAFKA_VERSION: Final = "4.1.0"
DEFAULT_PARTS: Final = Path(".parts/kafka")
"""Where the jars are kept, from the folder in which the command runs."""

_HOST: Final = "127.0.0.1"
_CLUSTER: Final = "a3Z0cmFpbC1sb2NhbC0wMQ"
_START_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 15.0
_FETCH_TIMEOUT_S: Final = 300.0
_POLL_S: Final = 0.1
_HEAP: Final = "-Xmx512m"
_POM: Final = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kvtrail</groupId>
  <artifactId>local-broker</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


def missing_parts(parts: Path) -> str:
    """What this machine lacks to start a broker, as a sentence that says what to do; empty where nothing is."""
    if shutil.which("java") is None:
        return "install a Java runtime of 17 or newer (on Debian: default-jre-headless)"
    if not _has_jars(parts) and shutil.which("mvn") is None:
        return f"install Maven, which fetches the broker's jars into {parts} once (on Debian: maven)"
    return ""


def fetch_jars(parts: Path) -> Path:
    """The folder with the broker's jars, fetched into `parts` if they are not there: some 45 MB, once.

    Raises:
        PartMissing: Java or Maven is missing, or Maven could not fetch them.
    """
    problem = missing_parts(parts)
    if problem:
        message = f"no Kafka broker: {problem}"
        raise PartMissing(message)
    if not _has_jars(parts):
        _fetch(parts)
    return _jars(parts)


def _jars(parts: Path) -> Path:
    """Where the jars of this version lie."""
    return parts / f"kafka-{KAFKA_VERSION}"


def _has_jars(parts: Path) -> bool:
    """Whether they are there. The folder gets its name when it is complete."""
    return _jars(parts).is_dir()


def _fetch(parts: Path) -> None:
    """Let Maven copy the jars."""
    parts.mkdir(parents=True, exist_ok=True)
    (parts / "pom.xml").write_text(_POM, encoding="utf-8")
    part = parts.absolute() / f"fetching-{os.getpid()}"
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    try:
        subprocess.run(command, cwd=parts, check=True, timeout=_FETCH_TIMEOUT_S, capture_output=True)  # noqa: S603 - our own command
        if not _has_jars(parts):
            part.rename(_jars(parts))
    except (OSError, subprocess.SubprocessError) as error:
        message = f"no Kafka broker: Maven could not fetch its jars into {parts}: {error}"
        raise PartMissing(message) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


class LocalBroker:
    """One broker with its own folder; may be stopped and started again on the same ports, with what it holds."""

    def __init__(
        self,
        jars: Path,
        folder: Path,
        *,
        more_listeners: Mapping[str, tuple[str, int]] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """Make its folder ready; `more_listeners` are security protocol and port by name, `extra` goes to its properties."""
        self._jars = jars
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._port, self._controller_port = free_ports(2)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write_properties(more_listeners or {}, extra or {})
        self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties))

    @property
    def bootstrap(self) -> str:
        """Its address as clients write it."""
        return f"{_HOST}:{self._port}"

    @property
    def log(self) -> Path:
        """What it says."""
        return self._folder / "broker.log"

    @property
    def _properties(self) -> Path:
        """What it is told."""
        return self._folder / "server.properties"

    def start(self) -> None:
        """Start it and wait until it takes connections.

        Raises:
            PartMissing: it did not come up; its log is named.
        """
        command = ["java", _HEAP, "-cp", f"{self._jars}/*", "kafka.Kafka", str(self._properties)]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        until = time.monotonic() + _START_TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < until:
            if _listens(self._port):
                return
            time.sleep(_POLL_S)
        self.stop()
        message = f"the Kafka broker did not start: see {self.log}"
        raise PartMissing(message)

    def stop(self) -> None:
        """End it in order, or, where it does not end, at once."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """Take it away without a word."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def pause(self) -> None:
        """Let it hang: connections stay open and nobody answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        """Tell its process something, while it has one."""
        if self._process is not None:
            self._process.send_signal(number)

    def _write_properties(self, more_listeners: Mapping[str, tuple[str, int]], extra: Mapping[str, str]) -> None:
        """One node that is broker and controller; every internal topic has one replica."""
        one = [
            f"{name}=1"
            for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
            for name in (f"{topic}.replication.factor", f"{topic}.min.isr")
        ]
        own_listener = f"PLAINTEXT://{_HOST}:{self._port}"
        clients = ",".join([own_listener, *(f"{name}://{_HOST}:{port}" for name, (_, port) in more_listeners.items())])
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
        protocols |= {name: protocol for name, (protocol, _) in more_listeners.items()}
        own = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{_HOST}:{self._controller_port}",
            "listeners": f"{clients},CONTROLLER://{_HOST}:{self._controller_port}",
            "advertised.listeners": clients,
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "log.dirs": str(self._folder / "log"),
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            # Retention is looked at often enough for a test to see it.
            "log.retention.check.interval.ms": "1000",
            **extra,
        }
        lines = [*(f"{name}={value}" for name, value in own.items()), *one]
        self._properties.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._properties.chmod(0o600)

    def _java(self, *arguments: str) -> None:
        """Run one of Kafka's tools to its end.

        Raises:
            PartMissing: it failed.
        """
        command = ["java", _HEAP, "-cp", f"{self._jars}/*", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, timeout=_START_TIMEOUT_S)  # noqa: S603 - our own command
        if done.returncode:
            message = f"the Kafka broker cannot be set up: {done.stderr.decode(errors='replace')[-500:]}"
            raise PartMissing(message)


@contextmanager
def local_broker(folder: Path, parts: Path = DEFAULT_PARTS) -> Iterator[LocalBroker]:
    """A running broker, its jars fetched if need be; ended at the end.

    Raises:
        PartMissing: this machine lacks something, and the message says what; or it did not come up.
    """
    broker = LocalBroker(fetch_jars(parts), folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listened on a moment ago, each another one."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((_HOST, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((_HOST, port)) == 0


def main() -> int:
    """Fetch the jars into a folder ahead of time (`python -m kvtrail_cli.demo.broker FOLDER`); says what is missing."""
    try:
        fetch_jars(Path(sys.argv[1]))
    except PartMissing as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command of its own
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
