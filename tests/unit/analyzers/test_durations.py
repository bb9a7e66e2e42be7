"""Durations of iterations of two captures, against scipy, statsmodels and values worked out by hand."""

from __future__ import annotations

import math
from itertools import product
from statistics import geometric_mean, median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.tsa.stattools import acf

from moeprof.analyzers.durations import compare as durations
from moeprof.analyzers.durations import student
from moeprof.analyzers.durations.compare import Mean
from moeprof.analyzers.durations.discoveries import benjamini_hochberg, benjamini_yekutieli

_VALUES = st.lists(st.integers(1, 10**9), min_size=2, max_size=40)


def series(scale: float, count: int) -> list[float]:
    """Return iterations that swing slowly, the first of them a start transient."""
    values = [scale * (1000 + 20 * math.sin(i / 3) + (37 * i % 11) - 5) for i in range(count)]
    values[0] += 400
    return values


BASE, CANDIDATE = series(1.0, 29), series(1.03, 31)


def test_worked_values_without_the_transient() -> None:
    # GIVEN 28 and 30 iterations that resemble their neighbours
    # WHEN they are compared
    found = durations.compare([BASE[1:]], [CANDIDATE[1:]])  # type: ignore[list-item]  # floats for the worked values
    # THEN every figure is the one worked out beforehand
    assert found is not None and found.t is not None
    near = pytest.approx
    assert (found.base.mean, found.base.trimmed_mean) == near((1004.233987, 1004.792246), rel=1e-6)
    assert (found.candidate.mean, found.candidate.trimmed_mean) == near((1033.738230, 1034.379218), rel=1e-6)
    assert (found.base.lag1, found.candidate.lag1) == near((0.8701013, 0.8670788), rel=1e-6)
    assert (found.base.effective, found.candidate.effective) == near((2.0, 2.1357618), rel=1e-6)
    assert (found.t, found.df, found.p) == near((2.1019553, 2.1357618, 0.1621519), rel=1e-6)
    assert found.ratio_of_trimmed_means == near(1.0294459, rel=1e-6)


def test_worked_values_with_the_transient() -> None:
    # GIVEN all iterations WHEN compared THEN trimmed means, deviations and the ratio of every value to every other are as worked out
    found = durations.compare([BASE], [CANDIDATE])  # type: ignore[list-item]  # floats for the worked values
    assert found is not None
    near = pytest.approx
    assert (found.base.mean, found.base.trimmed_mean, found.base.mad) == near((1017.708677, 1005.512042, 7.196388))
    assert (found.candidate.mean, found.candidate.trimmed_mean, found.candidate.mad) == near(
        (1046.354738, 1035.004926, 9.742953)
    )
    assert found.hodges_lehmann == near(1.0299948, rel=1e-6)


@given(_VALUES)
def test_figures_of_a_sample_equal_those_of_the_libraries(values: list[int]) -> None:
    # GIVEN any durations WHEN described THEN trimmed mean, deviation and correlation are those of scipy and statsmodels
    found = durations.sample([values])
    assert found.trimmed_mean == pytest.approx(stats.trim_mean(values, 0.1))
    assert found.mad == pytest.approx(stats.median_abs_deviation(values))
    if len(set(values)) > 1:
        assert found.lag1 == pytest.approx(acf(np.array(values, float), nlags=1, fft=False)[1], abs=1e-9)


@given(st.floats(2, 500), st.floats(0, 60))
def test_the_tail_of_t_is_that_of_scipy(df: float, t: float) -> None:
    # GIVEN any statistic and degrees of freedom WHEN its tail is taken THEN it is scipy's
    assert student.two_sided(t, df) == pytest.approx(2 * stats.t.sf(t, df), rel=1e-9, abs=1e-300)


@given(st.floats(2, 500), st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.9999]))
def test_the_critical_value_of_t_is_that_of_scipy(df: float, confidence: float) -> None:
    # GIVEN any degrees of freedom WHEN the critical value is taken THEN it is scipy's
    assert student.critical(confidence, df) == pytest.approx(stats.t.isf((1 - confidence) / 2, df), rel=1e-9)


def test_independent_iterations_give_students_test() -> None:
    # GIVEN values without any likeness of neighbours, as many on each side
    base, candidate = [100, 104, 98, 101, 99, 103], [108, 101, 107, 100, 106, 102]
    assert durations.lag1(base) < 0 and durations.lag1(candidate) < 0
    # WHEN compared THEN p is that of the t test with n1 + n2 - 2 degrees of freedom
    found = durations.compare([base], [candidate])
    assert found is not None
    assert found.p == pytest.approx(stats.ttest_ind(candidate, base).pvalue)


@given(_VALUES, _VALUES)
def test_the_interval_leaves_out_1_exactly_when_p_is_below_5_percent_and_inverts_with_the_sides(
    base: list[int], candidate: list[int]
) -> None:
    # GIVEN any two series
    bounds, mirrored = durations.interval([base], [candidate]), durations.interval([candidate], [base])
    found = durations.compare([base], [candidate])
    # THEN the interval agrees with the test, and swapping the sides inverts it
    assert found is not None and found.p is not None
    assert (bounds is None) == (mirrored is None)
    if bounds is None or mirrored is None:
        return
    assert bounds == pytest.approx((1 / mirrored[1], 1 / mirrored[0]))
    assert found.ratio_of_means is not None
    assert bounds[0] <= found.ratio_of_means * (1 + 1e-9) and found.ratio_of_means <= bounds[1] * (1 + 1e-9)
    if abs(found.p - 0.05) > 1e-9:
        assert (bounds[0] > 1 or bounds[1] < 1) == (found.p < 0.05)


