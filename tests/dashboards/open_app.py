"""Pages opened without a browser: by a link, over a collector that gives certain answers; and what they say."""

from collections.abc import Mapping
from typing import Protocol

from kvtrail_dashboards.places import Place
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button, Element

from tests.dashboards.answers import Json
from tests.dashboards.fake_collector import Script

Opened = tuple[AppTest, Script]


class Open(Protocol):
    """**Protocol:** opens one page over a collector with these answers, by a link with these parts."""

    def __call__(self, given: Mapping[str, Json], **link: str) -> Opened:
        """Open it, and run it once."""
        ...


class OpenPlace(Protocol):
    """**Protocol:** as `Open`, for any page."""

    def __call__(self, place: Place, given: Mapping[str, Json], **link: str) -> Opened:
        """Open it, and run it once."""
        ...


def app_of(place: Place) -> AppTest:
    """The app, at a page."""
    script = f"from kvtrail_dashboards.app import run\nfrom kvtrail_dashboards.places import Place\nrun(Place.{place.name})"
    return AppTest.from_string(script, default_timeout=30)


def texts(page: AppTest, *kinds: str) -> list[str]:
    """The texts of all elements of some kinds."""
    return [str(element.value) for kind in kinds for element in page.get(kind) if isinstance(element, Element)]


def said(page: AppTest) -> str:
    """All text of the page, as it is read."""
    assert not page.exception, page.exception
    kinds = ("title", "subheader", "markdown", "caption", "success", "info", "warning", "error", "code")
    links = [str(element.proto.label) for element in page.get("page_link")]
    return "\n".join([*texts(page, *kinds), *links]).replace("\\", "")


def link_of(page: AppTest) -> dict[str, str]:
    """The link that the page shows in the address bar."""
    params = page.query_params.items()
    return {name: value if isinstance(value, str) else value[0] for name, value in params}


def button(page: AppTest, label: str) -> Button:
    """The button with this label."""
    return next(one for one in page.button if one.label == label)
