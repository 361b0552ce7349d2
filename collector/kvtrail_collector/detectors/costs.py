"""What each rule costs, and each table that rules share: to be measured, not to be guessed."""

from collections.abc import Callable, Iterable

from kvtrail_collector.detectors.judge import answer_of, is_called_for
from kvtrail_collector.detectors.rule import Rule
from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.detectors.scene_tables import TABLES


def rule_costs(scene: Scene, rules: Iterable[Rule], now_ns: Callable[[], int]) -> dict[str, int]:
    """Nanoseconds by name of table and by code, on a scene of which nothing was asked yet."""
    costs: dict[str, int] = {}
    for table in TABLES:
        began = now_ns()
        scene.ask(f"FROM {table} LIMIT 0")
        costs[table] = now_ns() - began
    for rule in rules:
        began = now_ns()
        if is_called_for(rule, scene):
            answer_of(rule, scene, {})
        costs[rule.code] = now_ns() - began
    return costs
