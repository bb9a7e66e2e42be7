"""The alarm rule: what is said of one metric, from its figures, its threshold and its label."""

from __future__ import annotations

from fractions import Fraction

from moeprof.analyzers.serving.figures import Figures, exact
from moeprof.analyzers.serving.metrics import Metric
from moeprof.analyzers.serving.results import LABELS, Label, MetricVerdict, Reason

#: An interval that attains less is no evidence: one pass per arm is always disjoint.
LEAST_CONFIDENCE = Fraction(9, 10)
_DIGITS = 12


def verdict(
    metric: Metric, found: Figures, label: Label, least_label: Label = "A/B only"
) -> tuple[MetricVerdict, Reason]:
    """Return the verdict of a metric with values on both sides, and its reason.

    Args:
        metric: With threshold and direction.
        found: The figures.
        label: What the design earned.
        least_label: A weaker label carries neither an improvement nor a regression.
    """
    if found.change is None or found.interval is None:
        return "inconclusive", "zero_base"
    if found.confidence < LEAST_CONFIDENCE:
        return "inconclusive", "too_few_runs"
    threshold = exact(metric.threshold)
    low, high = found.interval
    if abs(found.change) < threshold or not _beyond_abs(metric, found):
        # A ratio of floats that meets the threshold may lie a last digit beyond it.
        within = -metric.threshold <= round(low, _DIGITS) and round(high, _DIGITS) <= metric.threshold
        if within:
            return "unchanged", "interval_within_threshold"
        return "inconclusive", "below_threshold_interval_wide"
    upward = found.change > 0
    if not (low > 0 if upward else high < 0):
        return "inconclusive", "not_separated"
    if not all(_as_far(change, threshold, upward=upward) for change in found.halves):
        return "inconclusive", "one_block_only"
    if LABELS.index(label) > LABELS.index(least_label):
        return "inconclusive", "label_too_weak"
    return ("improved" if upward is (metric.better == "higher") else "regressed"), "shown"


def worst_not_excluded(metric: Metric, interval: tuple[float, float] | None) -> float | None:
    """Return the greatest change for the worse within an interval, as a fraction of base; 0 where it holds none.

    >>> worst_not_excluded(Metric("t", "ms", "lower"), (-0.02, 0.07))
    0.07
    """
    if interval is None:
        return None
    low, high = interval
    return min(low, 0.0) if metric.better == "higher" else max(high, 0.0)


def _beyond_abs(metric: Metric, found: Figures) -> bool:
    return metric.abs is None or abs(found.difference) >= exact(metric.abs)


def _as_far(change: Fraction | None, threshold: Fraction, *, upward: bool) -> bool:
    return change is not None and (change if upward else -change) >= threshold
