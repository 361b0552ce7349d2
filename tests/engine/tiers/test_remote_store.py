"""Records on a real Redis server: what is believed, what is not, and how long anything waits."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from kvtrail_engine.errors import (
    ChecksumError,
    NoSpaceError,
    RecordMissingError,
    RemoteLostError,
    RemoteTimeoutError,
    SettingsError,
)
from kvtrail_engine.redis_process import RedisProcess
from kvtrail_engine.tiers.pool import Block
from kvtrail_engine.tiers.remote_store import RemoteRecord, RemoteStore
from kvtrail_schema.identity import BlockId, NamespaceId, Slot

from tests.redis_server import kill, make_certificate, pause, redis_server, remote_of, resume

SIZE = 4096


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    """A server that the tests of this file share and leave as they found it."""
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def store(server: RedisProcess) -> Iterator[RemoteStore]:
    """A store on it."""
    made = RemoteStore(remote_of(server), SIZE, "one")
    yield made
    made.close()


def record(number: int, fill: int = 7) -> RemoteRecord:
    """The record of a block, in the slot of its number."""
    block = Block(BlockId(number), NamespaceId(3), None, 0, 32)
    return RemoteRecord(Slot(number), block, memoryview(bytearray([fill]) * SIZE))


def raw(server: RedisProcess) -> "redis.Redis":
    """A client that goes around the store."""
    return redis.Redis(port=server.port, password=server.password_file.read_text())


def test_what_was_written_is_read(store: RemoteStore) -> None:
    """Several records go and come in one call each, every byte of them."""
    written, empty = [record(1, 11), record(2, 22)], [record(1, 0), record(2, 0)]
    store.write(written)
    store.read(empty)

    assert [bytes(one.payload) for one in written] == [bytes(one.payload) for one in empty]


@pytest.mark.parametrize("at", [0, 9, 40, 63, 64, SIZE])
def test_a_changed_byte_is_seen(server: RedisProcess, store: RemoteStore, at: int) -> None:
    """Whatever byte of header or payload changes on the way, nobody reads the record."""
    store.write([record(1)])
    with raw(server) as client:
        key = client.keys("kvtrail:one:1")[0]
        value = bytearray(client.get(key))
        value[at] ^= 1
        client.set(key, bytes(value))
    target = record(1, 0)

    with pytest.raises((ChecksumError, RecordMissingError)):
        store.read([target])
    assert bytes(SIZE) == bytes(target.payload)


def test_another_block_in_the_slot_is_seen(store: RemoteStore) -> None:
    """A key proves nothing: the record says whose it is."""
    store.write([record(1)])
    other = RemoteRecord(Slot(1), Block(BlockId(9), NamespaceId(3), None, 0, 32), memoryview(bytearray(SIZE)))
    foreign = RemoteRecord(Slot(1), Block(BlockId(1), NamespaceId(4), None, 0, 32), memoryview(bytearray(SIZE)))

    for wrong in (other, foreign):
        with pytest.raises(ChecksumError):
            store.read([wrong])


def test_records_expire(server: RedisProcess) -> None:
    """After its time a record is gone, from the server too."""
    store = RemoteStore(remote_of(server, expiry_ns=60_000_000), SIZE, "short")
    store.write([record(1)])
    store.read([record(1)])
    time.sleep(0.12)

    with pytest.raises(RecordMissingError):
        store.read([record(1)])
    store.close()


def test_erased_is_gone(store: RemoteStore) -> None:
    """No path reads what was erased."""
    store.write([record(1), record(2)])
    store.erase([Slot(1)])

    store.read([record(2)])
    with pytest.raises(RecordMissingError):
        store.read([record(1)])


def test_a_silent_server_is_given_up_in_time(server: RedisProcess, store: RemoteStore) -> None:
    """A server that keeps its connections and answers nothing costs one timeout, no more."""
    store.write([record(1)])
    pause(server)
    began_s = time.monotonic()
    try:
        with pytest.raises(RemoteTimeoutError):
            store.read([record(1)])
        waited_s = time.monotonic() - began_s
    finally:
        resume(server)

    assert 0.15 < waited_s < 2
    assert store.is_back()


def test_passwords_are_asked_for(server: RedisProcess, tmp_path: Path) -> None:
    """A wrong one ends the start with the setting's name; a file that others can read is not used at all."""
    wrong = tmp_path / "wrong"
    wrong.touch(mode=0o600)
    wrong.write_text("guess")
    store = RemoteStore(remote_of(server, password_file=wrong), SIZE, "two")

    with pytest.raises(SettingsError, match="password_file"):
        store.check()
    store.close()
    wrong.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        RemoteStore(remote_of(server, password_file=wrong), SIZE, "two")


@pytest.mark.parametrize("url", ["http://127.0.0.1", "redis://", "redis://:secret@127.0.0.1"])
def test_strange_addresses_are_refused(server: RedisProcess, url: str) -> None:
    """Also one with a password in it: that belongs in a file."""
    with pytest.raises(SettingsError, match=r"remote\.url"):
        RemoteStore(replace(remote_of(server), url=url), SIZE, "two")


def test_a_full_server_is_no_lost_one(tmp_path: Path) -> None:
    """Where nothing more fits, that is the answer."""
    with redis_server(tmp_path, "maxmemory 1", "maxmemory-policy noeviction") as full:
        store = RemoteStore(remote_of(full), SIZE, "full")

        with pytest.raises(NoSpaceError):
            store.write([record(1)])
        store.close()


def test_a_server_that_began_anew_is_known(tmp_path: Path) -> None:
    """After a crash without a copy on disk its memory is empty, and it says so by the mark that is missing."""
    with redis_server(tmp_path) as server:
        store = RemoteStore(remote_of(server), SIZE, "one")
        store.check()
        kept = store.has_kept_all()
        kill(server)
        with pytest.raises(RemoteLostError):
            store.read([record(1)])
        server.relaunch()

        assert kept
        assert not store.has_kept_all()
        assert store.has_kept_all()
        store.close()


def test_tls(tmp_path: Path) -> None:
    """Over TLS records go the same way; a certificate that nobody we trust vouches for ends the connection."""
    certificate, key = make_certificate(tmp_path)
    options = [f"tls-cert-file {certificate}", f"tls-key-file {key}", f"tls-ca-cert-file {certificate}", "tls-auth-clients no"]
    with redis_server(tmp_path, *options) as server:
        with raw(server) as client:
            client.config_set("port", 0)
            client.config_set("tls-port", server.port)
        settings = replace(remote_of(server, ca_file=certificate), url=f"rediss://127.0.0.1:{server.port}/0")
        trusting, doubting = RemoteStore(settings, SIZE, "one"), RemoteStore(replace(settings, ca_file=None), SIZE, "one")
        trusting.write([record(1, 5)])
        target = record(1, 0)
        trusting.read([target])

        assert bytes(record(1, 5).payload) == bytes(target.payload)
        with pytest.raises(RemoteLostError, match="certificate"):
            doubting.read([record(1)])
        trusting.close()
        doubting.close()
