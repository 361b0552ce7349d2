"""`kvtrail drill storm`: wasted prefetches spike under load; is the engine told in time, is it well again, is it released?

The whole way is real: engine, recorder, collector in a process of its own, shipped rule, signed webhook, endpoint.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec
import numpy as np
from kvtrail_agent.degrade import DegradeSettings
from kvtrail_agent.settings import AgentSettings
from kvtrail_collector.alerts.audit import What
from kvtrail_collector.alerts.file import load_alerts
from kvtrail_collector.alerts.rules import Rule
from kvtrail_collector.alerts.shapes import Alerts
from kvtrail_collector.sql_shapes import SqlAnswer
from kvtrail_engine.drills.hint_storm import HintStorm, with_prefetch
from kvtrail_engine.drills.profile import DOCUMENT_SHARE, drill_requests, drill_settings
from kvtrail_engine.drills.timer import ScheduledDrill
from kvtrail_engine.request import RequestResult
from kvtrail_schema.kinds import Kind

from kvtrail_cli.client import CollectorClient
from kvtrail_cli.demo.broker import free_ports
from kvtrail_cli.demo.collector_process import running_collector
from kvtrail_cli.drill.storm_shapes import StormRun, Storms
from kvtrail_cli.engine_session import Session, run_recorded
from kvtrail_cli.output import Advance

ENGINE: Final = "stormy"
LONGEST_APPLIED_S: Final = 10.0
LONGEST_RATIO: Final = 1.3
"""P99 of the time to first token afterwards, over that before: as long as a gate lets P95 be."""
LEAST_STORM_RATIO: Final = 3.0
"""P99 in the storm, until the action is applied, over that before: less is no storm, and being well after it proves nothing."""

_NS_S: Final = 1_000_000_000
_WARM_NS: Final = 14 * _NS_S
"""By then as much is read back from nvme a second as ever: chats have come to an end, and pools are full."""
_BEGINS_NS: Final = 20 * _NS_S
_ENDS_NS: Final = 29 * _NS_S
_LOAD_S: Final = 40.0
_SETTLED_NS: Final = 2 * _NS_S
_HOLD_S: Final = 3.0
_ACTION: Final = "stop_prefetch"
_STALLED: Final = What.STALLED.value
_TARGET: Final = """
[[target]]
name = "agent"
url = "http://127.0.0.1:{port}/v1/degrade"
secret_file = "{secret}"
"""
_MOMENTS: Final = f"""
SELECT kind, t_ns FROM events
WHERE kind IN ({Kind.FAULT_INJECTED.value}, {Kind.DEGRADE_APPLIED.value}, {Kind.DEGRADE_CLEARED.value}) ORDER BY seq
"""  # noqa: S608  # constants of ours


class Latencies(NamedTuple):
    """Times to first token in ns, by stretch."""

    reference: list[int]
    storm: list[int]
    after: list[int]


@dataclass(frozen=True, slots=True)
class _Seen:
    """One run, and the latencies in it."""

    run: StormRun
    latencies: Latencies
    session: Session


def run_storms(count: int, first_seed: int, advance: Advance) -> Storms:
    """Run storms one after another, each on a new engine and a new collector. Blocks for a minute each.

    Raises:
        AgentError, EngineError, CollectorUnreachable: a part cannot start, or failed.
    """
    seen: list[_Seen] = []
    for number in range(count):
        advance(number, count)
        with TemporaryDirectory(prefix="kvtrail-storm-") as folder:
            seen.append(_storm(Path(folder), first_seed + number))
    advance(count, count)
    return storms_of([one.run for one in seen], [one.latencies for one in seen], seen[-1].session)


def storms_of(runs: Sequence[StormRun], latencies: Sequence[Latencies], session: Session) -> Storms:
    """Sum runs up. Pure."""
    applied = [run.applied_s for run in runs if run.applied_s is not None]
    p95_s = float(np.quantile(applied, 0.95, method="higher")) if len(applied) == len(runs) else None
    reference, storm, after = (_p99_ms([each for one in latencies for each in one[place]]) for place in range(3))
    ratio = after / reference if after is not None and reference else None
    is_storm = bool(reference and storm) and (storm or 0.0) >= LEAST_STORM_RATIO * (reference or 0.0)
    is_well = ratio is not None and ratio <= LONGEST_RATIO
    is_in_time = p95_s is not None and p95_s <= LONGEST_APPLIED_S
    are_released = all(run.released_s is not None and not run.stalled for run in runs)
    passed = is_storm and is_well and is_in_time and are_released
    result = session.result
    return Storms(tuple(runs), p95_s, reference or 0.0, storm, after, ratio, passed, result.device, result.floors)


def _storm(folder: Path, seed: int) -> _Seen:
    """One run."""
    (port,) = free_ports(1)
    secret, config = _write(folder / "secret", _new_secret()), folder / "kvtrail.toml"
    alerts = _write(folder / "alerts.toml", _alerts(port, secret))
    _write(config, f'[collector]\nalerts_file = "{alerts}"\n')
    storm = ScheduledDrill(HintStorm(seed), _BEGINS_NS, _ENDS_NS)
    arrivals = drill_requests(seed, _LOAD_S, (_BEGINS_NS / _NS_S, _ENDS_NS / _NS_S), DOCUMENT_SHARE)
    with running_collector(folder, "--config", str(config)) as url:
        session = run_recorded(
            with_prefetch(drill_settings(seed, folder / "tiers")),
            arrivals,
            AgentSettings(engine=ENGINE, transport=url, ring_dir=folder / "rings", spool_dir=folder / "spool"),
            lambda _done, _total: None,
            drill=storm,
            degrade=DegradeSettings(engine=ENGINE, secret_file=secret, port=port),
        )
        with CollectorClient(url) as collector:
            moments = collector.get("/v1/sql", SqlAnswer, query=_MOMENTS, rows=100, seconds=30.0)
            alerts_now = collector.get("/v1/alerts", Alerts, audit=1_000)
    return _seen(seed, session, moments, alerts_now)


def _rules() -> list[Rule]:
    """The shipped rules that end prefetching, but that they wait for three clear seconds and not for thirty: a run sees the
    release.
    """
    shipped = [rule for rule in load_alerts(None).rules if rule.action == _ACTION]
    return [msgspec.structs.replace(rule, hold_s=_HOLD_S) for rule in shipped]


def _alerts(port: int, secret: Path) -> str:
    """The file of alerts of a run, in TOML, whose simple values are written as those of JSON."""
    tables = [
        "\n".join(["[[rule]]", *(f"{name} = {json.dumps(value)}" for name, value in msgspec.to_builtins(rule).items())])
        for rule in _rules()
    ]
    return "\n\n".join([*tables, _TARGET.format(port=port, secret=secret)])


def _seen(seed: int, session: Session, moments: SqlAnswer, alerts: Alerts) -> _Seen:
    """What a run shows: by the events of the engine when, by the audit of the collector what."""
    times = {kind: [int(str(t_ns)) for known, t_ns in moments.rows if known == kind.value] for kind in Kind}
    began_ns = times[Kind.FAULT_INJECTED][0]
    applied_ns = next(iter(times[Kind.DEGRADE_APPLIED]), None)
    released_ns = next(iter(times[Kind.DEGRADE_CLEARED]), None)
    latencies = by_stretch(session.result.results, session.result.started_ns, began_ns, applied_ns)
    whats = [row.what for row in alerts.audit]
    names = {rule.name for rule in _rules()}
    fired = sum(row.what == What.FIRED.value and row.rule in names for row in alerts.audit)
    run = StormRun(
        seed=seed,
        applied_s=_after_s(began_ns, applied_ns),
        released_s=_after_s(began_ns, released_ns),
        stalled=_STALLED in whats,
        fired=fired,
        reference_p99_ms=_p99_ms(latencies.reference) or 0.0,
        storm_p99_ms=_p99_ms(latencies.storm),
        after_p99_ms=_p99_ms(latencies.after),
    )
    return _Seen(run, latencies, session)


def by_stretch(results: Sequence[RequestResult], start_ns: int, began_ns: int, applied_ns: int | None) -> Latencies:
    """Times to first token by when a request arrived; those without one count with all their time."""
    found = Latencies([], [], [])
    for result in results:
        took_ns = (result.first_token_ns or result.ended_ns) - result.arrived_ns
        if start_ns + _WARM_NS <= result.arrived_ns < began_ns:
            found.reference.append(took_ns)
        elif began_ns <= result.arrived_ns and (applied_ns is None or result.arrived_ns < applied_ns):
            found.storm.append(took_ns)
        elif applied_ns is not None and result.arrived_ns >= applied_ns + _SETTLED_NS:
            found.after.append(took_ns)
    return found


def _after_s(began_ns: int, moment_ns: int | None) -> float | None:
    """From the storm's beginning, in seconds."""
    return None if moment_ns is None else (moment_ns - began_ns) / _NS_S


def _p99_ms(values_ns: Sequence[int]) -> float | None:
    """The ninety-ninth percentile in ms; None of nothing."""
    return round(float(np.quantile(np.asarray(values_ns), 0.99)) / 1e6, 3) if values_ns else None


def _new_secret() -> str:
    """A secret for the webhooks of one run."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}\n"


def _write(path: Path, text: str) -> Path:
    """A file that its owner alone may read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path
