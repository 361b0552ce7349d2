"""What an operator says of an attachment to vLLM: `kvtrail` in the connector's extra configuration, or the environment.

```json
{"kvtrail": {"engine": "chat-1", "transport": "http://127.0.0.1:4750", "key_file": "/etc/kvtrail/fleet.key"}}
```

Every setting of the agent may stand there; beside them `key_file`, and `tier`, which names the level that the inner connector
keeps its blocks in, where its name does not say it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from kvtrail_schema.enums import Tier

from kvtrail_agent.errors import SettingsInvalid
from kvtrail_agent.settings import AgentSettings

_FROM_ENVIRONMENT: Final = {
    "engine": "KVTRAIL_ENGINE",
    "transport": "KVTRAIL_TRANSPORT",
    "token_file": "KVTRAIL_WRITE_TOKEN_FILE",
    "kafka_options_file": "KVTRAIL_KAFKA_OPTIONS_FILE",
    "key_file": "KVTRAIL_KEY_FILE",
}
_TIERS: Final = {tier.name.lower(): tier for tier in Tier}
_BY_SOURCE: Final = {"host": Tier.HOST, "disk": Tier.NVME, "p2p": Tier.REMOTE}
_BY_NAME: Final = (("ExampleConnector", Tier.NVME), ("Offload", Tier.HOST), ("LMCache", Tier.HOST))
SAVES_AT_ONCE: Final = frozenset({"ExampleConnector"})
"""Connectors whose saves are done when their call returns; others go on saving, and say at a request's end that they did."""


class Attachment(NamedTuple):
    """The settings of the agent, and what an attachment adds to them."""

    agent: AgentSettings
    key_file: Path | None
    tier: Tier | None


def attachment_settings(extra: Mapping[str, Any], rank: int) -> Attachment | None:
    """What the configuration says, over what the environment says; None where neither names a transport and an engine.

    Raises:
        SettingsInvalid: a setting is unknown or impossible; the message names it.
    """
    environment = {name: os.environ[key] for name, key in _FROM_ENVIRONMENT.items() if os.environ.get(key)}
    told: dict[str, Any] = {"rank": rank, **environment, **extra}
    if not told.get("transport") or not told.get("engine"):
        return None
    key_file, tier = told.pop("key_file", None), told.pop("tier", None)
    if tier is not None and str(tier) not in _TIERS:
        raise SettingsInvalid(f"kvtrail.tier is {tier!r}: one of {', '.join(_TIERS)}")
    unknown = set(told) - {field.name for field in msgspec.structs.fields(AgentSettings)}
    if unknown:
        raise SettingsInvalid(f"kvtrail has no setting {', '.join(sorted(unknown))}")
    try:
        agent = msgspec.convert(told, AgentSettings, strict=False, dec_hook=lambda kind, value: kind(value))
    except msgspec.ValidationError as error:
        raise SettingsInvalid(f"kvtrail: {error}") from error
    return Attachment(agent, None if key_file is None else Path(key_file), None if tier is None else _TIERS[str(tier)])


def tier_of_connector(connector: type, named: Tier | None) -> Tier:
    """The level that a connector keeps blocks in: as the operator says, as it says itself, by its name, else `remote`."""
    if named is not None:
        return named
    source = getattr(getattr(connector, "_cache_hit_source", None), "value", None)
    if source in _BY_SOURCE:
        return _BY_SOURCE[source]
    return next((tier for part, tier in _BY_NAME if part in connector.__name__), Tier.REMOTE)


def tier_of_sources(sources: Mapping[Any, int], default: Tier) -> Tier:
    """The level that most of the tokens found outside came from, as the connector splits them."""
    known = {
        _BY_SOURCE[name]: count for source, count in sources.items() if (name := getattr(source, "value", "")) in _BY_SOURCE
    }
    return max(known, key=lambda tier: known[tier]) if known else default
