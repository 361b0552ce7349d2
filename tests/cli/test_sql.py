"""Promises of `kvtrail sql`: rows for people and as JSON, of a store that no collector has open."""

import json
from pathlib import Path

import duckdb
import pytest
from kvtrail_cli.errors import CommandError, command_errors
from kvtrail_cli.main import APP
from kvtrail_collector.store import Store


@pytest.fixture(name="db")
def file_of_a_store(tmp_path: Path) -> Path:
    """The file of a store that is closed."""
    path = tmp_path / "own.duckdb"
    Store.open(str(path)).close()
    return path


def test_rows_for_people(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns by name, rows below, markup in neither; and a word where there are more."""
    APP(["sql", "--db", str(db), "--rows", "1", "SELECT '[red]' AS \"[b]\" FROM range(3)"], standalone_mode=False)
    told = capsys.readouterr()

    assert ["[b]", "[red]"] == told.out.split()
    assert "only the first 1 rows" in told.err


def test_rows_as_json(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object of the published shape."""
    APP(["sql", "--db", str(db), "--json", "SELECT kind_name(24) AS kind"], standalone_mode=False)

    assert {"columns": ["kind"], "rows": [["evicted"]], "is_cut": False, "schema": 1} == json.loads(capsys.readouterr().out)


def test_what_is_wrong_is_said(db: Path) -> None:
    """A query that may not be asked is one error, and the store is closed after it."""
    with pytest.raises(CommandError, match="not one SELECT"), command_errors():
        APP(["sql", "--db", str(db), "DROP TABLE streams"], standalone_mode=False)
    Store.open(str(db)).close()


def test_opening_a_file_upgrades_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of the oldest version, which has no tables yet, is brought to this one; the help says that it will be."""
    path = tmp_path / "old.duckdb"
    duckdb.connect(str(path)).close()
    APP(["sql", "--db", str(path), "--json", "SELECT count(*) AS n FROM events"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    APP(["sql", "--help"], standalone_mode=False)
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())

    assert [[0]] == found["rows"]
    assert "to this version" in told


def test_nothing_is_cut_in_a_pipe(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What another program reads is whole, one row a line, however long the values are."""
    APP(["sql", "--db", str(db), "SELECT repeat('long ', 500) AS a, repeat('x', 900) AS b, 7 AS c"], standalone_mode=False)
    head, row = capsys.readouterr().out.splitlines()

    assert ["a", "b", "c"] == head.split()
    assert [*["long"] * 500, "x" * 900, "7"] == row.split()
