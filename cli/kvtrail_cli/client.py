"""Asks a collector over HTTP, and turns what can go wrong into errors that say what to do."""

from pathlib import Path
from typing import Final, Self, TypeVar

import httpx
import msgspec

from kvtrail_cli.errors import CollectorRefused, CollectorUnreachable, InputInvalid

DEFAULT_URL: Final = "http://127.0.0.1:4750"
_T = TypeVar("_T")
Query = float | str | list[str]
_TIMEOUT: Final = httpx.Timeout(120.0, connect=3.0)


class _Problem(msgspec.Struct):
    """What the collector says when it refuses."""

    what: str = ""
    where: str = ""
    do: str = ""


class _Refusal(msgspec.Struct):
    """The frame of an error's answer."""

    error: _Problem = msgspec.field(default_factory=_Problem)


class CollectorClient:
    """A connection to one collector; a context manager."""

    def __init__(self, url: str, token_file: Path | None = None) -> None:
        self.url = url
        headers = {"authorization": f"Bearer {_read(token_file)}"} if token_file else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=_TIMEOUT, trust_env=False)

    def __enter__(self) -> Self:
        """Nothing connects before the first question."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._client.close()

    def get(self, path: str, answer: type[_T], **query: Query | None) -> _T:
        """Ask for one object, typed.

        Raises:
            CollectorUnreachable: nobody answers.
            CollectorRefused: it answered with an error, or with something else than was asked for.
        """
        return self._typed(path, self.get_raw(path, **query), answer)

    def post(self, path: str, answer: type[_T]) -> _T:
        """Have something done, and read what came of it, typed. Raises as `get`."""
        return self._typed(path, self._call("POST", path, {}), answer)

    def post_json(self, path: str, body: object, answer: type[_T]) -> _T:
        """As `post`, with what is wished for as JSON."""
        return self._typed(path, self._call("POST", path, {}, msgspec.json.encode(body)), answer)

    def get_raw(self, path: str, **query: Query | None) -> bytes:
        """Ask for one object, as the bytes of its JSON. Raises as `get`."""
        return self._call("GET", path, {name: value for name, value in query.items() if value is not None})

    def _typed(self, path: str, raw: bytes, answer: type[_T]) -> _T:
        """An answer in its shape."""
        try:
            return msgspec.json.decode(raw, type=answer)
        except msgspec.MsgspecError as error:
            message = f"{self.url}{path} answered in another shape: {error}; is the collector of another version?"
            raise CollectorRefused(message) from error

    def _call(self, method: str, path: str, query: dict[str, Query], body: bytes | None = None) -> bytes:
        """One call, and the bytes of its answer."""
        try:
            headers = {} if body is None else {"content-type": "application/json"}
            response = self._client.request(method, path, params=query, content=body, headers=headers)
        except httpx.HTTPError as error:
            message = f"no collector at {self.url} ({error}): start one with `kvtrail collector serve`, or give --url"
            raise CollectorUnreachable(message) from error
        if response.is_success:
            return response.content
        raise CollectorRefused(_refusal(f"{self.url}{path}", response))


def _refusal(where: str, response: httpx.Response) -> str:
    """One line that says what the collector said."""
    try:
        problem = msgspec.json.decode(response.content, type=_Refusal).error
    except msgspec.MsgspecError:
        problem = _Problem()
    parts = [problem.what or f"answered {response.status_code}", problem.where, problem.do]
    return f"{where}: {'; '.join(part for part in parts if part)}"


def _read(token_file: Path) -> str:
    """The token in a file."""
    try:
        return token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        message = f"--token-file {token_file}: {error.strerror}"
        raise InputInvalid(message) from error
