"""Answers with tenants by the names that the operator's map gives them, for people; machines get what events hold."""

import msgspec
from kvtrail_collector.attribution_shapes import Attribution, BlameRow, Verdict
from kvtrail_collector.engine_shapes import Engines

Names = dict[str, str]
"""Names by hashed value."""


def names_of(known: Engines) -> Names:
    """The names that the collector knows."""
    return {one.id: one.name for one in (*known.tenants, *known.models) if one.name != one.id}


def with_names(found: Attribution, names: Names) -> Attribution:
    """The same explanation, with tenants by name in verdicts, in their evidence and in blame."""
    verdicts = tuple(_verdict(verdict, names) for verdict in found.verdicts)
    return msgspec.structs.replace(found, verdicts=verdicts, blame=tuple(_blame(row, names) for row in found.blame))


def _verdict(verdict: Verdict, names: Names) -> Verdict:
    """One verdict."""
    evidence = {key: names.get(value, value) if isinstance(value, str) else value for key, value in verdict.evidence.items()}
    return msgspec.structs.replace(verdict, tenant=_name(verdict.tenant, names), evidence=evidence)


def _blame(row: BlameRow, names: Names) -> BlameRow:
    """One row of blame."""
    return msgspec.structs.replace(row, tenant=_name(row.tenant, names))


def _name(tenant: str | None, names: Names) -> str | None:
    """One tenant; what has no name keeps its hash."""
    return None if tenant is None else names.get(tenant, tenant)
