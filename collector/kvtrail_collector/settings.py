"""Every setting of the collector, once: its name, its type, its default, what it is for. Docs are made from this file.

Sources, each over the one before: the defaults here, a TOML file (table `[collector]`), `KVTRAIL_*` variables, flags.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from kvtrail_schema.kafka_record import DEFAULT_TOPIC
from msgspec import Meta

from kvtrail_collector.errors import SettingsInvalid

PREFIX: Final = "KVTRAIL_"
TABLE: Final = "collector"

_Text = Annotated[str, Meta(min_length=1)]
_Count = Annotated[int, Meta(ge=1)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a collector can be told. Secrets are never settings: tokens lie in files that only the owner can read."""

    store: Annotated[_Text, Meta(description="DuckDB file that holds the events; :memory: keeps them for one run only")] = (
        "kvtrail.duckdb"
    )
    host: Annotated[_Text, Meta(description="address to listen on; any but loopback needs tokens, and TLS or tls_in_front")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 takes a free one")] = 4750
    allowed_hosts: Annotated[tuple[str, ...], Meta(description="names under which clients may call, beside loopback ones")] = ()
    tls_certificate: Annotated[str, Meta(description="PEM file with the certificate chain")] = ""
    tls_key: Annotated[str, Meta(description="PEM file with the private key, mode 0600")] = ""
    tls_in_front: Annotated[bool, Meta(description="a proxy in front ends TLS; says so explicitly")] = False
    write_token_file: Annotated[str, Meta(description="file (0600) with the token for sending events")] = ""
    read_token_file: Annotated[str, Meta(description="file (0600) with the token for asking")] = ""
    control_token_file: Annotated[str, Meta(description="file (0600) with the token for changing what runs")] = ""
    names_file: Annotated[
        str, Meta(description="file (TOML) that says what hashed tenants and models are called; empty: none")
    ] = ""
    thresholds_file: Annotated[
        str, Meta(description="file (TOML) with thresholds of verdicts, a table a code; empty: their defaults")
    ] = ""
    alerts_file: Annotated[
        str, Meta(description="file (TOML) with rules of alerts over the shipped ones, and targets of webhooks; empty: none")
    ] = ""
    body_bytes: Annotated[_Count, Meta(description="most bytes of one batch as sent")] = 16 << 20
    decoded_bytes: Annotated[_Count, Meta(description="most bytes of one batch after decompression")] = 128 << 20
    body_timeout_s: Annotated[float, Meta(gt=0, description="longest time in seconds that a batch may take to come in")] = 30.0
    uploads: Annotated[_Count, Meta(description="batches received at the same time; more are told to come again")] = 16
    queue_batches: Annotated[_Count, Meta(description="batches that may wait for the writer")] = 256
    queue_bytes: Annotated[_Count, Meta(description="memory in bytes that may wait for the writer")] = 256 << 20
    memory_limit: Annotated[str, Meta(description="most memory that DuckDB takes, as 2GB; empty: 80 % of the machine's")] = ""
    seal_after_s: Annotated[
        float, Meta(ge=0, le=1e9, description="age in seconds from which events leave the hot file as sealed Parquet; 0: never")
    ] = 3600.0
    seal_dir: Annotated[str, Meta(description="folder for sealed Parquet files; empty: beside the store, as STORE.sealed")] = ""
    retention_days: Annotated[
        float, Meta(ge=0, le=36_500, description="days for which sealed events are kept; 0: for ever")
    ] = 0.0
    retention_bytes: Annotated[int, Meta(ge=0, description="most bytes of sealed files; the oldest go first; 0: no bound")] = 0
    kafka_bootstrap: Annotated[
        str, Meta(description="brokers of a Kafka cluster to read from, as host:port[,host:port]; empty: none")
    ] = ""
    kafka_topic: Annotated[_Text, Meta(description="topic that holds the batches")] = DEFAULT_TOPIC
    kafka_dead_letter_topic: Annotated[
        str, Meta(description="topic for records that cannot be read, beside the quarantine table; empty: none")
    ] = ""
    kafka_options_file: Annotated[str, Meta(description="file (0600, TOML) with TLS and SASL options of Kafka")] = ""


class LoadedSettings(NamedTuple):
    """The effective settings, and for each name where it came from: `default`, a file, a variable, or `flag`."""

    settings: Settings
    sources: dict[str, str]


class SettingDoc(NamedTuple):
    """One row of the reference."""

    name: str
    variable: str
    default: str
    help: str


class _Layer(NamedTuple):
    """Values from one source; `where` says for each name what to point at in an error."""

    values: Mapping[str, object]
    where: Mapping[str, str]


def load_settings(
    toml_path: Path | None = None, environ: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None
) -> LoadedSettings:
    """Merge all sources. Reads one file; nothing else. `overrides` that are None count as not given.

    Raises:
        SettingsInvalid: a value does not fit, or the file has a name that no setting has.
    """
    layers = [_from_file(toml_path), _from_environ(environ or {}), _from_flags(overrides or {})]
    values: dict[str, object] = {}
    sources = dict.fromkeys(Settings.__struct_fields__, "default")
    for layer in layers:
        for name, value in layer.values.items():
            values[name] = _checked(name, value, layer.where[name])
            sources[name] = layer.where[name]
    return LoadedSettings(msgspec.convert(values, Settings), sources)


def setting_docs() -> list[SettingDoc]:
    """The reference: one row a setting, in the order of the file."""
    return [
        SettingDoc(field.name, PREFIX + field.name.upper(), repr(field.default), _description(field.type))
        for field in msgspec.structs.fields(Settings)
    ]


def _from_file(path: Path | None) -> _Layer:
    """The table `[collector]` of a TOML file."""
    if path is None:
        return _Layer({}, {})
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get(TABLE, {})
    except (OSError, ValueError) as error:
        raise SettingsInvalid(str(error), where=str(path), do="give a readable TOML file") from error
    if not isinstance(table, dict):
        raise SettingsInvalid(f"`{TABLE}` is no table", where=str(path), do=f"write the settings under [{TABLE}]")
    return _Layer(table, dict.fromkeys(table, str(path)))


def _from_environ(environ: Mapping[str, str]) -> _Layer:
    """The variables that name settings of ours; others belong to other parts."""
    names = {PREFIX + name.upper(): name for name in Settings.__struct_fields__}
    found = {names[key]: value for key, value in environ.items() if key in names}
    return _Layer(found, {name: PREFIX + name.upper() for name in found})


def _from_flags(overrides: Mapping[str, object]) -> _Layer:
    """What was said on the command line."""
    given = {name: value for name, value in overrides.items() if value is not None}
    return _Layer(given, dict.fromkeys(given, "flag"))


def _checked(name: str, value: object, where: str) -> object:
    """A value as its setting's type.

    Raises:
        SettingsInvalid: there is no such setting, or the value does not fit.
    """
    types = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    if name not in types:
        raise SettingsInvalid(f"there is no setting {name!r}", where=where, do=f"use one of: {', '.join(types)}")
    if name == "allowed_hosts" and isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        converted: object = msgspec.convert(value, types[name], strict=False)
    except msgspec.ValidationError as error:
        raise SettingsInvalid(f"{name}: {error}", where=where, do=_description(types[name])) from error
    return converted


def _description(kind: object) -> str:
    """The help text of a setting's type."""
    return next((part.description for part in getattr(kind, "__metadata__", ()) if part.description), "")
