"""What an operator sets of where orders are taken."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from kvtrail_agent.errors import SettingsInvalid


class DegradeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where orders are taken, and whose. Secrets are never settings: they lie in a file that only its owner can read."""

    engine: Annotated[
        str, Meta(min_length=1, description="the name under which this engine records; orders to others are refused")
    ]
    secret_file: Annotated[Path, Meta(description="file (0600) with secrets as whsec_…, one a line, the newest first")]
    host: Annotated[str, Meta(description="address to listen on; any but loopback needs tls_in_front")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 takes a free one")] = 0
    tls_in_front: Annotated[bool, Meta(description="a proxy in front ends TLS; says so explicitly")] = False
    listens: Annotated[bool, Meta(description="whether the endpoint is open; off where orders come by topic alone")] = True
    topic: Annotated[str, Meta(description="kafka://host:port[,host:port]/topic where orders are taken too; empty: none")] = ""
    kafka_options_file: Annotated[Path | None, Meta(description="file (0600, TOML) with TLS and SASL options of Kafka")] = None
    oldest_s: Annotated[int, Meta(ge=1, le=300, description="an order that was sent longer ago than this is refused")] = 30


def check_degrade_settings(settings: DegradeSettings) -> None:
    """Whether the address may be listened on, and whether orders are taken anywhere.

    Raises:
        SettingsInvalid: it could be reached by strangers, in clear; or they are not.
    """
    if not settings.listens:
        if not settings.topic:
            message = "no endpoint and no topic: set listens, or a topic as kafka://host:port/topic"
            raise SettingsInvalid(message)
        return
    try:
        is_loopback = settings.host == "localhost" or ipaddress.ip_address(settings.host.strip("[]")).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback and not settings.tls_in_front:
        message = f"host {settings.host} can be reached by others in clear: listen on 127.0.0.1, or set tls_in_front"
        raise SettingsInvalid(message)
