"""Who may ask what: loopback by default, a token for each scope, no open door by accident (DESIGN §12)."""

from __future__ import annotations

import hmac
import ipaddress
import stat
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from kvtrail_collector.errors import BindRefused, SettingsInvalid
from kvtrail_collector.settings import Settings

MIN_TOKEN_CHARACTERS: Final = 16
_BEARER: Final = "bearer "
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


class Scope(Enum):
    """What a token lets its bearer do."""

    WRITE = "write"
    READ = "read"
    CONTROL = "control"


class Access(Enum):
    """The answer to a caller."""

    GRANTED = "granted"
    TOKEN_MISSING = "token_missing"  # noqa: S105  # a name of an answer
    TOKEN_WRONG = "token_wrong"  # noqa: S105  # a name of an answer
    NOT_OFFERED = "not_offered"


class Tokens(NamedTuple):
    """One secret a scope; None where none is set. Never printed."""

    write: bytes | None
    read: bytes | None
    control: bytes | None

    def __repr__(self) -> str:
        return "Tokens(...)"

    def of(self, scope: Scope) -> bytes | None:
        """The secret of a scope."""
        return {Scope.WRITE: self.write, Scope.READ: self.read, Scope.CONTROL: self.control}[scope]


class Guard(NamedTuple):
    """Decides about each call. `open_door`: on loopback, scopes without a token are open to all who can reach it."""

    tokens: Tokens
    open_door: bool
    hosts: frozenset[str]

    def access(self, scope: Scope, authorization: str | None) -> Access:
        """Whether a call may go on; compares in constant time."""
        secret = self.tokens.of(scope)
        if secret is None:
            return Access.GRANTED if self.open_door else Access.NOT_OFFERED
        if authorization is None or not authorization.lower().startswith(_BEARER):
            return Access.TOKEN_MISSING
        given = authorization[len(_BEARER) :].strip().encode()
        return Access.GRANTED if hmac.compare_digest(given, secret) else Access.TOKEN_WRONG

    def knows_host(self, header: str | None) -> bool:
        """Whether a Host header names us, so that no web page reaches us under a name of its own (DNS rebinding)."""
        return header is not None and _host_of(header) in self.hosts


def make_guard(settings: Settings) -> Guard:
    """Read the tokens and check that the address may be listened on. Runs before anything listens.

    Raises:
        SettingsInvalid: a token file is missing, readable by others, too short, or serves two scopes.
        BindRefused: the address is not loopback, and tokens or TLS are missing.
    """
    tokens = Tokens(
        *(_token(path) for path in (settings.write_token_file, settings.read_token_file, settings.control_token_file))
    )
    _check_different(tokens)
    loopback = is_loopback(settings.host)
    if not loopback:
        _check_open_address(settings, tokens)
    hosts = {host.lower() for host in (*settings.allowed_hosts, settings.host)} | _LOOPBACK_NAMES
    return Guard(tokens=tokens, open_door=loopback, hosts=frozenset(hosts))


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine. A name other than localhost counts as reachable."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_open_address(settings: Settings, tokens: Tokens) -> None:
    """Refuse an address that strangers can reach without a token or in clear."""
    if tokens.write is None or tokens.read is None:
        do = "set write_token_file and read_token_file, or listen on 127.0.0.1"
        raise BindRefused("the address can be reached by others and there is no token", where=settings.host, do=do)
    if not (settings.tls_certificate and settings.tls_key) and not settings.tls_in_front:
        do = "set tls_certificate and tls_key, or tls_in_front if a proxy ends TLS, or listen on 127.0.0.1"
        raise BindRefused("the address can be reached by others and there is no TLS", where=settings.host, do=do)


def _check_different(tokens: Tokens) -> None:
    """One token must not open two scopes."""
    given = [token for token in tokens if token is not None]
    if len(set(given)) < len(given):
        raise SettingsInvalid("two scopes share a token", where="token files", do="make a token of its own for each scope")


def _token(path: str) -> bytes | None:
    """The token in a file that only its owner can read."""
    if not path:
        return None
    try:
        mode = Path(path).stat().st_mode
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise SettingsInvalid(f"token cannot be read: {error}", where=path, do="give a file with the token in it") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsInvalid("others can read the token", where=path, do=f"chmod 600 {path}")
    if len(text) < MIN_TOKEN_CHARACTERS:
        do = f"write at least {MIN_TOKEN_CHARACTERS} random characters into it"
        raise SettingsInvalid(f"the token has {len(text)} characters", where=path, do=do)
    return text.encode()


def _host_of(header: str) -> str:
    """The name in a Host header, without its port."""
    host = header.strip().lower()
    if host.startswith("["):
        return host.split("]", 1)[0] + "]"
    return host.rsplit(":", 1)[0] if host.count(":") == 1 else host
