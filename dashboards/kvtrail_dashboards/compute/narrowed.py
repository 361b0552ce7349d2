"""What of a page a choice does not narrow: nobody shall take a figure of all tenants for one of theirs."""

from typing import Final

from kvtrail_dashboards.link import View
from kvtrail_dashboards.places import Place

_MANY: Final = {"rank": "ranks", "tenant": "tenants", "model": "models"}


def of_all(view: View, *names: str) -> str:
    """`of all tenants and models`: of what a view chooses one of, and a part of its page does not; empty where of nothing."""
    chosen = [_MANY[name] for name in names if getattr(view, name) is not None]
    return f"of all {_listed(chosen)}" if chosen else ""


def not_narrowed(place: Place, view: View) -> str:
    """What a link names that does not narrow the page, in a sentence; empty where there is nothing of the kind."""
    chosen = [name for name in _MANY if getattr(view, name) is not None and not place.narrowed_by(name)]
    return f"The link names a {_listed(chosen)}: this page is {of_all(view, *chosen)}." if chosen else ""


def _listed(words: list[str]) -> str:
    """Words as a list in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
