"""Records on a real Redis server: what is believed, what is not, and how long anything waits."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from kvtrail_engine.errors import (
    ChecksumError,
    NoSpaceError,
    RecordExpiredError,
    RecordForeignError,
    RecordMissingError,
    RecordVersionError,
    RemoteLostError,
    RemoteTimeoutError,
    SettingsError,
    TransferError,
)
from kvtrail_engine.redis_process import RedisProcess
from kvtrail_engine.tiers.block import Block
from kvtrail_engine.tiers.envelope import Keeping
from kvtrail_engine.tiers.remote_store import RemoteStore
from kvtrail_engine.tiers.segments import Get, Put
from kvtrail_schema.identity import BlockId, NamespaceId, Slot

from tests.redis_server import kill, make_certificate, pause, redis_server, remote_of, resume

SIZE = 4096


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    """A server that the tests of this file share and leave as they found it."""
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


class Wall:
    """A wall clock that the test moves."""

    def __init__(self) -> None:
        self.now_ns = time.time_ns()

    def __call__(self) -> int:
        """The time that it shows."""
        return self.now_ns


def make(
    server: RedisProcess, name: str = "one", fingerprint: int = 5, wall: Wall | None = None, **changes: Any
) -> RemoteStore:
    """A store on a server."""
    return RemoteStore(remote_of(server, **changes), SIZE, fingerprint, name, wall or time.time_ns)


@pytest.fixture
def store(server: RedisProcess) -> Iterator[RemoteStore]:
    """A store on the shared server."""
    made = make(server)
    yield made
    made.close()


def block(number: int, ns: int = 3) -> Block:
    """A block by its number."""
    return Block(BlockId(number), NamespaceId(ns), None, 0, 32, owner="tenant", model_version="seed0")


def put(number: int, fill: int = 7, keeping: Keeping = Keeping()) -> Put:  # noqa: B008 - frozen
    """The record of a block, in the slot of its number."""
    return Put(Slot(number), block(number), memoryview(bytearray([fill]) * SIZE), keeping)


def fetch(store: RemoteStore, *gets: Get) -> TransferError | None:
    """What is wrong with the first record that is not to be believed; None if all are."""
    return next(iter(store.read(gets).values()), None)


def get(number: int, meant: Block | None = None) -> Get:
    """A wish for a block in the slot of its number."""
    return Get(Slot(number), meant or block(number), memoryview(bytearray(SIZE)))


def raw(server: RedisProcess) -> "redis.Redis":
    """A client that goes around the store."""
    return redis.Redis(port=server.port, password=server.password_file.read_text())


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_what_was_written_is_read(server: RedisProcess, tmp_path: Path, is_encrypted: bool) -> None:
    """Several records go and come in one call each, every byte of them; encrypted, the server never sees one."""
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_bytes(bytes(range(32)))
    store = make(server, "sealed", key_file=secret if is_encrypted else None)
    wishes = [get(1), get(2)]
    store.write([put(1, 11), put(2, 22)])

    assert fetch(store, *wishes) is None
    assert [bytes([11]) * SIZE, bytes([22]) * SIZE] == [bytes(wish.into) for wish in wishes]
    with raw(server) as client:
        value = client.get("kvtrail:sealed:1")
    assert isinstance(value, bytes)
    assert is_encrypted != (bytes([11]) * 64 in value)
    store.close()


@pytest.mark.parametrize("at", [0, 9, 100, 511, 512, SIZE, SIZE + 513, SIZE + 543])
def test_a_changed_byte_is_seen(server: RedisProcess, store: RemoteStore, at: int) -> None:
    """Whatever byte of head, payload or tail changes on the way, nobody reads the record."""
    store.write([put(1)])
    with raw(server) as client:
        value = bytearray(client.get("kvtrail:one:1") or b"")
        value[at] ^= 1
        client.set("kvtrail:one:1", bytes(value))
    wish = get(1)

    assert isinstance(fetch(store, wish), ChecksumError)
    assert bytes(SIZE) == bytes(wish.into)


def test_a_bad_record_spoils_no_other(server: RedisProcess, store: RemoteStore) -> None:
    """Of an op's records each is judged alone."""
    store.write([put(1), put(2)])
    with raw(server) as client:
        client.set("kvtrail:one:1", b"short")

    assert [BlockId(1)] == list(store.read([get(1), get(2)]))


