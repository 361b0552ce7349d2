"""Promises of the options on a real broker that wants TLS and a name: with them both sides work, without them neither."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kvtrail_agent.errors import TransportUnavailable
from kvtrail_agent.transports.files import TransportFiles
from kvtrail_agent.transports.kafka import KafkaTimeouts, KafkaTransport
from kvtrail_agent.transports.kafka_address import read_address
from kvtrail_cli.demo.broker import LocalBroker, free_ports
from kvtrail_collector.settings import Settings
from kvtrail_collector.sources.kafka import KafkaSource
from kvtrail_collector.sources.kafka_monitor import SourceState
from kvtrail_collector.sources.kafka_settings import kafka_settings
from kvtrail_collector.sources.kafka_topic import TopicShape, create_topic, partitions_of
from kvtrail_collector.store import MEMORY, Store
from kvtrail_schema.clock import SystemClock

from tests.agent.frames import frame_of
from tests.broker import jars
from tests.collector.sources.topics import SMALL, stored, wait_until

TOPIC = "kvtrail-secured"
PASSWORD = "hush"
QUICK = KafkaTimeouts(connect_s=2.0, request_s=1.0, deliver_s=2.0)


@dataclass(frozen=True)
class Secured:
    """A listener that is encrypted and asks for a name, and options that suit it, but for the password."""

    bootstrap: str
    authority: Path

    def options(self, folder: Path, password: str = PASSWORD) -> Path:
        """A file of options."""
        path = folder / f"options-{password}.toml"
        path.write_text(
            f'security_protocol = "SASL_SSL"\ntls_ca_file = "{self.authority}"\nsasl_mechanism = "PLAIN"\n'
            f'sasl_username = "kvtrail"\nsasl_password = "{password}"\n'
        )
        path.chmod(0o600)
        return path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with a second listener."""
    folder = tmp_path_factory.mktemp("secured")
    certificate, store = _certificate(folder)
    (port,) = free_ports(1)
    listener = "listener.name.clients"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    broker = LocalBroker(
        jars(),
        folder / "broker",
        more_listeners={"CLIENTS": ("SASL_SSL", port)},
        extra={
            f"{listener}.ssl.keystore.type": "PEM",
            f"{listener}.ssl.keystore.location": str(store),
            f"{listener}.sasl.enabled.mechanisms": "PLAIN",
            f"{listener}.plain.sasl.jaas.config": f'{login} user_kvtrail="hush";',
        },
    )
    broker.start()
    try:
        yield Secured(f"127.0.0.1:{port}", certificate)
    finally:
        broker.stop()


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for loopback that signs itself, and the same with its key, as a broker wants them."""
    key, certificate, store = (folder / name for name in ("key.pem", "certificate.pem", "store.pem"))
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *files, *subject], check=True, capture_output=True)
    store.write_text(key.read_text() + certificate.read_text())
    return certificate, store


def settings_for(secured: Secured, options: Path | None) -> Settings:
    """What a collector is told."""
    return Settings(
        kafka_bootstrap=secured.bootstrap, kafka_topic=TOPIC, kafka_options_file="" if options is None else str(options)
    )


def transport_for(secured: Secured, options: Path | None) -> KafkaTransport:
    """What a shipper uses."""
    return KafkaTransport(read_address(f"kafka://{secured.bootstrap}/{TOPIC}", TransportFiles(None, options)), timeouts=QUICK)


def test_one_file_of_options_serves_both_sides(secured: Secured, private_dir: Path) -> None:
    """With the options a topic is made, a frame is sent and stored, all encrypted and by name."""
    options = secured.options(private_dir)
    kafka = kafka_settings(settings_for(secured, options))
    assert kafka is not None
    create_topic(kafka, TopicShape(partitions=2, replicas=1))
    transport = transport_for(secured, options)
    transport.send(*frame_of(1))
    transport.flush(10)
    transport.close()
    with Store.open(MEMORY) as store:
        source = KafkaSource(kafka, store, limits=SMALL, clock=SystemClock())
        source.start()
        wait_until(lambda: stored(store) == 3, "the frame")
        source.stop()

    assert partitions_of(kafka) == 2


@pytest.mark.parametrize("password", ["wrong", None])
def test_without_the_right_name_nothing_goes_and_it_is_said(secured: Secured, private_dir: Path, password: str | None) -> None:
    """A wrong password, or no options at all, is "later" for the shipper and a reason in the state of the source."""
    options = None if password is None else secured.options(private_dir, password)
    transport = transport_for(secured, options)
    with pytest.raises(TransportUnavailable):
        transport.send(*frame_of(1))
    transport.close()
    kafka = kafka_settings(settings_for(secured, options))
    assert kafka is not None
    with Store.open(MEMORY) as store:
        source = KafkaSource(kafka, store, limits=SMALL, clock=SystemClock())
        source.start()
        wait_until(lambda: source.monitor.statistics().state is SourceState.LOST, "a reason")
        detail = source.monitor.statistics().detail
        source.stop()

    assert secured.bootstrap in detail
    assert "hush" not in detail
