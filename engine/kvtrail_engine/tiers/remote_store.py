"""Records on a Redis server: what the remote tier writes and reads, with a bound on every wait.

A key names the engine that wrote it and a slot, never a block: what lies under a key is believed only by its record. Keys
expire by themselves, so that an engine that is killed leaves nothing behind for long.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

import redis
from kvtrail_schema.identity import Slot
from redis.backoff import NoBackoff
from redis.retry import Retry

from kvtrail_engine.errors import (
    ChecksumError,
    NoSpaceError,
    RecordMissingError,
    RemoteLostError,
    RemoteTimeoutError,
    SettingsError,
)
from kvtrail_engine.settings import RemoteSettings
from kvtrail_engine.tiers.pool import Block
from kvtrail_engine.tiers.record import HEADER_BYTES, check_record, pack_header

SCHEMES: Final = ("redis", "rediss")
_MS_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RemoteRecord:
    """A block, its slot, and the memory that its payload comes from or goes to."""

    slot: Slot
    block: Block
    payload: memoryview


@contextmanager
def map_redis_errors() -> Iterator[None]:
    """The only place where an error of the Redis client becomes ours."""
    try:
        yield
    except redis.TimeoutError as exc:
        raise RemoteTimeoutError(f"the remote did not answer in time: {exc}") from exc
    except redis.OutOfMemoryError as exc:
        raise NoSpaceError(f"the remote is full: {exc}") from exc
    except redis.RedisError as exc:
        raise RemoteLostError(f"the remote cannot be asked: {exc}") from exc


def read_password(path: Path) -> str:
    """The password in a file that nobody but its owner can read.

    Raises:
        SettingsError: there is none, or others can read it.
    """
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            password = file.read().strip()
    except OSError as exc:
        message = f"remote.password_file: {exc}"
        raise SettingsError(message) from exc
    if stat.S_IMODE(mode) & 0o077:
        message = f"remote.password_file {path} can be read by others: chmod 600 it"
        raise SettingsError(message)
    return password


def client_of(settings: RemoteSettings) -> "redis.Redis":
    """A client that connects when it is first asked, waits a bounded time, and never tries again by itself.

    Raises:
        SettingsError: the address or the password file cannot be used.
    """
    parts = urlsplit(settings.url)
    if parts.scheme not in SCHEMES or not parts.hostname or parts.password:
        message = "remote.url must be redis://host:port/database or rediss://…, its password in remote.password_file"
        raise SettingsError(message)
    password = None if settings.password_file is None else read_password(settings.password_file)
    timeout_s = settings.timeout_ns / 1e9
    return redis.Redis(
        host=parts.hostname,
        port=parts.port or 6379,
        db=int(parts.path.strip("/") or 0),
        username=settings.username,
        password=password,
        ssl=parts.scheme == "rediss",
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
        max_connections=settings.tier.workers + 2,
        ssl_ca_certs=None if settings.ca_file is None else str(settings.ca_file),
    )


class RemoteStore:
    """Any number of threads, a connection each; every call ends within the timeout for each answer that it waits for."""

    def __init__(self, settings: RemoteSettings, payload_bytes: int, instance: str) -> None:
        self._client = client_of(settings)
        self._expiry_ms = max(settings.expiry_ns // _MS_NS, 1)
        self._record_bytes = HEADER_BYTES + payload_bytes
        self._prefix = f"kvtrail:{instance}:"
        self._mark = f"{self._prefix}mark"

    def check(self) -> None:
        """Ask the server for the first time, and leave the mark by which its memory is known again.

        Raises:
            SettingsError: it refuses us.
            RemoteLostError: it cannot be reached.
        """
        try:
            with map_redis_errors():
                self._client.set(self._mark, b"1")
        except RemoteLostError as exc:
            if isinstance(exc.__cause__, redis.AuthenticationError | redis.exceptions.NoPermissionError):
                message = f"remote: the server refuses us ({exc.__cause__}): see remote.username and remote.password_file"
                raise SettingsError(message) from exc
            raise

    def write(self, records: Sequence[RemoteRecord]) -> None:
        """Write records in one round trip. Blocks.

        Raises:
            NoSpaceError: the server is full.
            RemoteLostError: it did not take them; none of them counts as written.
        """
        with map_redis_errors(), self._client.pipeline(transaction=False) as pipeline:
            for record in records:
                value = b"".join((pack_header(record.block, record.payload), record.payload))
                pipeline.set(self._key(record.slot), value, px=self._expiry_ms)
            pipeline.execute()

    def read(self, records: Sequence[RemoteRecord]) -> None:
        """Read records into their memory in one round trip, and believe each only if it is the block that is meant. Blocks.

        Raises:
            RecordMissingError, ChecksumError: one is not there (it may have expired), or is not as it was written.
            RemoteLostError: the server did not give them.
        """
        with map_redis_errors():
            values = cast("list[bytes | None]", self._client.mget([self._key(record.slot) for record in records]))
        for record, value in zip(records, values, strict=True):
            self._believe(record, value)

    def erase(self, slots: Sequence[Slot]) -> None:
        """Remove records, so that no path can read them. Blocks.

        Raises:
            RemoteLostError: the server did not do it; they go when they expire.
        """
        with map_redis_errors():
            self._client.unlink(*map(self._key, slots))

    def is_back(self) -> bool:
        """Whether the server takes and gives something of a record's size in time. Blocks, never raises."""
        probe, value = f"{self._prefix}probe", bytes(self._record_bytes)
        try:
            with map_redis_errors():
                self._client.set(probe, value, px=self._expiry_ms)
                return self._client.getdel(probe) == value
        except (RemoteLostError, NoSpaceError):
            return False

    def has_kept_all(self) -> bool:
        """Whether it is the memory that we wrote to, and not that of a server which began anew. Blocks.

        Leaves a new mark where it is not.

        Raises:
            RemoteLostError: it cannot be asked.
        """
        with map_redis_errors():
            return self._client.set(self._mark, b"1", get=True) is not None

    def close(self) -> None:
        """Take the mark away where that can be done, and hang up; records go when they expire."""
        try:
            with map_redis_errors():
                self._client.unlink(self._mark)
        except (RemoteLostError, NoSpaceError):
            pass
        finally:
            self._client.close()

    def _key(self, slot: Slot) -> str:
        """Where a slot lies."""
        return f"{self._prefix}{slot}"

    def _believe(self, record: RemoteRecord, value: bytes | None) -> None:
        """Copy a payload out of a record that is what it should be."""
        if value is None:
            message = f"block {record.block.id:016x} is not on the remote: it expired, or the server dropped it"
            raise RecordMissingError(message)
        if len(value) != self._record_bytes:
            message = f"block {record.block.id:016x} has a record of {len(value)} bytes"
            raise ChecksumError(message)
        whole = memoryview(value)
        check_record(whole[:HEADER_BYTES], whole[HEADER_BYTES:], record.block)
        record.payload[:] = whole[HEADER_BYTES:]
