"""What follows from the classes is up to date, and says exactly what the classes say."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from kvtrail_schema import absent
from kvtrail_schema.columns import COLUMNS
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, REQUIRED_OF, Kind

ROOT = Path(__file__).parent.parent.parent
GENERATE = ROOT / "tools/generate.py"


def test_generated_files_are_fresh() -> None:
    """Nobody changes an event and forgets the files that follow from it."""
    done = subprocess.run([sys.executable, str(GENERATE), "--check"], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.returncode == 0


def test_emitter_has_one_method_for_each_kind() -> None:
    """Whatever can be recorded can be emitted, under the name that people read; many rows of one kind by one method."""
    methods = {name for name, value in vars(Emitter).items() if inspect.isfunction(value) and not name.startswith("_")}

    assert {kind.name.lower() for kind in Kind} | {"emit_blocks"} == methods


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_method_takes_the_fields_of_its_kind(kind: Kind) -> None:
    """Required fields first and without default; optional ones default to their width's "absent"; the time last."""
    parameters = dict(inspect.signature(getattr(Emitter, kind.name.lower())).parameters)
    parameters.pop("self")
    needed = {name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
    names = list(parameters)

    assert {*FIELDS_OF[kind], "t_ns"} == set(names)
    assert set(REQUIRED_OF[kind]) == needed
    assert needed == set(names[: len(needed)])
    assert names[-1] == "t_ns"
    for name in set(names) - needed:
        assert getattr(absent, f"NO_{COLUMNS[name].width.name}") is parameters[name].default


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_method_says_what_its_event_says(kind: Kind) -> None:
    """The sentence that explains an event stands where an engine engineer types."""
    assert EVENT_OF[kind].__doc__ == getattr(Emitter, kind.name.lower()).__doc__
