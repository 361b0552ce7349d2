"""Signatures of Standard Webhooks 1.0 (standardwebhooks.com): HMAC-SHA256 over `id.timestamp.body`, by either side.

A secret is `whsec_` and base64 of 24 to 64 bytes. While secrets are rotated the sender signs with all of them, and the receiver
takes any of its own. Comparing takes the same time whatever differs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import stat
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from kvtrail_schema.errors import SecretInvalid

ID_HEADER: Final = "webhook-id"
TIME_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
_PREFIX: Final = "whsec_"
_VERSION: Final = "v1"
_SECRET_BYTES: Final = range(24, 65)
_MOST_SECRETS: Final = 8
_MOST_SIGNATURES: Final = 16
_ID_CHARACTERS: Final = range(1, 129)
_TIME_DIGITS: Final = 12


class Secrets(NamedTuple):
    """The keys in force, the newest first. Never printed."""

    keys: tuple[bytes, ...]

    def __repr__(self) -> str:
        return "Secrets(...)"


class Envelope(NamedTuple):
    """What the headers of a webhook say, once its signature holds."""

    id: str
    sent_s: int


class Refusal(Enum):
    """Why a webhook is not believed."""

    HEADERS = "headers"
    SIGNATURE = "signature"


def read_secrets(path: Path) -> Secrets:
    """The secrets in a file of mode 0600: one a line, the newest first.

    Raises:
        SecretInvalid: it cannot be read, others can read it, or a line is no secret.
    """
    try:
        mode, lines = path.stat().st_mode, path.read_text(encoding="ascii").split()
    except (OSError, ValueError) as error:
        message = f"{path}: secrets cannot be read: {type(error).__name__}"
        raise SecretInvalid(message) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        message = f"{path}: others can read it: chmod 600 {path}"
        raise SecretInvalid(message)
    if not 1 <= len(lines) <= _MOST_SECRETS:
        message = f"{path}: {len(lines)} secrets: write one a line, the newest first, at most {_MOST_SECRETS}"
        raise SecretInvalid(message)
    return Secrets(tuple(_key(line, number, path) for number, line in enumerate(lines, start=1)))


def _key(line: str, number: int, path: Path) -> bytes:
    """The key in one line; what is wrong with it is told without it."""
    try:
        key = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not line.startswith(_PREFIX) or len(key) not in _SECRET_BYTES:
        message = (
            f"{path}:{number}: no secret: write whsec_ and base64 of {_SECRET_BYTES[0]} to {_SECRET_BYTES[-1]} random bytes"
        )
        raise SecretInvalid(message)
    return key


def sign(secrets: Secrets, envelope: Envelope, body: bytes) -> dict[str, str]:
    """The headers of a webhook: one signature a secret."""
    signatures = " ".join(_signature(key, envelope, body) for key in secrets.keys)
    return {ID_HEADER: envelope.id, TIME_HEADER: str(envelope.sent_s), SIGNATURE_HEADER: signatures}


def verify(secrets: Secrets, headers: Mapping[str, str], body: bytes) -> Envelope | Refusal:
    """Whether somebody who knows a secret sent this; says nothing about its age. Headers by lower-case name."""
    name, sent, given = (headers.get(header, "") for header in (ID_HEADER, TIME_HEADER, SIGNATURE_HEADER))
    is_time = sent.isascii() and sent.isdigit() and len(sent) <= _TIME_DIGITS
    if len(name) not in _ID_CHARACTERS or not (name.isascii() and name.isprintable()) or not is_time:
        return Refusal.HEADERS
    envelope = Envelope(name, int(sent))
    return envelope if _is_signed(secrets, envelope, body, given.split()[:_MOST_SIGNATURES]) else Refusal.SIGNATURE


def _is_signed(secrets: Secrets, envelope: Envelope, body: bytes, given: Sequence[str]) -> bool:
    """Whether any signature is by any key; every pair is compared, in constant time."""
    known = [_signature(key, envelope, body).encode() for key in secrets.keys]
    return any([hmac.compare_digest(ours, theirs.encode()) for ours in known for theirs in given])  # noqa: C419 - all of them


def _signature(key: bytes, envelope: Envelope, body: bytes) -> str:
    """One signature, with the version of its form."""
    content = f"{envelope.id}.{envelope.sent_s}.".encode() + body
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return f"{_VERSION},{base64.b64encode(digest).decode()}"