def test_the_interval_of_a_ratio_is_fiellers() -> None:
    # GIVEN two means with their errors
    base, candidate = Mean(10.0, 0.5, 6.0), Mean(12.0, 0.4, 8.0)
    # WHEN the interval is taken
    bounds = durations.ratio_interval(base, candidate)
    # THEN at both ends the difference candidate - ratio * base lies exactly t errors from 0
    assert bounds is not None
    t = stats.t.isf(0.025, 12)
    for bound in bounds:
        assert abs(12 - bound * 10) / math.hypot(0.4, bound * 0.5) == pytest.approx(t)


def test_a_mean_that_may_be_0_has_no_interval_of_a_ratio() -> None:
    # GIVEN a base whose error reaches 0 WHEN the interval is taken THEN there is none, from either side
    assert durations.ratio_interval(Mean(1.0, 1.0, 3.0), Mean(5.0, 0.1, 3.0)) is None
    assert durations.ratio_interval(Mean(5.0, 0.1, 3.0), Mean(1.0, 1.0, 3.0)) is None


def test_ranks_in_step_are_not_more_iterations() -> None:
    # GIVEN two ranks with the same durations
    base, candidate = [100, 104, 98, 101, 99, 103], [103, 108, 101, 107, 100, 106]
    one, two = durations.compare([base], [candidate]), durations.compare([base, base], [candidate, candidate])
    # THEN nothing is any surer than with one
    assert one is not None and two is not None
    assert (one.t, one.df, one.p) == (two.t, two.df, two.p)


def test_no_spread_no_values_one_value() -> None:
    # GIVEN sides without spread WHEN compared THEN equal ones have p 1 and others p 0
    same, other = durations.compare([[5, 5, 5]], [[5, 5]]), durations.compare([[5, 5, 5]], [[6, 6, 6]])
    assert same is not None and other is not None
    assert (same.t, same.p, other.t, other.p) == (None, 1.0, None, 0.0)
    # GIVEN a single iteration THEN there is nothing to test with, and without any there is no comparison
    single = durations.compare([[5]], [[6, 7]])
    assert single is not None and (single.t, single.df, single.p) == (None, None, None)
    assert durations.compare([[]], [[6, 7]]) is None and durations.compare([], [[6]]) is None


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=12), st.lists(st.integers(1, 1000), min_size=1, max_size=12))
def test_hodges_lehmann_is_the_median_of_all_ratios(base: list[int], candidate: list[int]) -> None:
    # GIVEN any values WHEN the estimate is taken THEN it is the middle of all ratios, between two their geometric mean
    ratios = sorted(one / other for one, other in product(candidate, base))
    middle = geometric_mean([ratios[(len(ratios) - 1) // 2], ratios[len(ratios) // 2]])
    assert durations.hodges_lehmann(base, candidate) == pytest.approx(middle)


def test_hodges_lehmann_of_many_values_is_found_without_listing_the_pairs() -> None:
    # GIVEN more pairs than are listed
    random = np.random.default_rng(7)
    base, candidate = (random.integers(900, 1100, 501).tolist() for _ in range(2))
    # WHEN the estimate is taken THEN it is the median of all ratios
    expected = math.exp(median(math.log(one / other) for one, other in product(candidate, base)))
    assert durations.hodges_lehmann(base, candidate) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_p_values_are_those_of_scipy(p: list[float]) -> None:
    # GIVEN any p-values WHEN adjusted THEN they are scipy's
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p, method="bh"))
    assert benjamini_yekutieli(p) == pytest.approx(stats.false_discovery_control(p, method="by"))


def test_a_published_list_of_p_values() -> None:
    # GIVEN fifteen p-values of the literature
    p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.324,
        0.4262,
        0.5719,
        0.6528,
        0.759,
        1,
    ]
    # WHEN adjusted THEN four stay below 5 %
    adjusted = benjamini_hochberg(p)
    assert adjusted[:6] == pytest.approx([0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.0638571], rel=1e-5)
    assert sum(value < 0.05 for value in adjusted) == 4
    assert benjamini_yekutieli(p)[:3] == pytest.approx([0.0049773, 0.0099547, 0.0315232], rel=1e-5)


def _alike(random: np.random.Generator, count: int, correlation: float) -> list[int]:
    """Return iterations of 1 ms and 2 % unrest whose neighbours resemble each other."""
    noise = random.normal(size=count + 100)
    for index in range(1, len(noise)):
        noise[index] += correlation * noise[index - 1]
    return [round(1_000_000 + 20_000 * value) for value in noise[100:]]


@pytest.mark.parametrize(("correlation", "most"), [(0.0, 0.06), (0.3, 0.10), (0.6, 0.13)])
def test_false_alarms_between_captures_of_one_arm(correlation: float, most: float) -> None:
    # GIVEN 600 pairs of captures of one arm, with 29 and 31 iterations that resemble their neighbours
    random = np.random.default_rng(11)
    pairs = [(_alike(random, 29, correlation), _alike(random, 31, correlation)) for _ in range(600)]
    # WHEN each pair is tested at 5 %
    alarms = sum((durations.difference_test(*map(durations.mean_of, pair))[2] or 0) < 0.05 for pair in pairs) / 600
    # THEN far fewer alarm than with a test that takes iterations for independent
    plain = sum(stats.ttest_ind(*pair, equal_var=False).pvalue < 0.05 for pair in pairs) / 600
    assert alarms <= most
    assert alarms <= plain
