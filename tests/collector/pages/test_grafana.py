"""The dashboard for Grafana asks for metrics that there are."""

import json
import re

from kvtrail_collector.metric_names import HELP

from tests.packages import ROOT

DASHBOARD = json.loads((ROOT / "deploy/grafana/kvtrail.json").read_text(encoding="utf-8"))


def test_every_panel_asks_for_metrics_that_exist() -> None:
    """A metric that is renamed leaves no empty panel behind."""
    asked = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    asked += [one["query"] for one in DASHBOARD["templating"]["list"]]
    names = {name for text in asked for name in re.findall(r"kvtrail_\w+", text)}
    known = {f"{name}{end}" for name in HELP for end in ("", "_bucket", "_count", "_sum")}

    assert names <= known
    assert len(names) > 10


def test_every_panel_has_a_unit() -> None:
    """No reader has to guess."""
    assert all(panel["fieldConfig"]["defaults"]["unit"] for panel in DASHBOARD["panels"])
