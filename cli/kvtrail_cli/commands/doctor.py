"""`kvtrail doctor`: the settings in force, where each came from, and what is wrong."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer
from kvtrail_agent.settings import default_ring_dir
from kvtrail_agent.writer_choice import PURE_PYTHON, WriterKind, c_writer_is_built, writer_in_use
from kvtrail_collector.doctor_shapes import Check, Diagnosis, EffectiveSetting
from kvtrail_collector.settings import LoadedSettings, Settings, load_settings
from rich.console import Group
from rich.table import Table
from rich.text import Text

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.errors import CommandError, Exit
from kvtrail_cli.kafka_topic import TopicChoice, kafka_checks, made_topic
from kvtrail_cli.options import Json, TokenFile, Url
from kvtrail_cli.output import OUT, note, print_json

NAME = "doctor"
_EXTRAS: Final = {
    "collector": "duckdb",
    "engine": "torch",
    "encryption": "cryptography",
    "dashboards": "streamlit",
    "kafka": "kafka",
}


def command(
    config: Annotated[Path | None, typer.Option(help="TOML file with settings.")] = None,
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
    *,
    create_topic: Annotated[
        bool, typer.Option("--create-topic", help="Make the Kafka topic that the settings name, if it is not there.")
    ] = False,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of a topic that is made.")] = 6,
    replicas: Annotated[int, typer.Option(help="Copies of each record of it; -1: as the brokers do by default.")] = -1,
    retention_hours: Annotated[int, typer.Option(min=1, help="Hours for which it keeps records.")] = 72,
    retention_bytes: Annotated[int, typer.Option(help="Most bytes of one partition; -1: no limit.")] = -1,
    json: Json = False,
) -> None:
    """Print the effective settings and where each came from, and check what kvtrail needs on this machine."""
    loaded = load_settings(config, os.environ)
    if create_topic:
        note(made_topic(loaded.settings, TopicChoice(partitions, replicas, retention_hours, retention_bytes)))
    extras = [_extra(name, module) for name, module in _EXTRAS.items()]
    checks = [_python(), *extras, _rings(), _writer(), *kafka_checks(loaded.settings)]
    checks.append(_collector(url, token_file))
    diagnosis = Diagnosis(settings=_settings(loaded), checks=tuple(checks))
    if json:
        print_json(diagnosis)
    else:
        OUT.print(_view(diagnosis))
    raise typer.Exit(Exit.GOOD if all(check.ok for check in checks) else Exit.BAD)


def _settings(loaded: LoadedSettings) -> tuple[EffectiveSetting, ...]:
    """Every setting with its value and source."""
    names = Settings.__struct_fields__
    return tuple(EffectiveSetting(name, getattr(loaded.settings, name), loaded.sources[name]) for name in names)


def _python() -> Check:
    """The interpreter is new enough."""
    ok = sys.version_info >= (3, 11)
    return Check("python", ok, sys.version.split()[0], "" if ok else "install Python 3.11 or newer")


def _extra(name: str, module: str) -> Check:
    """An extra of the distribution is installed. The agent alone needs none, so a missing one is told and is no failure."""
    found = find_spec(module) is not None
    fix = "" if found else f"pip install 'kvtrail[{name}]'"
    return Check(f"extra {name}", ok=True, detail="installed" if found else "not installed", fix=fix)


def _rings() -> Check:
    """Rings can be made where recorders make them by default."""
    path = default_ring_dir()
    parent = path if path.exists() else path.parent
    stat = os.statvfs(parent)
    free_bytes = stat.f_bavail * stat.f_frsize
    ok = os.access(parent, os.W_OK) and free_bytes >= 64 << 20
    return Check(
        "ring directory", ok, f"{path}, {free_bytes >> 20} MiB free", "" if ok else "set ring_dir to a place with 64 MiB"
    )


def _writer() -> Check:
    """Which writer of the ring a recorder started here would use; both do the same, and either is good."""
    if writer_in_use() is WriterKind.C:
        return Check("writer of the ring", ok=True, detail="C", fix="")
    why = f"{PURE_PYTHON} is set" if c_writer_is_built() else "install a C compiler, then kvtrail again"
    return Check("writer of the ring", ok=True, detail="Python", fix=why)


def _collector(url: str, token_file: Path | None) -> Check:
    """A collector answers, and says of itself that it can work."""
    try:
        with CollectorClient(url, token_file) as collector:
            theirs = collector.get("/readyz", Diagnosis)
    except CommandError as error:
        return Check("collector", ok=False, detail=f"{url}", fix=str(error))
    broken = [check for check in theirs.checks if not check.ok]
    detail = "ready" if not broken else "; ".join(f"{check.name}: {check.detail}" for check in broken)
    return Check("collector", not broken, f"{url}: {detail}", "; ".join(check.fix for check in broken))


def _shown(value: bool | float | str | tuple[str, ...]) -> str:
    """A setting's value for people."""
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return text or "–"


def _view(diagnosis: Diagnosis) -> Group:
    """Settings and checks for people."""
    settings = Table("setting", "value", "from", box=None, header_style="dim")
    for row in diagnosis.settings:
        settings.add_row(row.name, _shown(row.value), row.source)
    checks = Table("check", "", "detail", "fix", box=None, header_style="dim")
    for check in diagnosis.checks:
        checks.add_row(check.name, Text("ok", "green") if check.ok else Text("bad", "red"), check.detail, check.fix)
    return Group(settings, Text(), checks)
