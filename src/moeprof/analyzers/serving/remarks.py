"""What a reader of serving metrics must know beside the figures: notes of a row, findings about all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from itertools import pairwise

from moeprof.analyzers.serving.comparability import exact_totals
from moeprof.analyzers.serving.figures import Figures, Measured, exact, median, relative
from moeprof.analyzers.serving.metrics import Metric, Metrics
from moeprof.analyzers.serving.rank_test import EXACT
from moeprof.analyzers.serving.results import ArmSamples, ArmValues, Number, ServingRow, ServingSample
from moeprof.findings import Finding, JsonValue
from moeprof.wording import listed, plural

#: An improvement beyond it is more often a broken measurement.
IMPROBABLE = 0.5
_LEAST_TAIL = 10
_LEAST_TREND = 3
_TELLING = 5  # figures that two passes do not share by chance
_OFTEN = 0.05
_PRINTED = 4  # decimals of values that were printed for people
_PACE = "output_throughput"


def notes(metric: Metric, found: Figures, base: Measured, candidate: Measured) -> tuple[str, ...]:
    """Return what must be known about one row."""
    said = []
    samples = (*base.samples, *candidate.samples)
    for side, values in (("base", base.values), ("candidate", candidate.values)):
        if len(values) % 2 == 0:
            said.append(_even_median(side, values))
    if found.by_difference:
        said.append("a value is not above zero: interval of differences, as a share of the base median")
    if found.test.floor > _OFTEN:
        said.append(f"p cannot be below {found.test.floor:.3g} with so few passes")
    if found.test.method != EXACT or not found.exact:
        said.append("p and confidence are approximate: too many passes to count every labelling")
    requests = [sample.completed for sample in samples if sample.completed is not None]
    if metric.tail is not None and requests and min(requests) * metric.tail < _LEAST_TAIL:
        said.append(f"tail not resolved: {plural(min(requests), 'request')} per pass")
    if metric.same_as is not None and exact_totals(samples):
        said.append(
            f"the same measurement as {metric.same_as} in other units: requests and tokens are equal in all passes"
        )
    if metric.counts_chunks:
        said.append("counts stream chunks if the server decodes speculatively, which the output does not tell")
    return tuple(said)


def _even_median(side: str, values: Sequence[Number]) -> str:
    """Return how the median of an even number of passes came about, and what its rounding may look like elsewhere."""
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 2 - 1], ordered[len(ordered) // 2]
    middle = Decimal(repr(float(median(values))))
    text = f"{side} median {middle} is the mean of the middle two of {len(values)} passes, {low} and {high}"
    decimals = max(-_exponent(Decimal(repr(value))) for value in (low, high))
    if decimals > _PRINTED or -_exponent(middle) <= decimals:
        return text
    step = Decimal(1).scaleb(-decimals)
    down, up = middle.quantize(step, ROUND_DOWN), middle.quantize(step, ROUND_UP)
    return f"{text}; printed with {decimals} decimals it is {down} or {up}"


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def speculates(samples: Sequence[ServingSample]) -> bool:
    """Tell whether a server decoded speculatively: its client says so, or its peak lies below its mean, as no peak of tokens can."""
    return any(sample.speculative or _peak_below_mean(sample) for sample in samples)


def excluded(arm: ArmSamples, side: str) -> list[Finding]:
    """Return a warning for each pass that a gate took out."""
    return [
        Finding(
            "pass-excluded",
            "warning",
            f"pass {item.number} of block {item.block} is left out: {item.message}",
            evidence={"side": side, "source": item.source, "gate": item.gate, "block": item.block, "pass": item.number},
        )
        for item in arm.excluded
    ]


def missing_values(
    samples: Sequence[ServingSample], side: str, point: str, rows: Sequence[ServingRow]
) -> list[Finding]:
    """Return a warning for the passes of a side that lack a value which others of the side have: n is what is left."""
    lacking = {
        row.metric: len(samples) - own.n
        for row in rows
        if row.workload == point and 0 < (own := _arm(row, side)).n < len(samples)
    }
    if not lacking:
        return []
    told = listed(f"{name} in {lack} of {len(samples)}" for name, lack in lacking.items())
    message = f"{point}: values are missing in passes of the {side} arm, and n is smaller there: {told}"
    evidence: dict[str, JsonValue] = {"side": side, "workload": point, "missing": dict(lacking)}
    return [Finding("values-missing", "warning", message, evidence=evidence)]


def on_both_sides(base: ArmSamples, candidate: ArmSamples) -> list[Finding]:
    """Return a warning where a pass stands in both arms under two names: what is compared with itself shows nothing."""
    if base.source == candidate.source:
        return []
    own = {sample.source for sample in base.samples}
    shared = [
        sample.source
        for sample in candidate.samples
        if sample.source not in own
        and len(sample.values) >= _TELLING
        and any(sample.values == other.values for other in base.samples)
    ]
    if not shared:
        return []
    message = f"{plural(len(shared), 'pass', 'passes')} of the candidate equal passes of base in every figure: {listed(shared)}"
    return [Finding("passes-shared", "warning", message, evidence={"side": "candidate", "sources": [*shared]})]


def undeclared(names: Iterable[str], metrics: Metrics) -> list[Finding]:
    """Return a note that lists numbers without a unit and a direction: they are not compared."""
    unknown = sorted(name for name in names if not metrics.is_ignored(name) and metrics.find(name) is None)
    if not unknown:
        return []
    message = f"not compared, since no direction is declared: {listed(unknown)}; --metrics FILE declares one"
    return [Finding("metrics-undeclared", "note", message, evidence={"names": [*unknown]})]


def chunk_counts(samples: Sequence[ServingSample], metrics: Metrics) -> list[Finding]:
    """Return a note that names the metrics left out because they count stream chunks."""
    if not speculates(samples):
        return []
    names = {name for sample in samples for name in sample.values if not metrics.is_ignored(name)}
    left = sorted(name for name in names if (metric := metrics.find(name)) is not None and metric.counts_chunks)
    if not left:
        return []
    verb = "counts" if len(left) == 1 else "count"
    message = f"not compared: {listed(left)} {verb} stream chunks, not tokens, when drafts are accepted"
    return [Finding("chunk-counts", "note", message, evidence={"names": [*left]})]


def trends(rows: Sequence[ServingRow]) -> list[Finding]:
    """Return a warning for each block whose pace goes one way, by the threshold or more: the warm-up was not over.

    The pace is `output_throughput`, which covers the whole pass; latencies that go along with it are named beside it.
    """
    return [
        finding
        for pace in rows
        if pace.metric == _PACE
        for side in ("base", "candidate")
        for block in sorted(set(_arm(pace, side).blocks))
        for finding in _trend_of(pace, rows, side, block)
    ]


def improbable(rows: Sequence[ServingRow]) -> list[Finding]:
    """Return a warning for each improvement that is too good."""
    return [
        Finding(
            "improbable-improvement",
            "warning",
            f"{row.metric} ({row.workload}) improved by {abs(row.change):.0%}: look for a broken measurement first",
            evidence={"metric": row.metric, "workload": row.workload, "change": row.change},
        )
        for row in rows
        if row.verdict == "improved" and row.change is not None and abs(row.change) > IMPROBABLE
    ]


def _trend_of(pace: ServingRow, rows: Sequence[ServingRow], side: str, block: int) -> list[Finding]:
    if _trend(pace, side, block) is None:
        return []
    said = [
        f"{row.metric} {change:+.1%}"
        for row in rows
        if row.gates and row.workload == pace.workload and (change := _trend(row, side, block)) is not None
    ]
    message = (
        f"block {block}, {pace.workload}: the passes go one way, first to last {', '.join(said)};"
        " the warm-up may not have been over (three values go one way by chance one time in three)"
    )
    evidence: dict[str, JsonValue] = {"side": side, "workload": pace.workload, "block": block, "metrics": [*said]}
    return [Finding("block-trend", "warning", message, evidence=evidence)]


def _trend(row: ServingRow, side: str, block: int) -> float | None:
    """Return the change from first to last pass of a block; None where it is not one way, or below the threshold."""
    arm = _arm(row, side)
    values = [value for value, own in zip(arm.values, arm.blocks, strict=True) if own == block]
    if len(values) < _LEAST_TREND:
        return None
    steps = [later - earlier for earlier, later in pairwise(values)]
    if not (all(step > 0 for step in steps) or all(step < 0 for step in steps)):
        return None
    change = relative(exact(values[0]), exact(values[-1]))
    return float(change) if change is not None and abs(change) >= exact(row.threshold) else None


def _arm(row: ServingRow, side: str) -> ArmValues:
    return row.base if side == "base" else row.candidate


def _peak_below_mean(sample: ServingSample) -> bool:
    peak, mean = sample.values.get("max_output_tokens_per_s"), sample.values.get("output_throughput")
    # A pass of a second or less has no second that could hold more than its mean.
    long = sample.values.get("duration", 0) > 2
    return long and peak is not None and mean is not None and peak < mean
