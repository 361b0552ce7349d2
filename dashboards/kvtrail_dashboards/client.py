"""Asks the collector over HTTP: one method a question, a typed answer or an error that says what to do."""

from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from kvtrail_dashboards.alert_answers import Alerts, Released
from kvtrail_dashboards.answers import Attribution, ErrorReply, EventRef, Loss, Requests, Series, Trouble, Why
from kvtrail_dashboards.asked import Asked
from kvtrail_dashboards.errors import AccessRefused, AnswerUnreadable, CollectorUnreachable, NotKnown, QuestionRefused
from kvtrail_dashboards.page_answers import Block, Engines, Latency, OneEvent, Verdicts
from kvtrail_dashboards.settings import CONTROL_TOKEN_FILE, READ_TOKEN_FILE, Settings

ANSWER_BYTES: Final = 32 << 20
"""No answer is read beyond this."""
TIMEOUT_S: Final = httpx.Timeout(30.0, connect=3.0)
_REFUSED: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}

Answer = TypeVar("Answer")
Params = Mapping[str, str | int | float | None]


class CollectorClient:
    """One connection to one collector. Blocks for up to 30 s a question; used by one thread, closed by its owner.

    It talks to the named address only: no proxy from the environment, no redirect is followed, so the token goes nowhere
    else. Every method raises a `CollectorError`.
    """

    def __init__(self, settings: Settings) -> None:
        headers = {"accept": "application/json"}
        if settings.read_token is not None:
            headers["authorization"] = f"Bearer {settings.read_token}"
        self._control = settings.control_token
        self._http = httpx.Client(base_url=settings.collector_url, headers=headers, timeout=TIMEOUT_S, trust_env=False)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connection."""
        self._http.close()

    def loss(self) -> Loss:
        """The balance of every stream; it names the engines that the collector knows."""
        return self._ask("/v1/loss", {}, Loss)

    def series(self, *, engine: str | None, bucket_ms: int) -> Series:
        """Percentiles of TTFT over time, a point a bucket."""
        return self._ask("/v1/series", {"engine": engine, "bucket_ms": bucket_ms}, Series)

    def attribution(self, *, engine: str | None, start_ns: int | None, end_ns: int | None) -> Attribution:
        """What made the slow requests slow; without a window the collector searches for the spike."""
        return self._ask("/v1/attribution", {"engine": engine, "start_ns": start_ns, "end_ns": end_ns}, Attribution)

    def worst_requests(self, *, engine: str | None, start_ns: int | None, end_ns: int | None, limit: int) -> Requests:
        """The slowest requests that arrived in the window, or at all."""
        params: Params = {"engine": engine, "start_ns": start_ns, "end_ns": end_ns, "order": "ttft", "limit": limit}
        return self._ask("/v1/requests", params, Requests)

    def why(self, request: str, *, engine: str | None, within: tuple[int, int] | None = None) -> Why:
        """Where one request's time went; `request` is its number, the engine's own text id, or `epoch:rank:number`."""
        start_ns, end_ns = within or (None, None)
        params: Params = {"engine": engine, "start_ns": start_ns, "end_ns": end_ns}
        return self._ask(f"/v1/requests/{quote(request, safe=':')}", params, Why)

    def engines(self) -> Engines:
        """Engines, tenants and models that there are."""
        return self._ask("/v1/engines", {}, Engines)

    def verdicts(self, asked: Asked) -> Verdicts:
        """All that is wrong with an engine in a stretch of time; the collector computes for up to seconds."""
        return self._ask("/v1/verdicts", _both_or_none(asked), Verdicts)

    def latency(self, asked: Asked, *, ttft_ms: float, tpot_ms: float) -> Latency:
        """TTFT and TPOT over time, and the share of requests within an objective."""
        return self._ask("/v1/latency", {**asked.params(), "ttft_ms": ttft_ms, "tpot_ms": tpot_ms}, Latency)

    def page(self, path: str, asked: Asked, shape: type[Answer]) -> Answer:
        """One of the questions that take nothing but what they are about."""
        return self._ask(path, asked.params(), shape)

    def event(self, ref: EventRef) -> OneEvent:
        """One event in full."""
        who: Params = {"engine": ref.engine, "epoch": ref.epoch, "rank": ref.rank, "seq": ref.seq}
        return self._ask("/v1/event", who, OneEvent)

    def block(self, block: str, *, engine: str) -> Block:
        """The life of a block: where its copies were."""
        return self._ask(f"/v1/blocks/{quote(block, safe='')}", {"engine": engine}, Block)

    def alerts(self) -> Alerts:
        """Rules, actions in force, and what happened."""
        return self._ask("/v1/alerts", {}, Alerts)

    def release(self, engine: str, action: str) -> Released:
        """End an action, whoever wanted it; that wants the token for control, where the collector has one."""
        path = "/v1/actions/release"
        headers = {} if self._control is None else {"authorization": f"Bearer {self._control}"}
        try:
            with self._http.stream("POST", path, json={"engine": engine, "action": action}, headers=headers) as response:
                body = _bounded(response, path)
        except httpx.HTTPError as error:
            raise _unreachable(error, str(self._http.base_url)) from error
        if response.status_code in _REFUSED:
            do = f"name the file with the token for control in {CONTROL_TOKEN_FILE}"
            raise AccessRefused("the dashboard may not end actions", where=path, do=do)
        if response.status_code != HTTPStatus.OK:
            raise _refusal(response.status_code, path, body)
        return _read(body, path, Released)

    def _ask(self, path: str, params: Params, shape: type[Answer]) -> Answer:
        """Ask and read the answer in its shape."""
        given = {name: value for name, value in params.items() if value is not None}
        try:
            with self._http.stream("GET", path, params=given) as response:
                body = _bounded(response, path)
        except httpx.HTTPError as error:
            raise _unreachable(error, str(self._http.base_url)) from error
        if response.status_code != HTTPStatus.OK:
            raise _refusal(response.status_code, path, body)
        return _read(body, path, shape)


def _both_or_none(asked: Asked) -> Params:
    """An engine, and a stretch of time where it has both ends: some questions take no other."""
    if asked.start_ns is None or asked.end_ns is None:
        return {"engine": asked.engine}
    return {"engine": asked.engine, "start_ns": asked.start_ns, "end_ns": asked.end_ns}


def _bounded(response: httpx.Response, path: str) -> bytes:
    """The body, if it is not larger than any answer should be."""
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > ANSWER_BYTES:
            do = "ask for a shorter window"
            raise AnswerUnreadable(f"the answer is larger than {ANSWER_BYTES >> 20} MiB", where=path, do=do)
    return bytes(body)


def _read(body: bytes, path: str, shape: type[Answer]) -> Answer:
    """The body in its shape."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.DecodeError as error:
        do = "check that the address is a kvtrail collector's, and that its version fits the dashboard's"
        raise AnswerUnreadable(f"the answer does not have the published shape: {error}", where=path, do=do) from error


