"""Frames by HTTP to a collector: `POST /v1/events`, one frame a request, acknowledged after the commit."""

import stat
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx
from kvtrail_schema.batch import CONTENT_TYPE, BatchHeader

from kvtrail_agent.errors import BatchRejected, SettingsInvalid, TransportUnavailable

EVENTS_PATH: Final = "/v1/events"
_TIMEOUT: Final = httpx.Timeout(10.0, connect=2.0)
# The collector read the frame and says that it is none. Any other answer, a wrong address or token among them, can be mended.
_NEVER: Final = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)


class HttpTransport:
    """A connection to a collector that is kept open between frames."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def send(self, frame: bytes, header: BatchHeader) -> None:
        """Post a frame; returns after the collector committed it. A wrong token is "later": an operator can mend it."""
        try:
            response = self._client.post(EVENTS_PATH, content=frame, headers={"content-type": CONTENT_TYPE})
        except httpx.HTTPError as error:
            message = f"{self._client.base_url}: {type(error).__name__}: {error}"
            raise TransportUnavailable(message) from error
        if response.is_success:
            return
        message = f"{self._client.base_url} answered {response.status_code}: {response.text[:300]}"
        if response.status_code in _NEVER:
            raise BatchRejected(message)
        raise TransportUnavailable(message)

    def flush(self, timeout_s: float) -> None:
        """Nothing is under way: `send` returned after the commit."""

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def read_token(token_file: Path) -> str:
    """The token in a file that its owner alone may read.

    Raises:
        SettingsInvalid: the file cannot be read, is empty, or others may read it.
    """
    try:
        mode = token_file.stat().st_mode
        token = token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        message = f"token_file {token_file}: {error.strerror}"
        raise SettingsInvalid(message) from error
    if stat.S_IMODE(mode) & 0o077:
        message = f"token_file {token_file} may be read by others: chmod 600 it"
        raise SettingsInvalid(message)
    if not token:
        message = f"token_file {token_file} is empty"
        raise SettingsInvalid(message)
    return token


def open(url: str, token_file: Path | None) -> HttpTransport:  # noqa: A001 - the name that every transport's module has
    """A transport to the collector at an address. Connects at the first frame."""
    headers = {"authorization": f"Bearer {read_token(token_file)}"} if token_file else {}
    return HttpTransport(httpx.Client(base_url=url, headers=headers, timeout=_TIMEOUT, trust_env=False))
