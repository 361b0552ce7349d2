"""One attempt to deliver one webhook: to the address that was checked, without redirects, proxies or endless answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import httpx
from kvtrail_schema.degrade import read_order
from kvtrail_schema.errors import OptionsInvalid, SecretInvalid
from kvtrail_schema.webhooks import Envelope, sign

from kvtrail_collector.alerts.attempt import Attempt, Outcome
from kvtrail_collector.alerts.deadline import Deadline
from kvtrail_collector.alerts.lmcache import calls_of
from kvtrail_collector.alerts.post_topic import post_to_topic
from kvtrail_collector.alerts.targets import AddressRefused, AddressUnknown, Form, Resolve, Target, address_of, resolve
from kvtrail_collector.alerts.targets_topic import topic_address

_ANSWER_BYTES: Final = 512
_AGAIN: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_SERVER_ERROR: Final = 500


class Post(Protocol):
    """**Protocol:** one attempt. Blocks for the look-up of the name and the target's timeout at most; never raises."""

    def __call__(self, target: Target, envelope: Envelope, body: bytes) -> Attempt:
        """Send it."""
        ...


def make_post(look_up: Resolve = resolve, client: Callable[[], httpx.Client] | None = None) -> Post:
    """The way out by HTTP."""
    make = client or (lambda: httpx.Client(follow_redirects=False, trust_env=False))

    def post(target: Target, envelope: Envelope, body: bytes) -> Attempt:
        """Send it once."""
        try:
            signed = {} if (secrets := target.secrets) is None else sign(secrets, envelope, body)
            if target.is_topic:
                where = topic_address(target.url, target.kafka_options_file)
                return post_to_topic(where, signed, body, target.timeout_s)
            address = address_of(target, look_up)
        except (SecretInvalid, OptionsInvalid) as error:
            return Attempt(Outcome.AGAIN, str(error))
        except AddressUnknown as error:
            return Attempt(Outcome.AGAIN, error.trouble.what)
        except AddressRefused as error:
            return Attempt(Outcome.REFUSED, error.trouble.what)
        with make() as http:
            if target.form is Form.LMCACHE:
                return _switch(http, target, address, body)
            return _send(http, _Call("POST", target.url, body), target, address, signed)

    return post


class _Call(NamedTuple):
    """One call by HTTP."""

    verb: str
    url: str
    body: bytes = b""


def _switch(http: httpx.Client, target: Target, address: str, body: bytes) -> Attempt:
    """One order as the calls that LMCache takes, one after another until one is not taken; they may be made again."""
    done = Attempt(Outcome.DELIVERED, "nothing to switch")
    for url in calls_of(target.url, read_order(body)):
        done = _send(http, _Call("PUT", url), target, address, {})
        if done.outcome is not Outcome.DELIVERED:
            break
    return done


def _send(http: httpx.Client, call: _Call, target: Target, address: str, signed: Mapping[str, str]) -> Attempt:
    """One call, by address, under the target's name; no more of the answer is read than its first bytes."""
    split = urlsplit(target.url)
    url = httpx.URL(call.url).copy_with(host=address)
    headers = {"host": split.netloc, "content-type": "application/json", "user-agent": "kvtrail", **signed}
    request = http.build_request(call.verb, url, content=call.body, headers=headers, timeout=target.timeout_s)
    request.extensions["sni_hostname"] = split.hostname
    with Deadline(target.timeout_s) as deadline:
        request.extensions["trace"] = deadline.trace
        try:
            answer = http.send(request, stream=True)
            try:
                start = next(answer.iter_raw(), b"")[:_ANSWER_BYTES]
            finally:
                answer.close()
        except httpx.HTTPError as error:
            late = f"no whole answer within {target.timeout_s:g} s; " if deadline.is_over else ""
            return Attempt(Outcome.AGAIN, f"{late}{type(error).__name__}: {error}")
    return _judged(answer.status_code, start)


def _judged(status: int, start: bytes) -> Attempt:
    """What an answer means. A redirect is refused: it would lead to an address that nobody checked."""
    detail = f"{status} {start.decode(errors='replace')}".strip()
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Attempt(Outcome.DELIVERED, detail)
    return Attempt(Outcome.AGAIN if status >= _SERVER_ERROR or status in _AGAIN else Outcome.REFUSED, detail)
