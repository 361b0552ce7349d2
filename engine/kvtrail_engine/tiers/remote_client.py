"""The client of the remote tier's server, as the settings say: one address, one password from a private file, bounded waits."""

import os
import stat
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from kvtrail_engine.errors import SettingsError
from kvtrail_engine.settings import RemoteSettings

SCHEMES: Final = ("redis", "rediss")


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
