"""A gate between two runs that are stored: which streams are meant, and what else is known of the candidate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kvtrail_collector.detectors.judge import Thresholds
from kvtrail_collector.detectors.rule import Basis, Family
from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.detectors.scene import Bounds
from kvtrail_collector.diagnose_store import diagnose_store
from kvtrail_collector.errors import NotFound, QuestionInvalid
from kvtrail_collector.gate import THRESHOLDS, Findings, judge_gate
from kvtrail_collector.gate_shapes import Gate
from kvtrail_collector.gate_side import Side, side_of
from kvtrail_collector.loss import loss_of
from kvtrail_collector.questions.facts import device
from kvtrail_collector.store import Account, Store

_NOT_ACTIVE: Final = "CONFIG_NOT_ACTIVE"
_COUNTED_BESIDE: Final = frozenset(
    {
        "REFCOUNT_NEGATIVE",
        "HASH_SEED_MISMATCH",
        *("GAP", "INGEST_LOSS", "OBSERVER_BACKPRESSURE", "MALFORMED", "SEQ_INTERLEAVED", "RANKS_MISSING", "GHOST"),
    }
)
INVARIANTS: Final = frozenset(
    rule.code
    for rule in RULES
    if rule.basis is Basis.INVARIANT
    and rule.code != _NOT_ACTIVE
    and (rule.family in {Family.INTEGRITY, Family.FIGURES} or rule.code in _COUNTED_BESIDE)
)
"""Codes that fail a gate: broken promises, figures that lie, lost events. Not those that are no fault of the candidate:
a step of the clock, two namespaces with one hash, events of a newer version, chains whose beginning was not heard.
"""
_SHOWN_RUNS: Final = 5
_EPOCH_FORMS: Final = ((10, re.compile(r"[0-9]{1,20}")), (16, re.compile(r"(0x)?[0-9a-fA-F]{1,16}")))
_SPAN: Final = "SELECT min(t_ns), max(t_ns) + 1 FROM events WHERE stream_id IN (SELECT unnest(?::INTEGER[]))"


class Run(NamedTuple):
    """A run that is stored: an engine's epoch, the newest where none is named; of whatever engine where none is."""

    store: Store
    engine: str | None = None
    epoch: int | None = None

    def accounts(self) -> list[Account]:
        """The books of its streams.

        Raises:
            NotFound: there is none.
        """
        known = [account for account in self.store.accounts().values() if self.engine in {None, account.stream.engine}]
        known = [account for account in known if self.epoch in {None, account.stream.epoch}]
        if not known:
            where = f"{self.engine or 'any engine'}{'' if self.epoch is None else f'@{self.epoch:016x}'}"
            raise NotFound("no such run is stored", where=where, do=_instead(self.store))
        newest = max(known, key=lambda account: account.marks.clocks.wall_ns).stream
        return [account for account in known if (account.stream.engine, account.stream.epoch) == (newest.engine, newest.epoch)]


def _instead(store: Store) -> str:
    """What to ask for: some of the runs that are stored."""
    runs = sorted({f"{account.stream.engine}@{account.stream.epoch:016x}" for account in store.accounts().values()})
    more = f" and {len(runs) - _SHOWN_RUNS} more" if len(runs) > _SHOWN_RUNS else ""
    return f"name one that is: {', '.join(runs[:_SHOWN_RUNS])}{more}" if runs else "record a run first: nothing is stored yet"


def parse_run(store: Store, text: str) -> Run:
    """A run as people name it: `ENGINE` or `ENGINE@EPOCH`, the epoch hexadecimal, as it is shown, or decimal, as in JSON.

    Of digits that may be either, what is stored is meant.

    Raises:
        QuestionInvalid: the epoch is no number.
    """
    streams = {account.stream for account in store.accounts().values()}
    engine, mark, epoch = text.rpartition("@")
    if not mark or any(stream.engine == text for stream in streams):
        return Run(store, text)
    meant = [int(epoch, base) for base, form in _EPOCH_FORMS if form.fullmatch(epoch)]
    if not meant:
        do = "write ENGINE@EPOCH, the epoch as `kvtrail loss` shows it"
        raise QuestionInvalid(f"{epoch!r} is no epoch", where=text, do=do)
    stored = {stream.epoch for stream in streams if stream.engine == engine}
    return Run(store, engine, next((number for number in meant if number in stored), meant[0]))


def gate_runs(
    baseline: Run, candidate: Run, now_wall_ns: int, thresholds: Mapping[str, float], detecting: Thresholds | None = None
) -> Gate:
    """Whether a stored run may take the place of another. Blocks for as long as diagnosing the candidate takes.

    Raises:
        NotFound: a run is not stored.
        QuestionInvalid: a threshold names no condition.
        StoreError: a store cannot be asked.
    """
    unknown = sorted(set(thresholds) - set(THRESHOLDS))
    if unknown:
        do = f"use one of {', '.join(THRESHOLDS)}"
        raise QuestionInvalid(f"there is no condition {', '.join(unknown)}", where="thresholds", do=do)
    before, after = _side(baseline), _side(candidate)
    with candidate.store.read() as cursor:
        label = device(cursor)
    return judge_gate(before, after, _findings(candidate, now_wall_ns, detecting), thresholds, device=label)


def _side(run: Run) -> Side:
    """The requests of a run."""
    streams = [account.stream_id for account in run.accounts()]
    with run.store.read() as cursor:
        return side_of(cursor, streams)


def _findings(run: Run, now_wall_ns: int, detecting: Thresholds | None) -> Findings:
    """What diagnosing says of a run."""
    accounts = run.accounts()
    with run.store.read() as cursor:
        span = cursor.execute(_SPAN, [[account.stream_id for account in accounts]]).fetchone()
    start_ns, end_ns = span or (None, None)
    bounds = Bounds(start_ns, end_ns, accounts[0].stream.engine)
    verdicts = diagnose_store(run.store, None, bounds, now_wall_ns, detecting).verdicts
    broken = {verdict.code for verdict in verdicts} & INVARIANTS
    idle = sorted(str(verdict.evidence.get("setting", verdict.code)) for verdict in verdicts if verdict.code == _NOT_ACTIVE)
    unaccounted = sum(stream.unaccounted for stream in loss_of(accounts, now_wall_ns).streams)
    return Findings(tuple(sorted(broken)), tuple(idle), unaccounted)
