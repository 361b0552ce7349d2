"""The comparison as one picture: a panel a scenario, a bar a path; SVG, so that it needs nothing but a browser. Pure."""

from html import escape
from pathlib import Path
from typing import Final

from kvtrail_cli.compare.shapes import Compare, ScenarioResult, scenario_title
from kvtrail_cli.errors import InputInvalid

WIDTH: Final = 760
_LEFT: Final = 110
_BAR: Final = 20
_PANEL_GAP: Final = 44
_TOP: Final = 56
_COLOURS: Final = {"winner": "#2b8a3e", "other": "#748ffc"}


def write_picture(answer: Compare, path: Path) -> None:
    """Write it, as `.svg`, or inside a page as `.html`.

    Raises:
        InputInvalid: the name has another ending, or the file cannot be written.
    """
    svg = draw(answer)
    text = svg if path.suffix == ".svg" else f'<!doctype html>\n<meta charset="utf-8">\n<title>kvtrail compare</title>\n{svg}'
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"--picture {path}: {error}"
        raise InputInvalid(message) from error


def check_picture(path: Path | None) -> None:
    """Hear of a name that cannot be before a minute was spent.

    Raises:
        InputInvalid: the name has another ending than `.svg` or `.html`.
    """
    if path is not None and path.suffix not in {".svg", ".html"}:
        message = f"--picture {path}: its name must end in .svg or .html"
        raise InputInvalid(message)


def draw(answer: Compare) -> str:
    """The picture. Bars are median TTFT, the thin lines behind them P95; the best of each panel are green."""
    parts, top = [], _TOP
    for scenario in answer.scenarios:
        parts.append(_panel(scenario, top))
        top += len(scenario.paths) * _BAR + _PANEL_GAP
    height = top + 8
    title = f"TTFT by path: bar and figure P50, line P95 (ms); green: the lowest P50; {answer.device}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
        f'<text x="12" y="20" font-size="15">{escape(title)}</text>'
        f'<text x="12" y="{height - 8}" fill="#555" font-size="10">{escape(answer.statement)}</text>{"".join(parts)}</svg>\n'
    )


def _panel(scenario: ScenarioResult, top: int) -> str:
    """One scenario: its name, and a bar a path on a scale of its own."""
    longest = max((one.ttft_ms.p95 or one.ttft_ms.p50 or 0.0 for one in scenario.paths), default=0.0) or 1.0
    scale = (WIDTH - _LEFT - 90) / longest
    name = escape(scenario_title(scenario))
    rows = [f'<text x="12" y="{top - 6}" font-weight="bold">{name}</text>']
    for number, one in enumerate(scenario.paths):
        y, median, high = top + number * _BAR, one.ttft_ms.p50 or 0.0, one.ttft_ms.p95 or 0.0
        colour = _COLOURS["winner" if one.path in scenario.winners else "other"]
        label_x = _LEFT + max(median, high) * scale + 6
        rows.append(
            f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(one.path)}</text>'
            f'<rect x="{_LEFT}" y="{y + 8}" width="{high * scale:.1f}" height="2" fill="#adb5bd"/>'
            f'<rect x="{_LEFT}" y="{y + 3}" width="{median * scale:.1f}" height="12" fill="{colour}"/>'
            f'<text x="{label_x:.1f}" y="{y + 13}" fill="#333">{median:.1f}</text>'
        )
    return "".join(rows)
