"""The nine decode passes of the published table: every figure against independent libraries and the reference values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from moeprof.analyzers.serving.compare import ServingComparison, compare_serving
from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.analyzers.serving.results import ArmSamples, ServingRow
from moeprof.analyzers.serving.samples import sample_of
from moeprof.traces.benchmarks.reading import read_results

from .arms import SAMPLES, decode

#: change, Hodges-Lehmann, interval, drift, against A0, A2, midpoint; cv of base and mega.
REFERENCE = {
    "output_throughput": (
        0.06716720, 1.0623547, (1.0329774, 1.1406567), -0.01865908, (0.06198585, 0.08217830, 0.07198700), (3.297025, 1.283453),
    ),
    "median_tpot_ms": (
        -0.18198198, 0.8250824, (0.7942617, 0.8538913), -0.01943844, (-0.18286537, -0.16666667, -0.17484551), (1.907446, 1.466598),
    ),
    "median_ttft_ms": (
        0.26808809, 1.3183135, (1.0460839, 1.5269112), 0.20816664, None, (13.065867, 5.132725),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def compared() -> ServingComparison:
    return compare_serving(decode("base", 0, 2), decode("mega", 1), load_metrics())


def row_of(compared: ServingComparison, metric: str) -> ServingRow:
    return next(row for row in compared.rows if row.metric == metric)


@pytest.mark.parametrize("metric", REFERENCE)
def test_reference_values(compared: ServingComparison, metric: str) -> None:
    # GIVEN the nine passes THEN the figures are those that were worked out by other means
    row = row_of(compared, metric)
    change, estimate, interval, drift, against, cv = REFERENCE[metric]
    assert row.interval is not None
    assert row.hl is not None
    assert row.drift is not None
    assert row.change == pytest.approx(change, rel=1e-6)
    assert 1 + row.hl == pytest.approx(estimate, rel=1e-6)
    assert (1 + row.interval[0], 1 + row.interval[1]) == pytest.approx(interval, rel=1e-6)
    assert row.confidence == pytest.approx(20 / 21)
    assert row.p == pytest.approx(2 / 84)
    assert row.p_floor == pytest.approx(2 / 84)
    assert row.drift.drift == pytest.approx(drift, rel=1e-6)
    if against is not None:
        got = (row.drift.change_vs_a0, row.drift.change_vs_a2, row.drift.change_vs_midpoint)
        assert got == pytest.approx(against, rel=1e-6)
    assert row.drift.a_ranges_overlap
    assert (100 * (row.base.cv or 0), 100 * (row.candidate.cv or 0)) == pytest.approx(cv, rel=1e-6)


def test_every_row_agrees_with_scipy_and_numpy(compared: ServingComparison) -> None:
    # GIVEN every metric of the passes, not only those that gate WHEN libraries compute the same THEN all agree
    assert len(compared.rows) == 12
    for row in compared.rows:
        base, mega = list(row.base.values), list(row.candidate.values)
        assert (row.base.n, row.candidate.n, row.base.blocks) == (6, 3, (0, 0, 0, 2, 2, 2))
        assert row.base.median == pytest.approx(float(np.median(base)), rel=1e-12)
        assert row.change == pytest.approx(float(np.median(mega) / np.median(base)) - 1, rel=1e-9)
        ranks = stats.rankdata(base + mega)
        permuted = stats.permutation_test(
            (ranks[:6], ranks[6:]), lambda x, y: y.sum(), permutation_type="independent", n_resamples=np.inf
        )
        assert row.p == pytest.approx(permuted.pvalue)
        logs = np.sort(np.log([after / before for before in base for after in mega]))
        assert row.hl == pytest.approx(float(np.exp(np.median(logs))) - 1, abs=1e-12)
        assert row.interval == pytest.approx((float(np.exp(logs[1])) - 1, float(np.exp(logs[-2])) - 1), abs=1e-12)
        assert row.drift is not None
        a0, a2 = float(np.median(base[:3])), float(np.median(base[3:]))
        assert row.drift.a0 == pytest.approx(a0)
        assert row.drift.a2 == pytest.approx(a2)
        assert row.drift.change_vs_midpoint == pytest.approx(float(np.median(mega)) / ((a0 + a2) / 2) - 1)


def test_labels_and_verdicts(compared: ServingComparison) -> None:
    # GIVEN the rule at 5 % THEN throughput and TPOT improved on a complete A/B/A; TTFT regressed on a drifted one
    found = {row.metric: (row.label, row.verdict, row.reason) for row in compared.rows if row.gates}
    assert found == {
        "output_throughput": ("A/B/A complete", "improved", "shown"),
        "median_tpot_ms": ("A/B/A complete", "improved", "shown"),
        "median_ttft_ms": ("A/B/A, drifted", "regressed", "shown"),
    }
    ttft = row_of(compared, "median_ttft_ms")
    assert ttft.label_because == "the base arm drifted by +20.82 %, more than half of the change of +26.81 %"


def test_what_is_not_compared(compared: ServingComparison) -> None:
    # GIVEN a peak far below the mean, which only chunks can make THEN it is left out and named; no block has a trend
    assert {finding.slug: finding.evidence for finding in compared.findings} == {
        "chunk-counts": {"names": ["max_output_tokens_per_s"]}
    }
    notes = {row.metric: row.notes for row in compared.rows}
    assert notes["median_tpot_ms"] == (
        "base median 13.875 is the mean of the middle two of 6 passes, 13.86 and 13.89;"
        " printed with 2 decimals it is 13.87 or 13.88",
    )
    assert notes["output_throughput"] == (
        "base median 7040.49 is the mean of the middle two of 6 passes, 7006.14 and 7074.84",
    )
    assert "tail not resolved: 256 requests per pass" in notes["p99_tpot_ms"]
    assert any(note.startswith("the same measurement as output_throughput") for note in notes["duration"])


def test_passes_that_get_faster() -> None:
    # GIVEN three passes of one block, each faster than the one before
    reports = [read_results(SAMPLES / "bench" / f"h200_base_pass{number}.json").passes[0] for number in range(3)]
    arm = ArmSamples(None, "h200", tuple(sample_of(r, block=0, number=n, source=str(n)) for n, r in enumerate(reports)))
    # WHEN they are held against themselves
    compared = compare_serving(arm, arm, load_metrics())
    row = row_of(compared, "output_throughput")
    # THEN the figures are at full precision, and the trend is a warning
    assert row.base.values == (5609.621653875338, 6468.32203811078, 6969.104751887414)
    assert 100 * (row.base.cv or 0) == pytest.approx(10.829225, rel=1e-6)
    assert (row.change, row.label, row.verdict) == (0.0, "A/B only", "inconclusive")
    trends = [finding for finding in compared.findings if finding.slug == "block-trend"]
    assert len(trends) == 2
    assert "output_throughput +24.2%" in trends[0].message
    assert all(metric in trends[0].message for metric in ("median_tpot_ms", "median_ttft_ms"))
