"""Where webhooks go: named in the operator's file alone; and which addresses are refused even so."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
from kvtrail_schema.errors import SecretInvalid
from kvtrail_schema.webhooks import Secrets, read_secrets
from msgspec import Meta

from kvtrail_collector.alerts.targets_topic import PREFIX, topic_problem
from kvtrail_collector.errors import CollectorError, SettingsInvalid

Resolve = Callable[[str, int], Sequence[str]]
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NO_ADDRESS: Final = "its url is no address: write http(s)://host:port/path, without a name or password"


class Form(StrEnum):
    """What a webhook says, and to whom."""

    ORDERS = "orders"
    """Orders to an engine's agent, in the form of Standard Webhooks."""
    ALERTS = "alerts"
    """Alerts, in the form of Standard Webhooks."""
    ALERTMANAGER = "alertmanager"
    """Alerts, in the form of Alertmanager's webhooks, version 4."""
    TEMPLATE = "template"
    """Orders, to something else that can be switched over HTTP: `body` with $engine, $action, $state, $version, $rule."""
    LMCACHE = "lmcache"
    """Orders, to LMCache's internal API: a tier is bypassed there."""


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One place that webhooks go to."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    url: str
    form: Form = Form.ORDERS
    secret_file: str = ""
    """File (0600) with the secrets that it is signed with; orders need one."""
    engines: tuple[str, ...] = ()
    """Only what is about these engines; empty: all."""
    actions: tuple[str, ...] = ()
    """Only these actions, as in rules; empty: all. For `template` and `lmcache`."""
    body: str = ""
    """The body of `template`; $name stands for a value, put in as JSON."""
    kafka_options_file: str = ""
    """File (0600, TOML) with TLS and SASL options, where `url` is a topic: `kafka://host:port[,host:port]/topic`."""
    plain_http: bool = False
    """Send in clear to another machine: the network in between is trusted."""
    timeout_s: Annotated[float, Meta(gt=0, le=30)] = 1.0

    def takes(self, engine: str) -> bool:
        """Whether what is about an engine goes here."""
        return not self.engines or engine in self.engines

    @property
    def is_topic(self) -> bool:
        """Whether it is a Kafka topic, and no server."""
        return self.url.startswith(PREFIX)

    @property
    def secrets(self) -> Secrets | None:
        """What it is signed with, read anew each time, so that secrets can be rotated while the collector runs.

        Raises:
            SecretInvalid: the file cannot be used now.
        """
        return read_secrets(Path(self.secret_file)) if self.secret_file else None


class AddressRefused(CollectorError):
    """A target's address is one that webhooks do not go to."""


class AddressUnknown(CollectorError):
    """A target's address could not be looked up now; that may pass."""


def check_targets(targets: Sequence[Target], where: str) -> None:
    """Whether all targets can be used, without asking the network.

    Raises:
        SettingsInvalid: one cannot.
    """
    if len({target.name for target in targets}) < len(targets):
        raise SettingsInvalid("two targets have one name", where=where, do="give each a name of its own")
    for target in targets:
        problem = _problem(target)
        if problem:
            raise SettingsInvalid(problem, where=f"{where}: target {target.name}", do="see docs/alerts.md")


def _problem(target: Target) -> str:
    """What is wrong with a target, or an empty text."""
    try:
        _ = target.secrets
    except SecretInvalid as error:
        return str(error)
    if target.form is Form.ORDERS and not target.secret_file:
        return "orders are signed: give a secret_file"
    return _problem_of_topic(target) if target.is_topic else _problem_of_server(target)


def _problem_of_server(target: Target) -> str:
    """What is wrong with one that is called by HTTP, or an empty text."""
    try:
        split = urlsplit(target.url)
        _ = split.port
    except ValueError:
        return _NO_ADDRESS  # the error would name parts of the url, and a password may be among them
    if split.scheme not in {"http", "https"} or not split.hostname or split.username or split.fragment:
        return _NO_ADDRESS
    if split.scheme == "http" and split.hostname not in _LOCAL and not target.plain_http:
        return "http goes in clear: use https, or say plain_http = true where the network is trusted"
    if target.form is Form.LMCACHE and split.path not in {"", "/"}:
        return "its url is that of LMCache's internal API, without a path"
    return "" if bool(target.body) == (target.form is Form.TEMPLATE) else "a template needs a body, and nothing else takes one"


def _problem_of_topic(target: Target) -> str:
    """What is wrong with a topic as a target, or an empty text."""
    if target.form is not Form.ORDERS or target.body:
        return "a topic takes orders alone: leave form and body out"
    return topic_problem(target.url, target.kafka_options_file, plain=target.plain_http)


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the system knows them. Blocks."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def address_of(target: Target, look_up: Resolve = resolve) -> str:
    """The one address that is called: looked up once, checked, and then used, so that a name cannot change in between.

    Raises:
        AddressUnknown: it could not be looked up.
        AddressRefused: it is one of those that nobody means to call: link-local (where clouds keep their credentials),
            multicast, reserved; or this machine, under a name of another one.
    """
    split = urlsplit(target.url)
    host, port = split.hostname or "", split.port or (443 if split.scheme == "https" else 80)
    where, do = f"target {target.name}", "mend its url"
    try:
        found = [ipaddress.ip_address(text.split("%", 1)[0]) for text in look_up(host, port)]
    except (OSError, ValueError) as error:
        raise AddressUnknown(f"{host} has no address: {error}", where=where, do=do) from error
    for address in found:
        inner = getattr(address, "ipv4_mapped", None) or address
        is_local_by_name = inner.is_loopback and host not in _LOCAL and not _is_address(host)
        is_odd = (
            inner.is_link_local or inner.is_multicast or inner.is_unspecified or (inner.is_reserved and not inner.is_loopback)
        )
        if is_local_by_name or is_odd:
            raise AddressRefused(f"{host} is {address}, which webhooks do not go to", where=where, do=do)
    if not found:
        raise AddressUnknown(f"{host} has no address", where=where, do=do)
    return str(found[0])


def _is_address(host: str) -> bool:
    """Whether a host is written as an address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
