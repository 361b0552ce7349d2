"""`kvtrail alerts`: rules, actions in force and what happened; and a person's wishes, to ask for an action and to end one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from kvtrail_collector.alerts.shapes import ActionAnswer, ActionAsked, Alerts, AuditRow
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.errors import Exit
from kvtrail_cli.options import Json, TokenFile, Url
from kvtrail_cli.output import OUT, print_json

APP = typer.Typer(help="Alerts, and the actions that follow from them.", no_args_is_help=True)
ControlTokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", envvar="KVTRAIL_CONTROL_TOKEN_FILE", help="File (0600) with the token for control."),
]
Engine = Annotated[str, typer.Argument(help="The operator's name for the engine.")]
Action = Annotated[str, typer.Argument(help="As in rules: stop_prefetch, disable_tier(nvme), limit_long_context(4096) …")]
_NS_S: Final = 1_000_000_000
_FIRING: Final = frozenset({"firing", "clearing"})


@APP.callback()
def group() -> None:
    """Alerts, and the actions that follow from them."""


@APP.command()
def show(
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
    audit: Annotated[int, typer.Option(min=1, max=1_000, help="So much of what happened.")] = 20,
    *,
    json: Json = False,
) -> None:
    """Show what fires, what is in force, and what happened; ends with 1 while a critical alert fires."""
    with CollectorClient(url, token_file) as collector:
        found = collector.get("/v1/alerts", Alerts, audit=audit)
    if json:
        print_json(found)
    else:
        OUT.print(_view(found))
    is_bad = any(rule.severity == "critical" and alert.phase in _FIRING for rule in found.rules for alert in rule.alerts)
    raise typer.Exit(Exit.BAD if is_bad else Exit.GOOD)


@APP.command()
def request(
    engine: Engine,
    action: Action,
    seconds: Annotated[float, typer.Option(min=1, max=3_600, help="For how long.")] = 300.0,
    url: Url = DEFAULT_URL,
    token_file: ControlTokenFile = None,
    *,
    json: Json = False,
) -> None:
    """Ask an engine for an action, for a time."""
    _wish("/v1/actions/request", ActionAsked(engine, action, seconds), CollectorClient(url, token_file), json=json)


@APP.command()
def release(
    engine: Engine, action: Action, url: Url = DEFAULT_URL, token_file: ControlTokenFile = None, *, json: Json = False
) -> None:
    """End an action, whoever wanted it; ends with 1 where it is not in force."""
    _wish("/v1/actions/release", ActionAsked(engine, action), CollectorClient(url, token_file), json=json)


def _wish(path: str, asked: ActionAsked, client: CollectorClient, *, json: bool) -> None:
    """Send a wish, and say what came of it."""
    with client as collector:
        answer = collector.post_json(path, asked, ActionAnswer)
    if json:
        print_json(answer)
    else:
        OUT.print(f"{answer.action} of {answer.engine}: {'ordered' if answer.changed else 'not in force'}")
    raise typer.Exit(Exit.GOOD if answer.changed else Exit.BAD)


def _view(found: Alerts) -> RenderableType:
    """What fires, what is in force, and what happened."""
    firing = [(rule, alert) for rule in found.rules for alert in rule.alerts if alert.phase in _FIRING]
    alerts = Table(
        "alert", "engine", "tier", "figure", "raise", "for s", "severity", "action", title="firing", title_justify="left"
    )
    for rule, alert in firing:
        figure = "–" if alert.value is None else f"{alert.value:.4g}"
        limits = (f"{rule.raise_at:g}", f"{alert.since_s:.0f}")
        alerts.add_row(rule.name, alert.engine, alert.tier, figure, *limits, rule.severity, rule.action)
    actions = Table("action", "engine", "effect", "expires in s", "wanted by", title="in force", title_justify="left")
    for one in found.actions:
        left_s = (one.expires_wall_ns - found.wall_ns) / _NS_S
        actions.add_row(one.action, one.engine, one.effect, f"{left_s:.0f}", ", ".join(one.rules))
    parts: list[RenderableType] = [alerts if firing else Text("nothing fires")]
    parts += [actions if found.actions else Text("no action is in force"), *map(_line, reversed(found.audit))]
    if found.dead_letters:
        parts.append(
            Text(f"{len(found.dead_letters)} webhooks were given up; the last: {found.dead_letters[0].reason}", style="bold")
        )
    return Group(*parts)


def _line(row: AuditRow) -> Text:
    """One thing that happened."""
    moment = datetime.fromtimestamp(row.wall_ns / _NS_S, tz=UTC).strftime("%H:%M:%S")
    return Text(f"{moment}  {row.engine}  {row.what}  {row.subject}  {row.rule}  {row.detail}".rstrip())
