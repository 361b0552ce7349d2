"""Strata: requests of the same kind, however few, and nothing but what arrives with them."""

from fractions import Fraction

import numpy as np
import pytest
from kvtrail_collector.attribution_strata import Strata, cells_of, match
from kvtrail_collector.facts_rows import IntArray

Kinds = dict[tuple[int, int], int]
"""How many requests there are with so many prompt tokens, of a tenant."""


def cells(kinds: Kinds) -> IntArray:
    """The cells of so many requests each."""
    rows = np.array([kind for kind, number in kinds.items() for _ in range(number)], dtype=np.int64)
    return cells_of(rows[:, 0], np.zeros(len(rows), dtype=np.int64), rows[:, 1])


def strata(window: Kinds, reference: Kinds) -> Strata:
    """The strata of two populations."""
    return match(cells(window), cells(reference))


def test_cells() -> None:
    """Each model, tenant and bucket of prompt lengths, two a doubling, has its own number; unknown ones have, too."""
    tokens, known = np.array([100, 101, 150, 200, 0, -1]), np.array([0, 0, 0, 0, 0, 0])
    base = cells_of(tokens, known, known)

    assert base[0] == base[1]
    assert len({int(cell) for cell in base[[0, 2, 3, 4]]}) == 4
    assert base[4] == base[5]
    assert len({int(cells_of(tokens, known + model, known + tenant)[0]) for model in (-1, 0, 1) for tenant in (-1, 0, 1)}) == 9


def test_enough_of_each() -> None:
    """What has fifty requests in the reference is a stratum of its own."""
    found = strata({(100, 1): 10, (800, 1): 90}, {(100, 1): 500, (800, 1): 50})

    assert found.count == 2
    assert (Fraction(550 * 10, 100 * 500), Fraction(550 * 90, 100 * 50)) == found.weights()


def test_few_join_the_nearest() -> None:
    """Under fifty join those of the nearest length, then those of another tenant."""
    by_length = strata({(100, 1): 9, (140, 1): 9, (3_000, 1): 9}, {(100, 1): 60, (140, 1): 49, (3_000, 1): 60})
    by_tenant = strata({(100, 1): 9, (100, 2): 9, (9_000, 1): 9}, {(100, 1): 60, (100, 2): 20, (9_000, 1): 60})

    assert (2, [60 + 49, 60]) == (by_length.count, by_length.sizes(by_length.reference))
    assert (2, [60 + 20, 60]) == (by_tenant.count, by_tenant.sizes(by_tenant.reference))


def test_newcomers() -> None:
    """Requests of a kind that the reference has not are compared with nothing; what little it has of them is left out, too."""
    found = strata({(100, 1): 900, (12_000, 2): 10}, {(100, 1): 2_000, (12_000, 2): 1})

    assert found.known.sum() == 900
    assert (found.reference == -1).sum() == 1
    assert found.count == 1


def test_a_few_strays_are_no_newcomers() -> None:
    """The longest prompts of a long tail are few in both: they belong to those next to them."""
    found = strata({(100, 1): 900, (6_000, 1): 4}, {(100, 1): 1_800, (5_000, 1): 6, (9_000, 1): 2})

    assert found.known.all()
    assert found.count == 1


def test_many_tenants() -> None:
    """Where most tenants of the window are new, as with a tenant a customer, they are not told apart."""
    window = {(100, tenant): 30 for tenant in range(30, 60)} | {(5_000, tenant): 10 for tenant in range(30, 60)}
    reference = {(100, tenant): 60 for tenant in range(30)} | {(5_000, tenant): 20 for tenant in range(30)}
    found = strata(window, reference)

    assert found.known.all()
    assert found.count == 2


@pytest.mark.parametrize("seed", range(5))
def test_reweighted(seed: int) -> None:
    """Whatever was joined, the reference weighs in each stratum what the window has there."""
    rng = np.random.default_rng(seed)
    draw = {name: rng.integers(1, 200, size) for name, size in (("window", 40), ("reference", 40))}
    found = strata(
        {(int(2 ** rng.uniform(4, 14)), int(rng.integers(4))): int(number) for number in draw["window"]},
        {(int(2 ** rng.uniform(4, 14)), int(rng.integers(4))): int(number) for number in draw["reference"]},
    )
    here, there = found.sizes(found.window), found.sizes(found.reference)
    scale = Fraction(sum(there), sum(here))

    assert [scale * own for own in here] == [weight * other for weight, other in zip(found.weights(), there, strict=True)]
    assert all(size >= 50 for size in there) or found.count == 1
