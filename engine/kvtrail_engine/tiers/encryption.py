"""AES-GCM over the payloads of records: a key for each namespace and start, a nonce for each record, identity bound in.

The keys follow from one secret in a file. A key is used by one start of one engine only, and a nonce is the generation of
its record, which that start counts up: so no nonce is ever used twice under one key.
"""

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvtrail_schema.identity import NamespaceId, keyed_id

from kvtrail_engine.errors import ChecksumError, SettingsError, map_os_errors
from kvtrail_engine.tiers.envelope import TAG_BYTES, Header

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MIN_SECRET_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_KEPT_KEYS: Final = 4096


def read_secret(path: Path) -> bytes:
    """The secret in a key file.

    Raises:
        SettingsError: others may read the file, or it is too short.
        StorageError: it cannot be read.
    """
    with map_os_errors():
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as stream:
            mode = stat.S_IMODE(os.fstat(file).st_mode)
            secret = stream.read()
    if mode & 0o077:
        message = f"key_file {path} has mode {mode:04o}: make it 0600, so that nobody else can read it"
        raise SettingsError(message)
    if len(secret) < MIN_SECRET_BYTES:
        message = f"key_file {path} holds {len(secret)} bytes: put at least {MIN_SECRET_BYTES} random ones there"
        raise SettingsError(message)
    return secret


class Cipher:
    """Seals and opens payloads; any thread. Costs about a nanosecond for each two bytes.

    Raises:
        SettingsError: the `encryption` extra is not installed.
    """

    def __init__(self, secret: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415 - only who encrypts needs it
        except ImportError as exc:
            message = "nvme_files.key_file is set, but encryption is not installed: pip install 'kvtrail[encryption]'"
            raise SettingsError(message) from exc
        self._make = aead.AESGCM
        self._secret = hashlib.blake2b(secret, digest_size=64, person=b"kvtrail-nvme").digest()
        self._keys: dict[tuple[NamespaceId, bytes], AESGCM] = {}
        """Two threads may make one entry at once, and make the same."""
        self.key_id = keyed_id(self._secret, b"key id") | 1

    def seal(self, header: Header, payload: memoryview) -> tuple[bytes, bytes]:
        """The payload as it is stored, and its tag."""
        sealed = self._key(header).encrypt(_nonce(header), payload, header.identity())
        return sealed[:-TAG_BYTES], sealed[-TAG_BYTES:]

    def open(self, header: Header, stored: memoryview, tag: bytes) -> bytes:
        """The payload again.

        Raises:
            ChecksumError: payload, identity or key is not the one that it was sealed with.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above

        try:
            return self._key(header).decrypt(_nonce(header), b"".join((stored, tag)), header.identity())
        except InvalidTag as exc:
            message = f"payload of block {header.block.id:016x} is not what was sealed"
            raise ChecksumError(message) from exc

    def _key(self, header: Header) -> "AESGCM":
        """The key of a namespace, for records of one start of one engine."""
        name = (header.block.ns, header.store)
        known = self._keys.get(name)
        if known is None:
            if len(self._keys) >= _KEPT_KEYS:
                self._keys.clear()
            salted = header.block.ns.to_bytes(8, "little") + header.store
            known = self._make(hashlib.blake2b(salted, digest_size=32, key=self._secret).digest())
            self._keys[name] = known
        return known


def _nonce(header: Header) -> bytes:
    """Unique under its key: one start never counts a generation twice."""
    return header.generation.to_bytes(_NONCE_BYTES, "little")
