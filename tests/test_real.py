"""The rule for real parts: a named skip where one is missing, a failure where nothing may be missing."""

import pytest

from tests.real import REQUIRE_REAL, require_real

PART, HOW = "carrier pigeon", "hatch one"


def test_part_that_is_there_lets_the_test_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the part is, its test runs, whatever the environment says."""
    for value in ("0", "1"):
        monkeypatch.setenv(REQUIRE_REAL, value)
        require_real(PART, found=True, how=HOW)


def test_missing_part_is_a_named_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says which part was missing and how to get it."""
    monkeypatch.delenv(REQUIRE_REAL, raising=False)

    with pytest.raises(pytest.skip.Exception, match="real part missing: carrier pigeon: hatch one"):
        require_real(PART, found=False, how=HOW)


def test_missing_part_fails_where_all_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continuous integration cannot turn green by skipping."""
    monkeypatch.setenv(REQUIRE_REAL, "1")

    with pytest.raises(pytest.fail.Exception, match=r"carrier pigeon: hatch one .*forbids skipping"):
        require_real(PART, found=False, how=HOW)
