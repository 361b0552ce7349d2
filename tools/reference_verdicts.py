"""The reference of verdicts, one paragraph each for the person at three in the morning."""

import inspect
from itertools import groupby

from kvtrail_collector.detectors.registry import DETECTORS
from kvtrail_collector.detectors.rule import Need, Rule, Threshold
from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.detectors.scene_names import with_numbers
from kvtrail_collector.verdicts_case import Detector
from kvtrail_collector.verdicts_table import CODE_OF, GENERAL_OF, MIX_SHIFT, RECOMPUTE_CODE_OF

NOTE = "Generated from the code by `make generate`; do not edit.\n"


def verdicts_page() -> str:
    """Every verdict that can be given: what it means, how to check it by hand, what to do, what looks like it and is not."""
    parts = [f"# Verdicts\n\n{NOTE}\nHow to read them: [docs/verdicts.md](../verdicts.md).\n"]
    for family, rules in groupby(RULES, key=lambda rule: rule.family):
        parts.append(f"## {family.title[:1].upper()}{family.title[1:]}\n")
        parts += [_rule(rule) for rule in rules]
    parts.append("## Population verdicts\n\nFrom two windows of requests and a bootstrap; see [explain.md](../explain.md).\n")
    parts += [_detector(detector) for detector in sorted(DETECTORS, key=lambda one: one.code)]
    parts.append(_components())
    return "\n".join(parts)


def _rule(rule: Rule) -> str:
    """One code: prose, then the query, then what it needs and what can be set."""
    general = ", ".join(f"`{code}`" for code in sorted(GENERAL_OF.get(rule.code, frozenset())))
    lines = [
        f"### {rule.code}",
        "",
        rule.means,
        "",
        f"- **do:** {rule.action}",
        f"- **looks like it, and is not:** {rule.unlike}",
        f"- basis: {rule.basis.value}, from the {rule.evidence.value} of events",
        *([f"- stands in place of {general}"] if general else []),
        *([f"- needs {'; '.join(_need(need) for need in rule.needs)}"] if rule.needs else []),
        *[_threshold(threshold) for threshold in rule.thresholds],
        "",
        "Check by hand, with `kvtrail sql`:",
        "",
        f"```sql\n{with_numbers(rule.check)}\n```",
        "",
    ]
    return "\n".join(lines)


def _need(need: Need) -> str:
    """What must be in the log."""
    kinds = " or ".join(f"`{kind.name.lower()}`" for kind in need.kinds)
    fields = " or ".join(f"`{field}`" for field in need.fields)
    return f"{kinds} with {fields}" if fields else kinds


def _threshold(threshold: Threshold) -> str:
    """One threshold."""
    return f"- `{threshold.name}` = {threshold.default:g} {threshold.unit}: {threshold.meaning}"


def _detector(detector: Detector) -> str:
    """One code that is tested by a detector of its own."""
    module = inspect.getmodule(detector.find)
    meaning = (inspect.getdoc(module) or "") if module else ""
    components = ", ".join(f"`{component}`" for component in sorted(detector.components))
    return f"### {detector.code} (population)\n\n{meaning}\n\n- components: {components}\n- **do:** {detector.action}\n"


def _components() -> str:
    """The codes that follow from a component alone."""
    rows = [(f"`{component}`", code.name, code.action) for component, code in CODE_OF.items()]
    rows += [(f"`recompute_prefill` ({reason})", code.name, code.action) for reason, code in RECOMPUTE_CODE_OF.items()]
    rows.append(("all of the excess, gone after reweighting", MIX_SHIFT.name, MIX_SHIFT.action))
    table = "\n".join(f"| {component} | {name} | {action} |" for component, name, action in rows)
    return f"### By component\n\n| what grew | code | do |\n|---|---|---|\n{table}\n"
