"""Promises of the guard: no open door by accident, a token for each scope, no caller under a foreign name."""

from pathlib import Path

import msgspec
import pytest
from kvtrail_collector.errors import BindRefused, SettingsInvalid
from kvtrail_collector.security import Access, Scope, is_loopback, make_guard
from kvtrail_collector.settings import Settings
from msgspec.structs import replace

WRITE, READ = "write-token-of-tests", "read-token-of-tests!"


@pytest.fixture
def tokens(private_dir: Path) -> Settings:
    """Settings that name two token files as they should be."""
    files: dict[str, str] = {}
    for name, secret in (("write_token_file", WRITE), ("read_token_file", READ)):
        path = private_dir / name
        path.write_text(secret + "\n")
        path.chmod(0o600)
        files[name] = str(path)
    return msgspec.convert(files, Settings)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_is_open_without_tokens(host: str) -> None:
    """On an address that only this machine reaches everything works at once."""
    guard = make_guard(Settings(host=host))

    assert {Access.GRANTED} == {guard.access(scope, None) for scope in Scope}


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "collector.example"])  # noqa: S104 - that it is refused is the point
def test_other_addresses_need_tokens_and_tls(host: str, tokens: Settings) -> None:
    """Without tokens, or with tokens in clear, an address that others reach is refused; with both, or a proxy, it is not."""
    with pytest.raises(BindRefused, match="token"):
        make_guard(Settings(host=host, tls_in_front=True))
    with pytest.raises(BindRefused, match="TLS"):
        make_guard(replace(tokens, host=host))

    assert not is_loopback(host)
    assert not make_guard(replace(tokens, host=host, tls_in_front=True)).open_door
    assert not make_guard(replace(tokens, host=host, tls_certificate="c.pem", tls_key="k.pem")).open_door


def test_each_scope_has_its_own_token(tokens: Settings) -> None:
    """A token opens its own scope, no other; without one, or with a wrong one, nothing opens."""
    guard = make_guard(tokens)

    assert Access.GRANTED is guard.access(Scope.WRITE, f"Bearer {WRITE}")
    assert Access.GRANTED is guard.access(Scope.READ, f"bearer  {READ}")
    assert Access.TOKEN_WRONG is guard.access(Scope.READ, f"Bearer {WRITE}")
    assert Access.TOKEN_WRONG is guard.access(Scope.WRITE, "Bearer ")
    assert Access.TOKEN_MISSING is guard.access(Scope.WRITE, None)
    assert Access.TOKEN_MISSING is guard.access(Scope.WRITE, f"Basic {WRITE}")


def test_a_scope_without_a_token_is_closed_to_others(tokens: Settings) -> None:
    """Off loopback, control without a token is not offered to anybody."""
    guard = make_guard(replace(tokens, host="192.0.2.1", tls_in_front=True))

    assert Access.NOT_OFFERED is guard.access(Scope.CONTROL, f"Bearer {WRITE}")


def test_tokens_that_protect_nothing_are_refused(private_dir: Path, tokens: Settings) -> None:
    """A file that others can read, a short token, a missing file, one token for two scopes: each is said, with the file."""
    short = private_dir / "short"
    short.write_text("abc")
    short.chmod(0o600)
    with pytest.raises(SettingsInvalid, match="3 characters"):
        make_guard(Settings(read_token_file=str(short)))
    short.chmod(0o644)
    with pytest.raises(SettingsInvalid, match="chmod 600"):
        make_guard(Settings(read_token_file=str(short)))
    with pytest.raises(SettingsInvalid, match="nowhere"):
        make_guard(Settings(read_token_file=str(private_dir / "nowhere")))
    with pytest.raises(SettingsInvalid, match="share"):
        make_guard(Settings(read_token_file=tokens.read_token_file, write_token_file=tokens.read_token_file))


def test_secrets_are_not_printed(tokens: Settings) -> None:
    """The guard can be logged without telling the tokens."""
    assert WRITE not in repr(make_guard(tokens))


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("localhost", True),
        ("LOCALHOST:4750", True),
        ("127.0.0.1:1", True),
        ("[::1]:4750", True),
        ("collector.example", True),
        ("evil.example:4750", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        (None, False),
    ],
)
def test_only_our_own_names_are_answered(host: str | None, known: bool) -> None:
    """A Host header that names somebody else is how a web page would reach us."""
    guard = make_guard(Settings(allowed_hosts=("collector.example",)))

    assert known is guard.knows_host(host)
