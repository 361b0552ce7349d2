"""Where the collector is, and the tokens for reading and control: from three environment variables."""

import ipaddress
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kvtrail_dashboards.errors import SettingsUnusable

COLLECTOR_URL: Final = "KVTRAIL_COLLECTOR_URL"
READ_TOKEN_FILE: Final = "KVTRAIL_READ_TOKEN_FILE"  # noqa: S105 - the name of a variable
CONTROL_TOKEN_FILE: Final = "KVTRAIL_CONTROL_TOKEN_FILE"  # noqa: S105 - as above
DEFAULT_URL: Final = "http://127.0.0.1:4750"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the pages need to ask, and to end an action. Tokens are never shown, nor part of a repr."""

    collector_url: str
    read_token: str | None = field(default=None, repr=False)
    control_token: str | None = field(default=None, repr=False)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Read the variables. Reads two small files; sends nothing.

    Raises:
        SettingsUnusable: the address is no http(s) URL, the token file cannot be read or is open to others, or the token
            would travel in clear to another host.
    """
    url = environ.get(COLLECTOR_URL, "") or DEFAULT_URL
    token, control = (_token(environ.get(name, ""), name) for name in (READ_TOKEN_FILE, CONTROL_TOKEN_FILE))
    _check(url, token or control)
    return Settings(collector_url=url.rstrip("/"), read_token=token, control_token=control)


def _check(url: str, token: str | None) -> None:
    """Refuse what is no address, and a token in clear."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        do = f"set {COLLECTOR_URL} to an address like {DEFAULT_URL}"
        raise SettingsUnusable("the collector's address is no http(s) URL without a password", where=COLLECTOR_URL, do=do)
    if token is not None and parts.scheme == "http" and not _is_loopback(parts.hostname):
        do = "use https, or a tunnel to the collector's loopback address"
        raise SettingsUnusable("the token would travel in clear", where=COLLECTOR_URL, do=do)


def _is_loopback(host: str) -> bool:
    """Whether an address stays on this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token(path: str, variable: str) -> str | None:
    """The token in a file that only its owner can read; None where no file is named."""
    if not path:
        return None
    try:
        mode = Path(path).stat().st_mode
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        do = f"name a readable file in {variable}"
        raise SettingsUnusable(f"the token cannot be read: {error}", where=path, do=do) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsUnusable("others can read the token", where=path, do=f"chmod 600 {path}")
    if not text or not text.isascii() or not text.isprintable():
        raise SettingsUnusable("the token is empty or not printable", where=path, do="write the collector's token into it")
    return text
