"""Distribution, drift and outliers, against scipy and by hand."""

from __future__ import annotations

import random

import pytest
from scipy.stats import kendalltau

from moeprof.analyzers.timeline.unrest import distribution, drift, kendall


@pytest.mark.parametrize("seed", range(8))
def test_kendall_is_that_of_scipy(seed: int) -> None:
    # GIVEN values in some order, with ties
    source = random.Random(seed)
    values = [source.randrange(8 + 40 * (seed % 2)) + index // 4 for index in range(20 + 7 * seed)]
    # WHEN order and values are held against each other THEN tau-b and p are those of scipy
    expected = kendalltau(range(len(values)), values, method="asymptotic")
    tau, p = kendall(values)
    assert tau == pytest.approx(expected.statistic, abs=1e-6)
    assert p == pytest.approx(expected.pvalue, rel=1e-6)


def test_equal_values_have_no_order() -> None:
    # GIVEN equal wall times WHEN drift is looked for THEN there is none, and nothing is divided by zero
    assert kendall([5] * 12) == (None, None)
    found = drift([5] * 12)
    assert found is not None
    assert (found.change, found.tau, found.p) == (0.0, None, None)
    assert drift([5] * 8) is None


def test_quantiles_are_values_that_were_seen() -> None:
    # GIVEN ten values WHEN they are described THEN each quantile is the smallest value that so many do not exceed
    found = distribution([10 * value for value in range(1, 11)])
    assert found is not None
    assert (found.min, found.p10, found.p25, found.p50, found.p75, found.p90, found.p99, found.max) == (
        10, 10, 30, 50, 80, 90, 100, 100,
    )  # fmt: skip
    assert distribution([]) is None