def _unreachable(error: httpx.HTTPError, url: str) -> CollectorUnreachable:
    """The one place where the HTTP library's errors become ours."""
    if isinstance(error, httpx.TimeoutException):
        do = "look at its load with `kvtrail doctor`, or ask for a shorter window"
        return CollectorUnreachable("the collector does not answer in time", where=url, do=do)
    do = "start it with `kvtrail collector serve`, or set KVTRAIL_COLLECTOR_URL to where it runs"
    return CollectorUnreachable(f"no collector answers ({type(error).__name__})", where=url, do=do)


def _refusal(status: int, path: str, body: bytes) -> AccessRefused | NotKnown | QuestionRefused:
    """An error of the collector, in its own words where it gives them."""
    trouble = _trouble(body) or Trouble(f"the collector answered with status {status}")
    where = trouble.where or path
    if status in _REFUSED:
        return AccessRefused(trouble.what, where=where, do=f"name the file with the token for reading in {READ_TOKEN_FILE}")
    if status == HTTPStatus.NOT_FOUND:
        return NotKnown(trouble.what, where=where, do=trouble.do or "check the id and the engine")
    return QuestionRefused(trouble.what, where=where, do=trouble.do or "look into the collector's log")


def _trouble(body: bytes) -> Trouble | None:
    """The collector's words, if the body holds any."""
    try:
        return msgspec.json.decode(body, type=ErrorReply).error
    except msgspec.DecodeError:
        return None
