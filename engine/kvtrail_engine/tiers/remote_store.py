"""Records on a Redis server: what the remote tier writes and reads, with a bound on every wait.

A key names the engine that wrote it and a slot, never a block: what lies under a key is believed only by its record, of the
same form as on nvme. Keys expire by themselves, so that an engine that is killed leaves nothing behind for long.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final, NamedTuple, cast

import redis
from kvtrail_schema.identity import BlockId, Slot

from kvtrail_engine.errors import (
    ChecksumError,
    NoSpaceError,
    RecordExpiredError,
    RecordMissingError,
    RemoteLostError,
    RemoteTimeoutError,
    SettingsError,
    TransferError,
)
from kvtrail_engine.settings import RemoteSettings
from kvtrail_engine.tiers.encryption import Cipher, read_secret
from kvtrail_engine.tiers.envelope import (
    NO_KEY,
    STORE_BYTES,
    Header,
    Meant,
    Origin,
    Stamp,
    check_owner,
    check_whole,
    checksum,
    write_frame,
)
from kvtrail_engine.tiers.remote_client import client_of
from kvtrail_engine.tiers.segments import Get, Put

HEAD_BYTES: Final = 512
TAIL_BYTES: Final = 32
_MS_NS: Final = 1_000_000
_KEYS_A_CALL: Final = 1000


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


class RemoteStoreStatistics(NamedTuple):
    """The records at one moment."""

    record_bytes: int
    """What one record takes, its payload included."""
    written_records: int
    read_records: int
    """Read and believed."""
    refused_records: int
    """Read and not believed, for whatever reason."""


class RemoteStore:
    """Any number of threads, a connection each; every call ends within the timeout for each answer that it waits for.

    Each slot is with one thread at a time (the pool sees to that).

    Raises:
        SettingsError: address, password file or key file cannot be used.
    """

    def __init__(
        self, settings: RemoteSettings, payload_bytes: int, fingerprint: int, instance: str, wall_ns: Callable[[], int]
    ) -> None:
        self._client = client_of(settings)
        self._cipher = None if settings.key_file is None else Cipher(read_secret(settings.key_file))
        self._origin = Origin(fingerprint, NO_KEY if self._cipher is None else self._cipher.key_id)
        self._wall_ns = wall_ns
        self._expiry_ms = max(settings.expiry_ns // _MS_NS, 1)
        self._record_bytes = HEAD_BYTES + payload_bytes + TAIL_BYTES
        self._store = os.urandom(STORE_BYTES)
        self._generations = count(1)
        self._ends_ns: dict[Slot, int] = {}  # no lock needed: a slot is with one thread
        self._lock = threading.Lock()
        self._written = self._read = self._refused = 0  # guarded by _lock
        self._prefix = f"kvtrail:{instance}:"
        self._mark = f"{self._prefix}mark"
        self._mark_ms = 2 * self._expiry_ms  # renewed by each write: it outlives every record

    def check(self) -> None:
        """Ask the server for the first time, and leave the mark by which its memory is known again.

        Raises:
            SettingsError: it refuses us.
            RemoteLostError: it cannot be reached.
        """
        try:
            with map_redis_errors():
                self._client.set(self._mark, b"1", px=self._mark_ms)
        except RemoteLostError as exc:
            if isinstance(exc.__cause__, redis.AuthenticationError | redis.exceptions.NoPermissionError):
                message = f"remote: the server refuses us ({exc.__cause__}): see remote.username and remote.password_file"
                raise SettingsError(message) from exc
            raise

    def write(self, puts: Sequence[Put]) -> None:
        """Write records in one round trip. Blocks.

        Raises:
            NoSpaceError: the server is full.
            RemoteLostError: it did not take them; none of them counts as written.
            StorageError: a name is too long for a record.
        """
        records = [(self._key(put.slot), self._pack(put), self._live_ms(put)) for put in puts]
        with map_redis_errors(), self._client.pipeline(transaction=False) as pipeline:
            for key, value, live_ms in records:
                pipeline.set(key, value, px=live_ms)
            pipeline.set(self._mark, b"1", px=self._mark_ms)
            pipeline.execute()
        with self._lock:
            self._written += len(puts)

    def read(self, gets: Sequence[Get]) -> dict[BlockId, TransferError]:
        """Read records in one round trip; those that are not to be believed, and why. Blocks.

        Buffers of refused records hold anything; nobody may read them.

        Raises:
            RemoteLostError: the server did not give them.
        """
        with map_redis_errors():
            values = cast("list[bytes | None]", self._client.mget([self._key(get.slot) for get in gets]))
        faults: dict[BlockId, TransferError] = {}
        for get, value in zip(gets, values, strict=True):
            try:
                self._believe(get, value)
            except TransferError as fault:
                faults[get.block.id] = fault
        with self._lock:
            self._read += len(gets) - len(faults)
            self._refused += len(faults)
        return faults

    def erase(self, slots: Sequence[Slot]) -> None:
        """Remove records, so that no path can read them. Blocks.

        Raises:
            RemoteLostError: the server did not do it.
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
            return self._client.set(self._mark, b"1", px=self._mark_ms, get=True) is not None

    def statistics(self) -> RemoteStoreStatistics:
        """The records, now. From any thread."""
        with self._lock:
            return RemoteStoreStatistics(self._record_bytes, self._written, self._read, self._refused)

    def close(self) -> None:
        """Take everything away where that can be done, and hang up; what stays goes when it expires. Blocks."""
        keys = [self._mark, *map(self._key, sorted(self._ends_ns))]
        try:
            with map_redis_errors():
                for start in range(0, len(keys), _KEYS_A_CALL):
                    self._client.unlink(*keys[start : start + _KEYS_A_CALL])
        except (RemoteLostError, NoSpaceError):
            pass
        finally:
            self._client.close()

    def _key(self, slot: Slot) -> str:
        """Where a slot lies."""
        return f"{self._prefix}{slot}"

    def _live_ms(self, put: Put) -> int:
        """How long the server keeps a record: as long as it may be used, or the settings allow."""
        wall_ns = self._wall_ns()
        left_ms = max((put.keeping.expires_ns - wall_ns) // _MS_NS, 1) if put.keeping.expires_ns else self._expiry_ms
        live_ms = min(left_ms, self._expiry_ms)
        self._ends_ns[put.slot] = wall_ns + live_ms * _MS_NS
        return live_ms

    def _pack(self, put: Put) -> bytes:
        """A record: head, payload as it is stored, tail."""
        generation, length = next(self._generations), put.payload.nbytes
        header = Header(put.block, put.slot, generation, length, put.keeping, self._origin, self._store)
        stored: bytes | memoryview = put.payload
        tag = None
        if self._cipher is not None:
            stored, tag = self._cipher.seal(header, put.payload)
        stamp = Stamp(checksum(stored)) if tag is None else Stamp(checksum(stored), tag)
        head, tail = bytearray(HEAD_BYTES), bytearray(TAIL_BYTES)
        write_frame(header, stamp, memoryview(head), memoryview(tail))
        return b"".join((head, stored, tail))

    def _believe(self, get: Get, value: bytes | None) -> None:
        """Copy a payload out of a record that is what it should be; raise what is wrong otherwise."""
        if value is None:
            raise self._absent(get)
        if len(value) != self._record_bytes:
            message = f"block {get.block.id:016x} has a record of {len(value)} bytes"
            raise ChecksumError(message)
        whole = memoryview(value)
        head, stored, tail = whole[:HEAD_BYTES], whole[HEAD_BYTES:-TAIL_BYTES], whole[-TAIL_BYTES:]
        header, stamp = check_whole(head, stored, tail)
        check_owner(header, Meant(get.block, get.slot, get.into.nbytes, self._origin), self._wall_ns())
        get.into[:] = stored if self._cipher is None else self._cipher.open(header, stored, stamp.tag)

    def _absent(self, get: Get) -> TransferError:
        """Why the server has nothing: its time was over, or it dropped it before."""
        name = f"block {get.block.id:016x}"
        if self._wall_ns() >= self._ends_ns.get(get.slot, 0):
            return RecordExpiredError(f"{name} has expired on the remote")
        return RecordMissingError(f"{name} is not on the remote any more: the server dropped it")
