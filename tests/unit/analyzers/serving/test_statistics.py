"""Rank test, interval and medians, held against scipy, numpy and brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from moeprof.analyzers.serving.figures import arm_values, figures
from moeprof.analyzers.serving.interval import difference_interval, interval_order, null_counts, ratio_interval
from moeprof.analyzers.serving.rank_test import APPROXIMATE, doubled_ranks, floor, rank_test

VALUES = st.lists(st.integers(1, 400).map(lambda number: number / 4), min_size=1, max_size=6)
FEW = st.lists(st.integers(0, 3).map(float), min_size=1, max_size=5)


def brute_p(a: list[float], b: list[float]) -> float:
    """Return the doubled smaller tail over all labellings, with middle ranks, by enumeration."""
    ranks = stats.rankdata([*a, *b])
    observed = ranks[len(a) :].sum()
    sums = np.array([sum(chosen) for chosen in combinations(ranks, len(b))])
    tail = min((sums <= observed + 1e-9).mean(), (sums >= observed - 1e-9).mean())
    return float(min(1.0, 2 * tail))


@given(FEW, FEW)
def test_p_with_ties_is_that_of_all_labellings(a: list[float], b: list[float]) -> None:
    # GIVEN values with many ties THEN p is what enumeration gives
    assert rank_test(a, b).p == pytest.approx(brute_p(a, b), abs=1e-12)


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=14, unique=True), st.data())
def test_p_without_ties_is_scipys(values: list[int], data: st.DataObject) -> None:
    # GIVEN distinct values THEN U and p are those of scipy's exact test
    cut = data.draw(st.integers(1, len(values) - 1))
    a, b = [float(value) for value in values[:cut]], [float(value) for value in values[cut:]]
    expected = stats.mannwhitneyu(b, a, method="exact")
    found = rank_test(a, b)
    assert found.u == expected.statistic
    assert found.p == pytest.approx(expected.pvalue, abs=1e-12)
    assert found.delta == pytest.approx(2 * expected.statistic / (len(a) * len(b)) - 1)
    assert doubled_ranks(a + b) == [int(2 * rank) for rank in stats.rankdata(a + b)]


def test_p_with_ties_is_that_of_scipys_permutations() -> None:
    # GIVEN the case in which scipy's own exact test ignores ties
    a, b = [3.0, 0.0, 0.0, 3.0, 0.0, 2.0], [2.0, 2.0, 2.0]
    ranks = stats.rankdata(a + b)
    by_permutation = stats.permutation_test(
        (ranks[:6], ranks[6:]),
        lambda x, y: y.sum(),
        permutation_type="independent",
        n_resamples=np.inf,
        alternative="two-sided",
    )
    assert rank_test(a, b).p == pytest.approx(by_permutation.pvalue) == pytest.approx(0.547619, abs=1e-6)


def test_very_many_passes_are_approximated() -> None:
    # GIVEN more values than can be counted out THEN the method says so, and p is near scipy's
    generator = np.random.default_rng(1)
    a, b = generator.normal(0, 1, 80).round(1).tolist(), generator.normal(0.3, 1, 90).round(1).tolist()
    found = rank_test(a, b)
    assert found.method == APPROXIMATE
    assert found.p == pytest.approx(stats.mannwhitneyu(b, a, method="asymptotic").pvalue, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "m", "least", "widest", "order95"),
    [
        (1, 1, 1, 0, 1), (1, 3, 0.5, 0.5, 1), (1, 6, 0.2857, 0.714, 1), (2, 2, 0.3333, 0.667, 1), (2, 5, 0.0952, 0.905, 1),
        (3, 3, 0.1, 0.9, 1), (3, 4, 0.0571, 0.943, 1), (3, 5, 0.0357, 0.964, 1), (3, 6, 0.0238, 0.976, 2),
        (4, 4, 0.0286, 0.971, 1), (5, 5, 0.00794, 0.992, 3), (6, 6, 0.00216, 0.998, 6),
    ],
)  # fmt: skip
def test_floors(n: int, m: int, least: float, widest: float, order95: int) -> None:
    # GIVEN a design THEN its floor, its widest interval and the order of the 95 % interval are known
    assert float(floor(n, m)) == pytest.approx(least, abs=5e-5)
    assert float(1 - Fraction(2, comb(n + m, n))) == pytest.approx(widest, abs=6e-4)
    assert interval_order(n, m)[0] == order95
    assert interval_order(m, n)[:2] == interval_order(n, m)[:2]


def test_ninety_percent_orders() -> None:
    # GIVEN the narrower interval THEN thresholds are met exactly: 0.9 is reached by 9/10
    wanted = Fraction(9, 10)
    assert [interval_order(*size, wanted)[0] for size in ((2, 6), (3, 3), (3, 5), (3, 6), (5, 5), (6, 6))] == [
        1, 1, 2, 3, 5, 8,
    ]  # fmt: skip
    assert interval_order(3, 3, wanted)[1] == wanted


@given(st.integers(1, 5), st.integers(1, 5))
def test_null_counts_by_enumeration(n: int, m: int) -> None:
    # GIVEN all labellings of n + m ranks THEN each U is as frequent as counted
    counts = [0] * (n * m + 1)
    for chosen in combinations(range(n + m), m):
        counts[sum(chosen) - m * (m - 1) // 2] += 1
    assert null_counts(n, m) == tuple(counts)


@given(VALUES, VALUES)
def test_the_ratio_interval_inverts_the_test(a: list[float], b: list[float]) -> None:
    # GIVEN two samples WHEN the estimate is taken by brute force
    found = ratio_interval(a, b)
    logs = [log(after) - log(before) for before in a for after in b]
    # THEN it is the median on the log scale, within the interval, and swapped arms give reciprocals
    assert found.estimate == pytest.approx(exp(float(np.median(logs))))
    swapped = ratio_interval(b, a)
    assert found.low <= found.estimate * (1 + 1e-12)
    assert found.estimate <= found.high * (1 + 1e-12)
    assert 1 / swapped.high == pytest.approx(found.low)
    assert 1 / swapped.low == pytest.approx(found.high)
    assert swapped.confidence == found.confidence


@settings(max_examples=40)
@given(st.lists(st.integers(1, 10**6), min_size=6, max_size=9, unique=True))
def test_the_interval_holds_what_the_test_does_not_reject(values: list[int]) -> None:
    # GIVEN distinct values: a shift strictly between two differences is outside the interval iff its p is at most 1 - confidence
    a, b = [float(value) for value in values[:3]], [float(value) for value in values[3:]]
    found = difference_interval(a, b)
    differences = sorted({after - before for before in a for after in b})
    if len(differences) < len(a) * len(b):
        return
    for low, high in zip(differences, differences[1:], strict=False):
        shift = (low + high) / 2
        p = stats.mannwhitneyu([value - shift for value in b], a, method="exact").pvalue
        assert (found.low < shift < found.high) == (p > 1 - float(found.confidence) + 1e-12)


def test_thousands_of_passes_end() -> None:
    # GIVEN so many passes that counting would take hours THEN the order is approximate, and says so
    order, confidence, exact = interval_order(2000, 2000)
    assert (order < 2000 * 2000 / 2, confidence, exact) == (True, Fraction(95, 100), False)


@given(st.lists(st.integers(-10_000, 10_000).map(lambda number: number / 100), min_size=1, max_size=9))
def test_summaries_are_numpys(values: list[float]) -> None:
    # GIVEN values THEN median and variation are numpy's, with one degree of freedom taken
    found = arm_values(values, [0] * len(values))
    assert found.median == pytest.approx(float(np.median(values)), abs=1e-9)
    assert (found.n, found.min, found.max) == (len(values), min(values), max(values))
    mean = float(np.mean(values))
    if len(values) > 1 and abs(mean) > 1e-9:
        assert found.cv == pytest.approx(float(np.std(values, ddof=1)) / abs(mean), rel=1e-6, abs=1e-9)


def test_values_that_are_not_above_zero() -> None:
    # GIVEN a zero among the values THEN differences stand in for ratios; a zero median has no change at all
    found = figures([0.0, 1.0, 2.0], [2.0, 3.0, 4.0], None)
    assert found.change == Fraction(2)
    assert (found.interval, found.by_difference) == ((0.0, 4.0), True)
    none = figures([0.0, 0.0, 1.0], [2.0, 3.0, 4.0], None)
    assert (none.change, none.interval) == (None, None)
    same = figures([5.0] * 3, [5.0] * 3, None)
    assert same.change == Fraction(0)
    assert (same.interval, same.test.p) == ((0.0, 0.0), 1.0)
