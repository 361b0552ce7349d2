"""Writes the reference pages under `docs/reference/` from the code, so that they cannot drift from it.

Run by `make generate`; `--check` says which pages are old, and a test fails for them. To add a page, write a function
that returns its text beside these and name it in `PAGES`.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
if not __package__:
    sys.path.insert(0, str(ROOT))  # run as a file, only this folder is on the path

from tools.reference_commands import commands_page  # noqa: E402 - the path is set just above
from tools.reference_events import events_page  # noqa: E402 - as above
from tools.reference_outputs import outputs_schema  # noqa: E402 - as above
from tools.reference_schema import event_schema  # noqa: E402 - as above
from tools.reference_tables import metrics_page, settings_page  # noqa: E402 - as above
from tools.reference_verdicts import verdicts_page  # noqa: E402 - as above

FOLDER: Final = "docs/reference"

PAGES: Final[dict[str, Callable[[], str]]] = {
    f"{FOLDER}/events.md": events_page,
    f"{FOLDER}/event.schema.json": event_schema,
    f"{FOLDER}/commands.md": commands_page,
    f"{FOLDER}/outputs.schema.json": outputs_schema,
    f"{FOLDER}/metrics.md": metrics_page,
    f"{FOLDER}/settings.md": settings_page,
    f"{FOLDER}/verdicts.md": verdicts_page,
}
"""Every generated page, by its path from the root of the repository, and what makes its text."""


def old_pages() -> dict[Path, str]:
    """The pages that are missing or differ from what the code says, with what they should be."""
    texts = {ROOT / name: make() for name, make in PAGES.items()}
    return {path: text for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text}


def main() -> None:
    """Write each page that is old, or with `--check` say which ones are."""
    old = old_pages()
    if "--check" in sys.argv:
        sys.exit("\n".join(f"{path} is older than the code: run `make generate`" for path in old) or 0)
    for path, text in old.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
