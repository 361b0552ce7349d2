"""Promises of the rules as data: what they say of themselves is whole and true."""

import re

import duckdb
import pytest
from kvtrail_collector.detectors.rule import Evidence, Family, Rule
from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.detectors.scene import Bounds, Scene
from kvtrail_collector.detectors.scene_names import ENUMS, with_numbers
from kvtrail_collector.detectors.scene_tables import TABLES
from kvtrail_collector.detectors.thresholds import load_thresholds
from kvtrail_collector.diagnose_file import diagnose_events, diagnose_lines, events_of_lines
from kvtrail_collector.errors import SettingsInvalid
from kvtrail_collector.loss_shapes import Loss
from kvtrail_collector.testing import memory_store
from kvtrail_collector.verdicts_table import GENERAL_OF
from kvtrail_schema.columns import COLUMNS

from tests.cases.stories import case_folders

NAMES = re.compile(r"\b(" + "|".join(ENUMS) + r")\('(\w+)'\)")
LINES = [
    '{"t_ms": 0, "kind": "capacity_sampled", "tier": "nvme", "capacity_bytes": 100, "used_bytes": 110}',
    '{"t_ms": 1, "kind": "capacity_sampled", "tier": "host", "capacity_bytes": 100, "used_bytes": 300}',
]
PARTS_TOO_LONG = [
    '{"t_ms": 0, "kind": "swap_in_queued", "op": "o", "src": "host", "dst": "gpu", "req": "r", "block": "b"}',
    '{"t_ms": 1, "kind": "swap_in_started", "op": "o", "src": "host", "dst": "gpu", "req": "r", "block": "b"}',
    '{"t_ms": 9, "kind": "swap_in_loaded", "op": "o", "src": "host", "dst": "gpu", "req": "r", "block": "b", "copy_ms": 20}',
]
SEARCHED = [(rule, threshold.name) for rule in RULES if rule.find for threshold in rule.thresholds]
OUT_OF_REACH = {"p_value": 0.0}

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def test_codes_are_unique() -> None:
    """A code means one thing."""
    assert len(RULES) == len({rule.code for rule in RULES})
    assert set(Family) == {rule.family for rule in RULES}


def test_specific_codes_exist() -> None:
    """A more specific code is one that can be given."""
    assert set(GENERAL_OF) <= {rule.code for rule in RULES}


@every_rule
def test_names_in_sql_exist(rule: Rule) -> None:
    """A name that is misspelt in SQL would make a rule that never fires."""
    found = NAMES.findall(rule.question + rule.check)

    assert [] == [(macro, name) for macro, name in found if name.upper() not in ENUMS[macro].__members__]
    assert rule.question or rule.find
    assert all(field in COLUMNS for need in rule.needs for field in need.fields)


@every_rule
def test_thresholds_are_used(rule: Rule) -> None:
    """A threshold that can be set is asked for in SQL, and a parameter has a threshold."""
    asked = set(re.findall(r"\$(\w+)", rule.question))

    assert not rule.question or asked == {threshold.name for threshold in rule.thresholds}


@pytest.mark.parametrize(("rule", "name"), SEARCHED, ids=lambda value: getattr(value, "code", value))
def test_thresholds_of_a_search_are_used(rule: Rule, name: str) -> None:
    """So does one of a code that is searched for in Python: a log of the fault is none, where it is set out of reach."""
    logs = [case.fires.read_text().splitlines() for case in case_folders() if case.code == rule.code]
    held = [events_of_lines(lines) for lines in (*logs, PARTS_TOO_LONG)]

    def found(thresholds: dict[str, dict[str, float]]) -> set[int]:
        """The logs in which the code is found."""
        answers = [diagnose_events(log, thresholds=thresholds).verdicts for log in held]
        return {place for place, verdicts in enumerate(answers) if rule.code in {verdict.code for verdict in verdicts}}

    assert found({}) - found({rule.code: {name: OUT_OF_REACH.get(name, 1e12)}})


@every_rule
def test_absence_says_how_many_are_absent(rule: Rule) -> None:
    """What is not there may be lost: such a rule says how many events would have to be."""
    assert rule.evidence is Evidence.PRESENCE or rule.find or " AS cases" in rule.question


def test_checks_by_hand_run() -> None:
    """Each query of the documentation is one that a store answers."""
    with memory_store() as store, store.read() as cursor:
        unknown = {rule.code: _problem(cursor, with_numbers(rule.check)) for rule in RULES}

    assert {} == {code: problem for code, problem in unknown.items() if problem}


def _problem(cursor: duckdb.DuckDBPyConnection, sql: str) -> str:
    """What the database has against a query; nothing where it answers."""
    try:
        cursor.execute(sql).fetchall()
    except duckdb.Error as error:
        return str(error)
    return ""


def test_tables_of_an_empty_store_are_empty() -> None:
    """A scene of nothing can be asked everything."""
    with memory_store() as store, store.read() as cursor:
        scene = Scene(cursor, Loss((), balanced=True), Bounds(0, 10, "it's nobody"))

        assert [] == [row for table in TABLES for row in scene.ask(f"FROM {table}")]


def test_thresholds_come_from_a_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A threshold that is set counts in place of its default."""
    path = tmp_path_factory.mktemp("thresholds") / "own.toml"
    path.write_text("[CAP_EXCEEDED]\ntimes = 2\n")
    found = diagnose_lines(LINES, thresholds=load_thresholds(path))

    assert {"host", "nvme"} == {verdict.tier for verdict in diagnose_lines(LINES).verdicts}
    assert ["host"] == [verdict.tier for verdict in found.verdicts]


@pytest.mark.parametrize("text", ["[NO_SUCH]\nx = 1", "[THRASH]\nnone = 1", "[THRASH]\ntimes = 'many'", "THRASH = 3", "["])
def test_a_wrong_threshold_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """A misspelt threshold is an error that says what there is, not a default in silence."""
    path = tmp_path_factory.mktemp("thresholds") / "own.toml"
    path.write_text(text)

    with pytest.raises(SettingsInvalid, match=r"own\.toml"):
        load_thresholds(path)