def test_a_record_is_believed_for_what_it_says(server: RedisProcess, store: RemoteStore) -> None:
    """A key proves nothing: another block, another namespace, another owner, another model in the slot are all seen."""
    store.write([put(1)])
    other_model = make(server, fingerprint=6)
    owned = replace(block(1), owner="somebody")

    assert isinstance(fetch(store, get(1, block(9))), ChecksumError)
    assert isinstance(fetch(store, get(1, block(1, ns=4))), RecordForeignError)
    assert isinstance(fetch(store, get(1, owned)), RecordForeignError)
    assert isinstance(fetch(other_model, get(1)), RecordVersionError)
    other_model.close()


def test_records_expire(server: RedisProcess) -> None:
    """After its time a record is gone from the server, and the reader is told that this is why."""
    store = make(server, "short", expiry_ns=60_000_000)
    store.write([put(1)])
    before = fetch(store, get(1))
    time.sleep(0.12)

    assert before is None
    assert isinstance(fetch(store, get(1)), RecordExpiredError)
    store.close()


def test_a_record_ends_when_it_says(server: RedisProcess) -> None:
    """A record whose own time is over is not believed, even if the server still has it; the server is told of it too."""
    wall = Wall()
    store = make(server, "wall", wall=wall)
    store.write([put(1, keeping=Keeping(expires_ns=wall() + 5_000_000_000))])
    with raw(server) as client:
        left_ms = client.pttl("kvtrail:wall:1")
    wall.now_ns += 6_000_000_000

    assert isinstance(left_ms, int)
    assert 0 < left_ms <= 5_000
    assert isinstance(fetch(store, get(1)), RecordExpiredError)
    store.close()


def test_erased_is_gone(store: RemoteStore) -> None:
    """No path reads what was erased."""
    store.write([put(1), put(2)])
    store.erase([Slot(1)])

    assert fetch(store, get(2)) is None
    assert isinstance(fetch(store, get(1)), RecordMissingError)
    assert (2, 1, 1) == store.statistics()[1:]


def test_nothing_stays_for_ever(server: RedisProcess, store: RemoteStore) -> None:
    """Every key has an end, so that an engine that is killed leaves nothing behind for long."""
    store.check()
    store.write([put(1)])
    with raw(server) as client:
        left_ms = [client.pttl(key) for key in client.scan_iter("kvtrail:one:*")]

    assert len(left_ms) >= 2
    assert all(isinstance(left, int) and left > 0 for left in left_ms)


def test_a_silent_server_is_given_up_in_time(server: RedisProcess, store: RemoteStore) -> None:
    """A server that keeps its connections and answers nothing costs one timeout, no more."""
    store.write([put(1)])
    pause(server)
    began_s = time.monotonic()
    try:
        with pytest.raises(RemoteTimeoutError):
            store.read([get(1)])
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
    store = make(server, "two", password_file=wrong)

    with pytest.raises(SettingsError, match="password_file"):
        store.check()
    store.close()
    none = make(server, "two", password_file=None)
    with pytest.raises(SettingsError, match="password_file"):
        none.check()
    none.close()
    wrong.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        make(server, "two", password_file=wrong)


@pytest.mark.parametrize("url", ["http://127.0.0.1", "redis://", "redis://:secret@127.0.0.1"])
def test_strange_addresses_are_refused(server: RedisProcess, url: str) -> None:
    """Also one with a password in it: that belongs in a file."""
    with pytest.raises(SettingsError, match=r"remote\.url"):
        RemoteStore(replace(remote_of(server), url=url), SIZE, 5, "two", time.time_ns)


def test_a_full_server_is_no_lost_one(tmp_path: Path) -> None:
    """Where nothing more fits, that is the answer."""
    with redis_server(tmp_path, "maxmemory 1", "maxmemory-policy noeviction") as full:
        store = make(full)

        with pytest.raises(NoSpaceError):
            store.write([put(1)])
        store.close()


def test_a_server_that_began_anew_is_known(tmp_path: Path) -> None:
    """After a crash without a copy on disk its memory is empty, and it says so by the mark that is missing."""
    with redis_server(tmp_path) as server:
        store = make(server)
        store.check()
        kept = store.has_kept_all()
        kill(server)
        with pytest.raises(RemoteLostError):
            store.read([get(1)])
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
        trusting = RemoteStore(settings, SIZE, 5, "one", time.time_ns)
        doubting = RemoteStore(replace(settings, ca_file=None), SIZE, 5, "one", time.time_ns)
        trusting.write([put(1, 5)])
        wish = get(1)

        assert fetch(trusting, wish) is None
        assert bytes([5]) * SIZE == bytes(wish.into)
        with pytest.raises(RemoteLostError, match="certificate"):
            doubting.read([get(1)])
        trusting.close()
        doubting.close()
