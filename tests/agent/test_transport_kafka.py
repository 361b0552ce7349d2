"""Promises of the Kafka transport beyond those of every transport: how a record looks, what is an error and which."""

from pathlib import Path

import pytest
from kafka import errors
from kvtrail_agent.errors import BatchRejected, SettingsInvalid, TransportUnavailable
from kvtrail_agent.transports import open_transport
from kvtrail_agent.transports.base import check_address
from kvtrail_agent.transports.files import TransportFiles
from kvtrail_agent.transports.kafka import MEMORY_BYTES, KafkaTimeouts, KafkaTransport, map_kafka_errors
from kvtrail_agent.transports.kafka_address import read_address
from kvtrail_cli.demo.broker import LocalBroker
from kvtrail_schema.header import CONTENT_TYPE

from tests.agent.frames import frame_of
from tests.broker import new_topic, records_in

QUICK = KafkaTimeouts(connect_s=1.0, request_s=0.8, deliver_s=1.0)
NEVER = {
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.InvalidRecordError,
    errors.InvalidTimestampError,
    errors.UnsupportedForMessageFormatError,
}


def every_error(root: type[BaseException] = errors.KafkaError) -> list[type[BaseException]]:
    """Every error that the Kafka client has."""
    return [root, *(found for child in root.__subclasses__() for found in every_error(child))]


def quick(bootstrap: str, topic: str) -> KafkaTransport:
    """A transport that does not wait for long."""
    return KafkaTransport(read_address(f"kafka://{bootstrap}/{topic}", TransportFiles()), timeouts=QUICK)


@pytest.mark.parametrize("kind", sorted(set(every_error()), key=str))
def test_every_error_of_the_client_is_one_of_ours(kind: type[BaseException]) -> None:
    """No error of the client escapes; what brokers say of the record itself is final, all else is "later"."""
    expected = BatchRejected if kind in NEVER else TransportUnavailable
    with pytest.raises(expected) as caught, map_kafka_errors("kafka://here/topic"):
        raise kind.__new__(kind)  # some want arguments that only the client has

    assert type(caught.value) is expected
    assert "kafka://here/topic" in str(caught.value)


def test_a_record_says_what_it_holds(bootstrap: str) -> None:
    """Key and headers tell engine, epoch, rank and seqs, so that nobody has to open a frame to know whose it is."""
    topic = new_topic(bootstrap, partitions=3)
    transport = open_transport(f"kafka://{bootstrap}/{topic}")
    try:
        transport.send(*frame_of(4, 3))
        transport.send(*frame_of(7, 0))
        transport.flush(10)
    finally:
        transport.close()
    first, second = records_in(bootstrap, topic)

    assert (b"test-engine", first.partition) == (first.key, second.partition)
    assert dict(first.headers) == {
        "content-type": CONTENT_TYPE.encode(),
        "engine": b"test-engine",
        "epoch": b"0000000000000007",
        "rank": b"0",
        "first_seq": b"4",
        "last_seq": b"6",
        "count": b"3",
    }


def test_a_record_over_the_topics_limit_is_refused_for_good(bootstrap: str) -> None:
    """What a broker will never take is not sent again and again; a smaller one goes through after it."""
    topic = new_topic(bootstrap, max_message_bytes="2000")
    transport = quick(bootstrap, topic)
    try:
        transport.send(bytes(8_000), frame_of(1)[1])
        with pytest.raises(BatchRejected, match="MessageSizeTooLarge"):
            transport.flush(5)
        transport.send(*frame_of(1))
        transport.flush(5)
    finally:
        transport.close()

    assert [frame_of(1)[0]] == [record.value for record in records_in(bootstrap, topic)]


def test_a_topic_that_is_not_there_is_not_made(bootstrap: str) -> None:
    """A topic made by accident would have the wrong partitions and limits; until an operator makes it, it is "later"."""
    transport = quick(bootstrap, "kvtrail-test-nobody-made-me")
    with pytest.raises(TransportUnavailable, match="kvtrail-test-nobody-made-me"):
        transport.send(*frame_of(1))
    transport.close()


def test_memory_is_bounded(own_broker: LocalBroker) -> None:
    """While nothing is acknowledged, frames over the bound are told to come later instead of piling up."""
    transport = quick(own_broker.bootstrap, new_topic(own_broker.bootstrap, max_message_bytes="20000000"))
    header = frame_of(1)[1]
    transport.send(*frame_of(1))
    own_broker.pause()
    try:
        transport.send(bytes(MEMORY_BYTES // 2), header)
        with pytest.raises(TransportUnavailable, match="wait for their acknowledgement"):
            transport.send(bytes(MEMORY_BYTES // 2), header)
    finally:
        transport.close()
        own_broker.resume()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("kafka://127.0.0.1:9092", "give brokers and topic"),
        ("kafka:127.0.0.1:9092/topic", "give brokers and topic"),
        ("kafka://127.0.0.1/topic", "host:port"),
        ("kafka://127.0.0.1:0/topic", "host:port"),
        ("kafka://127.0.0.1:99999/topic", "host:port"),
        ("kafka://a:1,,b:2/topic", "host:port"),
        ("kafka://user:word@a:1/topic", "host:port"),
        ("kafka://a:1/", "topic"),
        ("kafka://a:1/two/parts", "topic"),
        ("kafka://a:1/..", "topic"),
    ],
)
def test_an_address_that_cannot_be_is_refused_at_start(url: str, said: str) -> None:
    """The error names the address and what is possible; secrets have no place in an address."""
    with pytest.raises(SettingsInvalid, match=said):
        check_address(url, None)


def test_several_brokers_are_one_address() -> None:
    """A cluster is named by any of its brokers, also by IPv6 address."""
    address = read_address("kafka://a.example:9092,[::1]:9093/kvtrail.events", TransportFiles())

    assert ("a.example:9092", "[::1]:9093") == address.servers
    assert "kafka://a.example:9092,[::1]:9093/kvtrail.events" == str(address)


def test_unusable_options_are_refused_at_start(private_dir: Path) -> None:
    """A file that others may read, or options that cannot be used, are told before anything is recorded."""
    options = private_dir / "kafka.toml"
    options.write_text('security_protocol = "SASL_SSL"\n')
    options.chmod(0o600)
    with pytest.raises(SettingsInvalid, match="sasl_username"):
        check_address("kafka://a:1/topic", None, options)
    options.chmod(0o644)

    with pytest.raises(SettingsInvalid, match="chmod 600"):
        check_address("kafka://a:1/topic", None, options)
