"""Frames by HTTP to a collector: `POST /v1/events`, one frame a request, acknowledged after the commit."""

from http import HTTPStatus
from typing import Final

import httpx
from kvtrail_schema.header import CONTENT_TYPE, BatchHeader

from kvtrail_agent.errors import BatchRejected, SettingsInvalid, TransportUnavailable
from kvtrail_agent.transports.files import TransportFiles
from kvtrail_agent.transports.token import read_token

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


def open(url: str, files: TransportFiles) -> HttpTransport:  # noqa: A001 - the name that every transport's module has
    """A transport to the collector at an address. Connects at the first frame.

    Raises:
        SettingsInvalid: the address or the token's file is not usable.
    """
    headers = {"authorization": f"Bearer {read_token(files.token_file)}"} if files.token_file else {}
    try:
        client = httpx.Client(base_url=url, headers=headers, timeout=_TIMEOUT, trust_env=False)
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        message = f"transport {url!r}: {error}"
        raise SettingsInvalid(message) from error
    return HttpTransport(client)
