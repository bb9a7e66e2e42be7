"""Accuracy of two arms: counts, intervals and words, against scipy, statsmodels and published values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import moeprof
from moeprof.analyzers.accuracy import proportions
from moeprof.analyzers.accuracy.compare import compare_accuracy
from moeprof.analyzers.accuracy.results import AccuracyRow, Evaluation
from moeprof.analyzers.claims.accuracy import accuracy_claims
from moeprof.analyzers.comparison.evaluated import accuracy_verdict
from moeprof.commands import fail_on

N = 1319
_ARM = st.integers(1, 400).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


def runs(*counts: int | tuple[int, ...], total: int = N, task: str = "gsm8k", name: str = "run") -> list[Evaluation]:
    """Return runs of one arm by their counts; a tuple is what a rounded share allows."""
    return [
        Evaluation(task, total, count if isinstance(count, tuple) else (count,), f"{name}{number}", (0,))
        for number, count in enumerate(counts)
    ]


def row(base: list[Evaluation], candidate: list[Evaluation], margin: float | None = None) -> AccuracyRow:
    """Return the only row."""
    (one,) = compare_accuracy(base, candidate, margin=margin)
    return one


@given(_ARM, st.sampled_from([0.9, 0.95, 0.99]))
def test_wilson_is_that_of_statsmodels(arm: tuple[int, int], confidence: float) -> None:
    # GIVEN any counts WHEN the interval is taken THEN it is statsmodels'
    expected = proportion_confint(*arm, alpha=1 - confidence, method="wilson")
    assert proportions.wilson(*arm, confidence) == pytest.approx(expected, abs=1e-12)


@given(_ARM, _ARM)
def test_newcombe_is_that_of_statsmodels(base: tuple[int, int], candidate: tuple[int, int]) -> None:
    # GIVEN any counts WHEN the interval of the difference is taken THEN it is statsmodels'
    expected = confint_proportions_2indep(*candidate, *base, method="newcomb", compare="diff")
    assert proportions.newcombe(*base, *candidate) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_that_of_both_libraries(base_only: int, candidate_only: int) -> None:
    # GIVEN any discordant pairs WHEN tested THEN p is that of scipy's binomial test and of statsmodels
    found = proportions.mcnemar(base_only, candidate_only)
    if base_only + candidate_only:
        assert found == pytest.approx(stats.binomtest(base_only, base_only + candidate_only).pvalue)
    assert found == pytest.approx(mcnemar([[0, base_only], [candidate_only, 0]], exact=True).pvalue)


@given(_ARM, _ARM, st.floats(-0.95, 0.95))
def test_the_score_uses_the_likeliest_shares_under_the_hypothesis(
    base: tuple[int, int], candidate: tuple[int, int], difference: float
) -> None:
    # GIVEN any counts and a difference to test
    (k0, n0), (k1, n1) = base, candidate

    def unlikely(share: float) -> float:
        shares = ((k0, n0, share), (k1, n1, share + difference))
        clipped = ((k, n, min(max(p, 1e-14), 1 - 1e-14)) for k, n, p in shares)
        return -math.fsum(k * math.log(p) + (n - k) * math.log1p(-p) for k, n, p in clipped)

    # WHEN the restricted share is taken THEN a numerical search finds none that is likelier
    found = proportions._restricted(k0, n0, k1, n1, difference)
    bounds = max(0.0, -difference), min(1.0, 1 - difference)
    best = optimize.minimize_scalar(unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    assert unlikely(found) <= best.fun + 1e-6


@pytest.mark.parametrize(
    ("candidate", "newcombe", "score", "noninferiority", "equivalence"),
    [
        (1112, (-0.0372881, 0.0175788), (-0.0328951, 0.0131657), (0.4958900, 0.2341666, 0.0751176), None),
        (1125, (-0.0270701, 0.0270701), (-0.0227244, 0.0227244), (0.2343149, 0.0737882, 0.0150382), None),
        (
            1140,
            (-0.0152581, 0.0380051),
            (-0.0109699, 0.0337400),
            (0.0577864, 0.0105405, 0.0012010),
            (0.5402797, 0.2625293, 0.0852438),
        ),
    ],
)
def test_worked_values(
    candidate: int,
    newcombe: tuple[float, float],
    score: tuple[float, float],
    noninferiority: tuple[float, ...],
    equivalence: tuple[float, ...] | None,
) -> None:
    # GIVEN 1125 of 1319 against another count WHEN compared THEN every figure is the one worked out beforehand
    counts = (1125, N, candidate, N)
    near = pytest.approx
    assert proportions.newcombe(*counts) == near(newcombe, abs=5e-8)
    assert proportions.score_interval(*counts) == near(score, abs=5e-8)
    margins = (0.01, 0.02, 0.03)
    assert tuple(proportions.noninferiority(*counts, margin) for margin in margins) == near(noninferiority, abs=5e-8)
    assert tuple(proportions.equivalence(*counts, margin) for margin in margins) == near(
        equivalence or noninferiority, abs=5e-8
    )


def test_a_published_score_interval() -> None:
    # GIVEN 7 of 34 against 1 of 34, and the statistic without its factor for small samples
    def statistic(difference: float) -> float:
        return proportions.score(1, 34, 7, 34, difference) * math.sqrt(68 / 67)

    # WHEN its roots at 95 % are searched THEN they are the published (0.028, 0.34)
    z = stats.norm.ppf(0.975)
    low, high = (optimize.brentq(lambda d, end=end: statistic(d) - end, -0.5, 0.9) for end in (z, -z))
    assert (round(low, 3), round(high, 2)) == (0.028, 0.34)


def test_the_samples_show_no_drop_and_no_parity() -> None:
    # GIVEN one base run and three runs of the fused arm, as an evaluator printed them
    base = "samples/gsm8k/decode_base.txt"
    candidate = ",".join(f"samples/gsm8k/decode_mega_run{number}.txt" for number in (1, 2, 3))
    # WHEN compared without a margin, and with one of 2 points
    plain, stated = moeprof.diff(base, candidate), moeprof.diff(base, candidate, accuracy_margin=0.02)
    # THEN no drop is shown, the counts are those that the print allows, and the runs are not added up
    (one,) = plain.accuracy
    assert (one.label, one.reason, one.noninferiority) == ("no drop shown", "interval", None)
    assert one.base is not None and one.candidate is not None
    assert one.base.correct == ((1209, 1210),)
    assert one.candidate.correct == ((1197, 1198), (1205, 1206), (1212, 1212))
    assert (one.base.questions, one.candidate.questions, one.p_floor) == (1319, 1319, 0.5)
    assert one.candidate.sd == pytest.approx(stats.tstd(one.candidate.values))
    # AND the interval spans the least and the most favourable reading
    assert one.interval is not None and one.least_favourable is not None and one.most_favourable is not None
    assert (one.least_favourable.base, one.least_favourable.candidate) == (1210, 1197)
    assert (one.most_favourable.base, one.most_favourable.candidate) == (1209, 1212)
    expected = confint_proportions_2indep(1197, N, 1210, N, method="newcomb", compare="diff")
    assert one.interval[0] == pytest.approx(expected[0])
    # AND with the margin it depends on the reading, so that nothing is called unchanged
    (two,) = stated.accuracy
    assert two.noninferiority is not None and two.noninferiority.shown is None
    assert plain.verdict == stated.verdict == "inconclusive"
    assert "parity" not in two.text


def test_prediction_for_one_more_run() -> None:
    # GIVEN three runs WHEN described THEN one more is expected where Student's t says
    found = row(runs(1200), runs(1190, 1200, 1216)).candidate
    assert found is not None and found.prediction is not None
    values = [1190 / N, 1200 / N, 1216 / N]
    half = stats.t.isf(0.025, 2) * stats.tstd(values) * math.sqrt(1 + 1 / 3)
    assert found.prediction == pytest.approx((sum(values) / 3 - half, sum(values) / 3 + half))


def test_a_clear_drop_is_shown_and_regresses() -> None:
    # GIVEN a candidate that answers 100 questions fewer WHEN compared THEN the drop is shown
    found = row(runs(1200), runs(1100))
    assert (found.label, found.reason, accuracy_verdict(found)) == ("drop shown", "interval", "regressed")
    # AND the other way round nothing dropped, which is an improvement
    back = row(runs(1100), runs(1200))
    assert (back.label, accuracy_verdict(back)) == ("no drop shown", "improved")


def test_runs_that_disagree_cannot_tell() -> None:
    # GIVEN one run that dropped and one that did not WHEN compared THEN nothing is said about a drop
    found = row(runs(1200), runs(1100, 1199))
    assert (found.label, found.reason, accuracy_verdict(found)) == ("cannot tell", "readings_disagree", "inconclusive")


def test_other_questions_cannot_tell() -> None:
    # GIVEN evaluations of 1319 and of 200 questions, and of 5 and 0 examples WHEN compared THEN nothing is said
    assert row(runs(1200), runs(150, total=200)).reason == "questions_differ"
    shots = [Evaluation("gsm8k", N, (1200,), "a", (0,), shots) for shots in (5, 0)]
    found = row(shots[:1], shots[1:])
    assert (found.label, found.reason) == ("cannot tell", "questions_differ")
    assert "0 and 5" in found.notes[0]


def test_the_same_questions_one_by_one_tell_more() -> None:
    # GIVEN two runs of the same questions that differ on 28 of them, 20 to 8
    agreed = [True] * 900 + [False] * 100
    base = (*agreed, *[True] * 20, *[False] * 8)
    candidate = (*agreed, *[False] * 20, *[True] * 8)
    before, after = (
        [Evaluation("gsm8k", len(outcomes), (sum(outcomes),), name, (0,), None, outcomes)]
        for name, outcomes in (("a", base), ("b", candidate))
    )
    # WHEN compared THEN the drop is shown, which the two shares alone would not
    found = row(before, after)
    assert [(pair.base_only, pair.candidate_only) for pair in found.paired] == [(20, 8)]
    assert found.paired[0].p == pytest.approx(0.0356981, abs=5e-8)
    assert (found.label, found.reason) == ("drop shown", "paired")
    assert found.interval is not None and found.interval[1] > 0


def test_a_stated_margin_that_is_shown() -> None:
    # GIVEN equal counts and a margin of 3 points WHEN compared THEN it is shown, and the verdict is unchanged
    found = row(runs(1125), runs(1125), margin=0.03)
    assert found.noninferiority is not None
    assert (found.noninferiority.shown, found.needed, accuracy_verdict(found)) == (True, (), "unchanged")
    # AND at 2 points it is not, with the number of questions that would be needed
    narrow = row(runs(1125), runs(1125), margin=0.02)
    assert narrow.noninferiority is not None
    assert (narrow.noninferiority.shown, accuracy_verdict(narrow)) == (False, "inconclusive")
    assert narrow.noninferiority.questions_needed == proportions.questions_needed(1125 / N, 0.02)


def test_a_task_of_one_side_is_missing() -> None:
    # GIVEN a base with two tasks and a candidate with one of them WHEN compared THEN the other is no data
    found = compare_accuracy([*runs(10, total=20, task="b"), *runs(1200, task="a")], runs(1200, task="a"))
    assert [(one.task, one.label, one.reason) for one in found] == [
        ("a", "no drop shown", "interval"),
        ("b", "cannot tell", "no_data_candidate"),
    ]


def test_fail_on_knows_accuracy() -> None:
    # GIVEN sides of which only the base was evaluated WHEN asked THEN the candidate's evaluation is missing
    lost = moeprof.diff("samples/gsm8k/decode_base.txt", "samples/decode/base0_pass0.txt")
    assert "missing" in fail_on.happened(lost)


@pytest.mark.parametrize("margin", [0.0, -0.02, 2.0])
def test_a_margin_that_makes_no_sense_is_refused(margin: float) -> None:
    # GIVEN a margin in points, or none WHEN asked for THEN it is refused
    with pytest.raises(moeprof.MoeprofError, match="margin"):
        moeprof.diff("samples/gsm8k/decode_base.txt", "samples/gsm8k/decode_base.txt", accuracy_margin=margin)


@pytest.mark.parametrize(
    ("base", "candidate", "margin", "said", "unsaid"),
    [
        (1200, (1100,), None, ["gsm8k accuracy fell by 7.58 points"], []),
        (
            1125,
            (1125,),
            None,
            ["no drop of gsm8k accuracy was shown at 1319 questions, 1 v 1 runs"],
            ["parity of gsm8k accuracy"],
        ),
        (
            1125,
            (1125,),
            0.03,
            [
                "no drop of gsm8k accuracy was shown at 1319 questions, 1 v 1 runs",
                "gsm8k accuracy drops by less than 3 points",
            ],
            [],
        ),
        (1200, (1100, 1199), None, [], ["anything about a drop of gsm8k accuracy"]),
    ],
)
def test_sentences_that_evaluations_carry(
    base: int, candidate: tuple[int, ...], margin: float | None, said: list[str], unsaid: list[str]
) -> None:
    # GIVEN counts WHEN sentences are made THEN each has its figures, and parity is said only as a margin that was shown
    claims = accuracy_claims([row(runs(base), runs(*candidate), margin)])
    assert [claim.text for claim in claims if claim.kind == "sentence"] == said
    assert [claim.text for claim in claims if claim.kind == "not-said"] == unsaid
    assert all(claim.because and claim.label for claim in claims)
