"""Makes the pictures of the documentation from a real run: `make docs-pictures`.

Runs the demo with its fault, and beside it an engine that fetches ahead; then opens each page in Chromium. Takes about three
minutes. Engine, recorder, collector and pages are the real ones; only the operator's names of tenants are made up here.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import httpx
from kvtrail_cli.demo.collector_process import running_collector
from kvtrail_dashboards.serve import address, command
from playwright.sync_api import Page, sync_playwright

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURES: Final = ROOT / "docs" / "pictures"
CHROMIUM: Final = os.environ.get("KVTRAIL_TEST_CHROMIUM", "/usr/bin/chromium")
KVTRAIL: Final = (sys.executable, "-m", "kvtrail_cli.main")
PORT: Final = 4799
WIDTH: Final = 1_400
HEIGHT: Final = 900
MOST_HEIGHT: Final = 2_600
SEED: Final = "11"
START_S: Final = 60
SHOWN_MS: Final = 60_000


def main() -> None:
    """Run, fill, look, and write one PNG a page."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kvtrail-pictures-") as name:
        folder = Path(name)
        run(*KVTRAIL, "demo", "--headless", "--json", "--seed", SEED, "--dir", str(folder / "demo"))
        with running_collector(folder / "demo") as url:
            ahead(url, folder)
            names = named(url, folder)
        with running_collector(folder / "demo", "--config", str(names)) as url, dashboard(url) as home:
            pictures(home, url)


def run(*words: str) -> None:
    """One command, whose answer nobody needs."""
    print(" ".join(words[2:]), file=sys.stderr)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own commands


def ahead(url: str, folder: Path) -> None:
    """An engine that fetches ahead, for the page that is about it."""
    private = [folder / name for name in ("rings", "spool")]
    for one in private:
        one.mkdir(mode=0o700)
    words = ("engine", "run", "--name", "ahead", "--prefetch", "16", "--duration", "40", "--rate", "25", "--transport", url)
    run(*KVTRAIL, *words, "--ring-dir", str(private[0]), "--spool-dir", str(private[1]), "--json")


def named(url: str, folder: Path) -> Path:
    """A configuration with names for the tenants that there are."""
    tenants = httpx.get(f"{url}/v1/engines", trust_env=False).json()["tenants"]
    lines = [f'{tenant["id"]} = "{name}"' for tenant, name in zip(tenants, ("search", "chat", "code", "batch"), strict=False)]
    names, config = folder / "names.toml", folder / "kvtrail.toml"
    names.write_text("[tenants]\n" + "\n".join(lines) + "\n", encoding="utf-8")
    config.write_text(f'[collector]\nnames_file = "{names}"\n', encoding="utf-8")
    return config


@contextmanager
def dashboard(url: str) -> Iterator[str]:
    """The pages in front of a collector."""
    with subprocess.Popen(command(PORT, url), stdout=subprocess.DEVNULL) as process:  # noqa: S603 - our own command
        try:
            wait_for(address(PORT))
            yield address(PORT)
        finally:
            process.terminate()


def wait_for(home: str) -> None:
    """Return once the pages are served."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            if httpx.get(f"{home}/_stcore/health", trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise SystemExit("the dashboard did not start")


def pictures(home: str, url: str) -> None:
    """One picture a page; the request and its event are the first that the spike names."""
    found = httpx.get(f"{url}/v1/attribution", params={"engine": "demo"}, timeout=SHOWN_MS, trust_env=False).json()
    window = {"start_ns": found["window"]["start_ns"], "end_ns": found["window"]["end_ns"]} if found["window"] else {}
    request = {"engine": "demo", "request": found["exemplars"][0], **window} if found["exemplars"] else {"engine": "demo"}
    demo = {"engine": "demo", "last_s": 0}
    links = {
        "now": ("", demo),
        "spike": ("spike", {"engine": "demo", **window}),
        "request": ("request", request),
        "tiers": ("tiers", demo),
        "prefetch": ("prefetch", {"engine": "ahead", "last_s": 0}),
        "tenants": ("tenants", demo),
        "recorder": ("recorder", demo),
        "alerts": ("alerts", demo),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, (path, query) in links.items():
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(f"{home}/{path}?{urlencode(query)}")
            picture(page, PICTURES / f"{name}.png")
            page.close()
        browser.close()


def picture(page: Page, path: Path) -> None:
    """One page, once it has come to rest, as high as it is."""
    page.get_by_text("engine", exact=False).first.wait_for(timeout=SHOWN_MS)
    page.wait_for_timeout(2_000)
    page.locator("[data-testid='stApp'][data-test-script-state='notRunning']").wait_for(timeout=SHOWN_MS)
    page.wait_for_timeout(2_000)
    height = int(page.get_by_test_id("stMain").evaluate("element => element.scrollHeight"))
    page.set_viewport_size({"width": WIDTH, "height": min(height, MOST_HEIGHT)})
    page.wait_for_timeout(1_500)
    page.screenshot(path=str(path))
    print(f"wrote {path.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
