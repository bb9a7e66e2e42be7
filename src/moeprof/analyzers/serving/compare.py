"""Compare the passes of two arms: one row per workload and metric, and what a reader must know beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moeprof.analyzers.serving import comparability, remarks
from moeprof.analyzers.serving.design import design, halves, label
from moeprof.analyzers.serving.figures import Measured, figures
from moeprof.analyzers.serving.metrics import Metric, Metrics
from moeprof.analyzers.serving.points import Point, points
from moeprof.analyzers.serving.results import (
    ArmSamples,
    Label,
    MetricVerdict,
    Reason,
    ServingRow,
    ServingSample,
)
from moeprof.analyzers.serving.samples import gated
from moeprof.analyzers.serving.verdict import verdict, worst_not_excluded
from moeprof.findings import Finding, order


@dataclass(frozen=True, slots=True)
class ServingComparison:
    """The rows of `serving[]` and the findings about them."""

    rows: tuple[ServingRow, ...]
    findings: tuple[Finding, ...]


def compare_serving(
    base: ArmSamples,
    candidate: ArmSamples,
    metrics: Metrics,
    *,
    environment: str | None = None,
    least_label: Label = "A/B only",
) -> ServingComparison:
    """Compare two arms, metric by metric, for each workload that both or one of them served.

    Args:
        base: The passes of the base arm.
        candidate: Of the other arm.
        metrics: The registry.
        environment: What differs between the arms, matters and was not declared, in a clause; None: nothing.
        least_label: A weaker label carries neither an improvement nor a regression.
    """
    before, after = gated(base), gated(candidate)
    findings = [*remarks.excluded(before, "base"), *remarks.excluded(after, "candidate")]
    rows: list[ServingRow] = []
    names: set[str] = set()
    for point in points(before, after):
        names |= {name for sample in (*point.base, *point.candidate) for name in sample.values}
        rows += _rows(before, after, point, metrics, environment, least_label)
        findings += remarks.missing_values(point.base, "base", point.name, rows)
        findings += remarks.missing_values(point.candidate, "candidate", point.name, rows)
        findings += comparability.varying_totals(point.base, "base", point.name)
        findings += comparability.varying_totals(point.candidate, "candidate", point.name)
    findings += remarks.on_both_sides(before, after)
    findings += remarks.undeclared(names, metrics)
    findings += remarks.chunk_counts([*before.samples, *after.samples], metrics)
    findings += remarks.trends(rows)
    findings += remarks.improbable(rows)
    return ServingComparison(tuple(rows), tuple(sorted(findings, key=order)))


def _rows(
    base: ArmSamples,
    candidate: ArmSamples,
    point: Point,
    metrics: Metrics,
    environment: str | None,
    least_label: Label,
) -> list[ServingRow]:
    samples = (*point.base, *point.candidate)
    found: dict[str, Metric] = {}
    for name in {name for sample in samples for name in sample.values}:
        metric = None if metrics.is_ignored(name) else metrics.find(name)
        if metric is not None and not (metric.counts_chunks and remarks.speculates(samples)):
            found[metric.name] = metric
    obstacle = ("fingerprint", environment) if environment is not None else None
    if obstacle is None and (units := comparability.obstacle(point.base, point.candidate)) is not None:
        obstacle = ("units", units)
    setting = _Setting(base, candidate, point, metrics, obstacle, least_label)
    return [_row(setting, found[name]) for name in sorted(found, key=metrics.order)]


@dataclass(frozen=True, slots=True)
class _Setting:
    """What the rows of a workload share."""

    base: ArmSamples
    candidate: ArmSamples
    point: Point
    metrics: Metrics
    obstacle: tuple[str, str] | None
    least_label: Label


def _row(setting: _Setting, metric: Metric) -> ServingRow:
    point = setting.point
    before, after = (_measured(side, metric, setting.metrics) for side in (point.base, point.candidate))
    if not before.values or not after.values:
        return _without_values(setting, metric, before, after)
    found = figures(before.values, after.values, halves(before.samples))
    plan = design(setting.base, setting.candidate, before.samples, after.samples)
    name, because = label(plan, found.change, found.drift)
    if setting.obstacle is None:
        word, reason = verdict(metric, found, name, setting.least_label)
    else:
        name, because = "not comparable", setting.obstacle[1]
        word, reason = "not_comparable", "fingerprint" if setting.obstacle[0] == "fingerprint" else "units"
    return ServingRow(
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        base=before.summary(),
        candidate=after.summary(),
        change=None if found.change is None else float(found.change),
        interval=found.interval,
        confidence=float(found.confidence),
        p=found.test.p,
        p_floor=found.test.floor,
        drift=found.drift,
        label=name,
        verdict=word,
        reason=reason,
        workload=point.name,
        gates=metric.gates,
        threshold=metric.threshold,
        threshold_abs=metric.abs,
        hl=found.estimate,
        delta=found.test.delta,
        method=found.test.method,
        label_because=because,
        worst_not_excluded=worst_not_excluded(metric, found.interval),
        notes=remarks.notes(metric, found, before, after),
    )


def _without_values(setting: _Setting, metric: Metric, before: Measured, after: Measured) -> ServingRow:
    """Return the row of a metric that an arm has no value of: missing, or all its passes failed a gate."""
    side, arm, own = (
        ("base", setting.base, setting.point.base)
        if not before.values
        else ("candidate", setting.candidate, setting.point.candidate)
    )
    gates = not own and bool(arm.excluded) and not arm.samples
    missing: Reason = "no_data_base" if side == "base" else "no_data_candidate"
    word: MetricVerdict = "not_comparable" if gates else "missing"
    because = f"no pass of the {side} arm passed the gates" if gates else f"the {side} arm has no value"
    return ServingRow(
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        base=before.summary(),
        candidate=after.summary(),
        change=None,
        interval=None,
        confidence=None,
        p=None,
        p_floor=None,
        drift=None,
        label="not comparable",
        verdict=word,
        reason="gates" if gates else missing,
        workload=setting.point.name,
        gates=metric.gates,
        threshold=metric.threshold,
        threshold_abs=metric.abs,
        label_because=because,
    )


def _measured(samples: Sequence[ServingSample], metric: Metric, metrics: Metrics) -> Measured:
    values = [(sample, metrics.value(metric, sample.values)) for sample in samples]
    kept = [(sample, value) for sample, value in values if value is not None]
    return Measured(tuple(sample for sample, _ in kept), tuple(value for _, value in kept))
