"""The thread `kvtrail-alerts`: from commits to alerts, from alerts to orders, from events to whether they took effect."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Self

from kvtrail_schema.clock import Clock
from kvtrail_schema.degrade import Action, DegradeOrder

from kvtrail_collector.alerts.actions import ActionBook, InForce, Want
from kvtrail_collector.alerts.attempt import Outcome
from kvtrail_collector.alerts.audit import DeadLetterBody, What
from kvtrail_collector.alerts.batch import NS_S, Rows, rows_by_stream
from kvtrail_collector.alerts.delivery import Delivery, Ended
from kvtrail_collector.alerts.dispatch import Dispatch
from kvtrail_collector.alerts.effects import Effect, Effects, Finding
from kvtrail_collector.alerts.evaluate import AlertKey, Asked, Change, Evaluator
from kvtrail_collector.alerts.feed import Feed
from kvtrail_collector.alerts.figures import asked_figures
from kvtrail_collector.alerts.file import AlertSettings
from kvtrail_collector.alerts.keeping import Keeping
from kvtrail_collector.alerts.notes import note_of_change, note_of_delivery, note_of_effect, note_of_order
from kvtrail_collector.alerts.observe import Observer
from kvtrail_collector.alerts.post import Post
from kvtrail_collector.alerts.shapes import AuditRow, DeadLetter
from kvtrail_collector.alerts.state import AlertState, Turn
from kvtrail_collector.alerts.windows import Windows
from kvtrail_collector.errors import NotFound, QuestionInvalid
from kvtrail_collector.store import Store

EVERY_S: Final = 0.5
_SHOWN: Final = 5
_LOG: Final = logging.getLogger(__name__)


class AlertView(NamedTuple):
    """What is so at one look, for whoever asks."""

    states: dict[AlertKey, AlertState]
    in_force: tuple[tuple[InForce, Effect], ...]
    wall_ns: int
    monotonic_ns: int
    rows_left_out: int
    subjects_refused: int
    webhooks_waiting: int


class Alerter:
    """Watches a store. A context manager; `look` may be called without its thread, by tests and nobody else.

    What it knows is not kept: a collector that starts anew looks anew, and what engines were asked for ends by itself.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: AlertSettings,
        *,
        post: Post,
        new_id: Callable[[], str],
        verdicts: Callable[[], Asked] | None = None,
    ) -> None:
        self._store, self._clock = store, clock
        self.rules, self.targets = settings.rules, tuple(target.name for target in settings.targets)
        self._verdicts = verdicts
        self.feed = Feed()
        self._turn = threading.RLock()  # one look, or one person's wish, at a time
        windows = self._windows = Windows()  # guarded by _turn, as the next ones
        self._observer = Observer(windows)
        self._evaluator = Evaluator(settings.rules, windows)
        self._actions, self._effects = ActionBook(), Effects()
        self._audit: list[AuditRow] = []
        self._keeping = Keeping(store.run)
        self._ended_lock = threading.Lock()
        self._ended: list[Ended] = []  # guarded by _ended_lock
        self.delivery = Delivery(post, clock, self._on_ended)
        self._dispatch = Dispatch(settings.targets, self.delivery, new_id)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kvtrail-alerts", daemon=True)

    def __enter__(self) -> Self:
        """Start looking."""
        self._store.on_commit(self.feed.offer)
        self.delivery.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more; what was not delivered is a dead letter. Actions in force end by themselves."""
        self._stopping.set()
        self._thread.join()
        self.delivery.__exit__()
        with self._turn:
            self._keep()

    def look(self) -> list[Change]:
        """Take in what was committed, look at every rule, and let follow what follows. Milliseconds."""
        with self._turn:
            now_wall_ns = self._clock.wall_ns()
            for committed in self.feed.take():
                for rows in rows_by_stream(committed.rows, committed.origins):
                    self._take_in(rows, now_wall_ns)
            self._note_effects(self._effects.look(now_wall_ns))
            changes = self._evaluator.look(self._clock.monotonic_ns(), now_wall_ns // NS_S, self._asked(now_wall_ns))
            for change in changes:
                self._follow(change, now_wall_ns)
            self._evaluator.forget(now_wall_ns // NS_S)
            self._order(self._actions.lapse(now_wall_ns), What.REQUESTED, now_wall_ns)
            self._renew(now_wall_ns)
            self._keep()
        return changes

    def release(self, engine: str, action: str) -> bool:
        """A person ends an action. Any thread; says whether it was in force."""
        with self._turn:
            now_wall_ns = self._clock.wall_ns()
            orders = self._actions.release(engine, action, now_wall_ns)
            self._order(orders, What.RELEASED_BY_HAND, now_wall_ns)
            self._keep()
        return bool(orders)

    def request(self, engine: str, action: Action, seconds: float) -> bool:
        """A person wants an action for a time. Any thread; says whether that changed anything: it may be in force already.

        Raises:
            NotFound: nobody knows the engine.
            QuestionInvalid: nobody would be told of it.
        """
        self._check_reach(engine, str(action))
        with self._turn:
            now_wall_ns = self._clock.wall_ns()
            want = Want(f"by hand: {action}", action, seconds, now_wall_ns + int(seconds * NS_S))
            orders = self._actions.want(engine, want, now_wall_ns)
            self._order(orders, What.REQUESTED_BY_HAND, now_wall_ns)
            self._keep()
        return bool(orders)

    def _check_reach(self, engine: str, text: str) -> None:
        """Whether an order could reach an engine. Raises as `request`."""
        known = sorted({account.stream.engine for account in self._store.accounts().values()})
        if engine not in known:
            do = f"name one that is: {', '.join(known[:_SHOWN])}" if known else "let it record to this collector first"
            raise NotFound("no engine of this name was heard of", where=engine, do=do)
        if not self._dispatch.takes(engine, text):
            do = "add a [[target]] to the file that alerts_file names, and start the collector anew: docs/alerts.md, Webhooks"
            raise QuestionInvalid(f"no target takes {text} to this engine", where=engine, do=do)

    def view(self) -> AlertView:
        """What is so now. Any thread; cheap."""
        with self._turn:
            in_force = [(one, self._effects.effect_of(one.engine, str(one.action))) for one in self._actions.in_force()]
            states = dict(self._evaluator.states)
            left_out, refused = self.feed.left_out, self._windows.refused
        now = (self._clock.wall_ns(), self._clock.monotonic_ns())
        return AlertView(states, tuple(in_force), *now, left_out, refused, self.delivery.waiting())

    def _take_in(self, rows: Rows, now_wall_ns: int) -> None:
        """The rows of one stream."""
        self._observer.observe(rows, now_wall_ns // NS_S)
        self._note_effects(self._effects.observe(rows))

    def _asked(self, now_wall_ns: int) -> Asked:
        """What is not gathered from rows."""
        accounts = list(self._store.accounts().values())
        own = asked_figures(accounts, self._effects.stalled(), now_wall_ns)
        return own if self._verdicts is None else Asked({**own.by_subject, **self._verdicts().by_subject})

    def _follow(self, change: Change, now_wall_ns: int) -> None:
        """Tell people of an alert, and engines what to do."""
        self._audit.append(note_of_change(change, now_wall_ns))
        self._dispatch.alert(change, now_wall_ns)
        rule, engine = change.rule, change.key.engine
        action = rule.ordered
        if action is None:
            return
        name = f"{rule.name}/{change.key.tier}" if change.key.tier else rule.name
        if change.turn is Turn.FIRED:
            orders = self._actions.want(engine, Want(name, action, rule.expires_s), now_wall_ns)
        else:
            orders = self._actions.unwant(engine, name, now_wall_ns)
        self._order(orders, What.REQUESTED, now_wall_ns)

    def _order(self, orders: Sequence[DegradeOrder], why: What, now_wall_ns: int) -> None:
        """Send orders, write them down, and watch for their effect."""
        for order in orders:
            if self._dispatch.is_told_of(order.engine):
                self._effects.ordered(order, now_wall_ns)
            self._dispatch.order(order, now_wall_ns)
            self._audit.append(note_of_order(order, why, now_wall_ns))

    def _renew(self, now_wall_ns: int) -> None:
        """Order anew what goes on. It is not written down: it would drive out of the audit what changed something."""
        for order in self._actions.renew(now_wall_ns):
            self._dispatch.order(order, now_wall_ns, is_told=False)

    def _note_effects(self, findings: Iterable[Finding]) -> None:
        """Write down what events say of actions."""
        self._audit.extend(note_of_effect(finding) for finding in findings)

    def _on_ended(self, ended: Ended) -> None:
        """A webhook was delivered or given up. On a thread of the delivery."""
        with self._ended_lock:
            self._ended.append(ended)

    def _keep(self) -> None:
        """Write down what happened; what the store does not take now is tried with the next look."""
        with self._ended_lock:
            ended, self._ended = self._ended, []
        now_wall_ns = self._clock.wall_ns()
        lost = [one for one in ended if one.outcome is not Outcome.DELIVERED]
        told = [one for one in ended if one.item.is_told or one.outcome is not Outcome.DELIVERED]
        rows, self._audit = [*self._audit, *(note_of_delivery(one, now_wall_ns) for one in told)], []
        self._keeping.keep(rows, [_dead(one, now_wall_ns) for one in lost])

    def _run(self) -> None:
        """Look after look."""
        while not self._stopping.wait(EVERY_S):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - a defect in one look must not end all alerts
                _LOG.exception("a look at alerts failed")


def _dead(ended: Ended, now_wall_ns: int) -> DeadLetterBody:
    """A webhook that was given up, to be kept."""
    item = ended.item
    letter = DeadLetter(now_wall_ns, ended.target.name, item.id, item.engine, ended.attempts, ended.detail)
    return DeadLetterBody(letter, item.body)
