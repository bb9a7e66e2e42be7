"""Hold a written claim against the passes: which values can the raw figures have had, and do they meet the claim?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from moeprof.analyzers.claims import digits
from moeprof.analyzers.claims.digits import Range
from moeprof.analyzers.claims.inputs import contradiction, sharpened, written
from moeprof.analyzers.claims.results import ClaimRow
from moeprof.analyzers.claims.written import WrittenClaim
from moeprof.analyzers.serving.metrics import Metric, Metrics
from moeprof.analyzers.serving.results import ArmSamples, ServingSample
from moeprof.analyzers.serving.samples import failure, gated
from moeprof.findings import Finding
from moeprof.wording import listed, plural

_HUNDRED = Fraction(100)
_COUNTS: dict[str, Callable[[ServingSample], int | None]] = {
    "completed": lambda sample: sample.completed,
    "failed": lambda sample: sample.failed,
    "total_input_tokens": lambda sample: sample.workload.input_tokens,
    "total_output_tokens": lambda sample: sample.workload.output_tokens,
}


@dataclass(frozen=True, slots=True)
class Checked:
    """The claims with their outcome, and findings about the reports that they rest on."""

    rows: tuple[ClaimRow, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to read a claim: what it says of the statistic, and the values that the inputs allow."""

    name: str
    plain: Range | None
    sharp: Range | None


def check(claims: Sequence[WrittenClaim], base: ArmSamples, candidate: ArmSamples, metrics: Metrics) -> Checked:
    """Return the outcome of every claim, in their order.

    Args:
        claims: As they were written.
        base: The passes of the base arm.
        candidate: Of the other arm.
        metrics: The registry.
    """
    before, after = gated(base), gated(candidate)
    rows = tuple(
        # What all passes are said to have is held against all passes, those included that a gate took out.
        _exact(claim, _chosen(claim, base), _chosen(claim, candidate))
        if claim.statistic in ("each", "count")
        else _row(claim, before, after, metrics)
        for claim in claims
    )
    found = [contradiction(sample) for sample in (*before.samples, *after.samples)]
    return Checked(rows, tuple(item.finding() for item in found if item is not None))


def outcome(claimed: Range, computed: Range | None) -> str:
    """Return the word for a claim: ``confirmed``, ``consistent``, ``contradicted`` or ``no_data``.

    >>> outcome(digits.printed("6.72"), Range(Fraction(67166, 10000), Fraction(67169, 10000), Fraction(67167, 10000)))
    'confirmed'
    """
    if computed is None:
        return "no_data"
    if computed.within(claimed):
        return "confirmed"
    return "consistent" if computed.meets(claimed) else "contradicted"


def _row(claim: WrittenClaim, base: ArmSamples, candidate: ArmSamples, metrics: Metrics) -> ClaimRow:
    before, after = (_chosen(claim, arm) for arm in (base, candidate))
    points = {sample.workload.point for sample in (*before, *after)}
    if len(points) > 1:
        return _result(claim, "no_data", f"which workload? there are {listed(sorted(points))}", None)
    metric = metrics.find(claim.metric)
    assert metric is not None  # a claim about an unknown metric is refused when it is read
    readings = _readings(claim, metric, metrics, before, after)
    main = readings[0]
    word = _word(claim.range, main)
    fits = tuple(item.name for item in readings[1:] if item.sharp is not None and item.sharp.meets(claim.range))
    if main.plain is None or main.sharp is None:
        return _result(claim, word, f"{main.name}: no value of {claim.metric} on a side", None)
    return _result(claim, word, _because(claim, word, main, fits), main.plain, fits)


def _word(claimed: Range, found: _Reading) -> str:
    """Return the outcome by the digits alone, and where they leave it open by all that the reports say.

    Who computed from the printed digits is not contradicted by digits that others derive.
    """
    word = outcome(claimed, found.plain)
    if word != "consistent" or found.plain is None:
        return word
    sharper = outcome(claimed, found.sharp)
    reproduced = claimed.low <= found.plain.point <= claimed.high
    return word if sharper == "contradicted" and reproduced else sharper


def _chosen(claim: WrittenClaim, arm: ArmSamples) -> list[ServingSample]:
    return [
        sample
        for sample in arm.samples
        if claim.workload in (None, sample.workload.point, sample.workload.name)
        and (claim.block is None or claim.side is None or sample.block == claim.block)
    ]


def _exact(claim: WrittenClaim, before: Sequence[ServingSample], after: Sequence[ServingSample]) -> ClaimRow:
    """Check a count: of the passes, or in every one of them."""
    samples = [*(before if claim.side != "candidate" else ()), *(after if claim.side != "base" else ())]
    if claim.statistic == "count":
        word = "confirmed" if claim.range.point == len(samples) else "contradicted"
        left_out = len(samples) - sum(failure(sample) is None for sample in samples)
        said = f"counted {plural(len(samples), 'timed pass', 'timed passes')}"
        said += f", of which {left_out} failed a gate" if left_out else ""
        return _result(claim, word if samples else "no_data", said, None)
    values = [_COUNTS[claim.metric](sample) for sample in samples]
    known = sorted({value for value in values if value is not None})
    if not known or None in values:
        return _result(claim, "no_data", f"not every pass tells {claim.metric}", None)
    word = "confirmed" if known == [claim.range.point] else "contradicted"
    return _result(claim, word, f"{claim.metric} of {len(values)} passes: {listed(known)} (exact)", None)


def _readings(
    claim: WrittenClaim,
    metric: Metric,
    metrics: Metrics,
    before: Sequence[ServingSample],
    after: Sequence[ServingSample],
) -> list[_Reading]:
    """Return the ways to read a claim, the declared one first."""
    sides = []
    for of in (written, sharpened):
        found = [[of(sample, metric, metrics) for sample in samples] for samples in (before, after)]
        sides.append([[item for item in side if item is not None] for side in found])
    plain, sharp = sides
    if claim.quantity == "value":
        which = 0 if claim.side == "base" else 1
        return _of_values(claim, plain[which], sharp[which])
    blocks = sorted({sample.block for sample in before if metrics.value(metric, sample.values) is not None})
    own = [sample.block for sample in before if metrics.value(metric, sample.values) is not None]
    return _of_changes(claim, metric, plain, sharp, blocks, own)


def _of_values(claim: WrittenClaim, plain: list[Range], sharp: list[Range]) -> list[_Reading]:
    readings = {
        name: _Reading(f"{name} of {len(plain)} passes", of(plain) if plain else None, of(sharp) if sharp else None)
        for name, of in (("median", digits.median), ("mean", digits.mean))
    }
    return [readings.pop(claim.statistic), *readings.values()]


def _of_changes(
    claim: WrittenClaim,
    metric: Metric,
    plain: list[list[Range]],
    sharp: list[list[Range]],
    blocks: list[int],
    own: list[int],
) -> list[_Reading]:
    def reading(name: str, over: _Of, under: _Of, only: int | None = None) -> _Reading:
        ranges = []
        for base, candidate in (plain, sharp):
            kept = [item for item, block in zip(base, own, strict=True) if only in (None, block)]
            ranges.append(_relative(claim, over(candidate), under(kept)) if kept and candidate else None)
        return _Reading(name, *ranges)

    best = _highest if metric.better == "higher" else _lowest
    readings = [
        reading("median of passes against median of passes", digits.median, digits.median),
        reading("mean of passes against mean of passes", digits.mean, digits.mean),
        reading("median of passes against mean of passes", digits.median, digits.mean),
        reading("mean of passes against median of passes", digits.mean, digits.median),
        reading("best pass against best pass", best, best),
    ]
    if claim.statistic == "mean":
        readings.insert(0, readings.pop(1))
    if len(blocks) > 1:
        for block in blocks:
            name = f"median of passes against median of base block {block}"
            readings.append(reading(name, digits.median, digits.median, block))
    return readings


_Of = Callable[[Sequence[Range]], Range]


def _relative(claim: WrittenClaim, over: Range, under: Range) -> Range | None:
    ratio = digits.quotient(over, under)
    if ratio is None or claim.quantity == "ratio":
        return ratio
    return ratio.shifted(Fraction(-1)).scaled(_HUNDRED)


def _highest(ranges: Sequence[Range]) -> Range:
    return Range(*(max(getattr(item, end) for item in ranges) for end in ("low", "high", "point")))


def _lowest(ranges: Sequence[Range]) -> Range:
    return Range(*(min(getattr(item, end) for item in ranges) for end in ("low", "high", "point")))


def _because(claim: WrittenClaim, word: str, main: _Reading, fits: Sequence[str]) -> str:
    plain, sharp = main.plain, main.sharp
    assert plain is not None
    assert sharp is not None
    decimals = len(claim.digits.partition(".")[2])
    unit = " %" if claim.quantity == "change" else ""
    point = _text(plain.point, decimals, signed=claim.quantity == "change")
    said = [f"{main.name}: the raw figures allow {_span(plain, decimals)}{unit}, and give {point}{unit}"]
    if plain != sharp:
        said.append(f"with what else the reports say, {_span(sharp, decimals)}{unit}")
    if word == "consistent":
        reproduced = claim.range.low <= plain.point <= claim.range.high
        said.append(
            "consistent with unrounded inputs"
            + ("" if reproduced else f" but not reproducible from the printed ones ({point}{unit})")
        )
    if fits:
        said.append(f"{'also fits' if word != 'contradicted' else 'fits instead'}: {'; '.join(fits)}")
    return "; ".join(said)


def _span(value: Range, decimals: int) -> str:
    if value.low == value.high:
        return f"{_text(value.low, decimals + 3)}"
    return f"{_text(value.low, decimals + 3)} .. {_text(value.high, decimals + 3)}"


def _text(value: Fraction, decimals: int, *, signed: bool = False) -> str:
    return f"{float(value):{'+' if signed else ''}.{decimals}f}"


def _result(
    claim: WrittenClaim, word: str, because: str, computed: Range | None, fits: tuple[str, ...] = ()
) -> ClaimRow:
    return ClaimRow(
        text=claim.text,
        label=word,
        because=because,
        kind="check",
        metric=claim.metric,
        workload=claim.workload,
        computed=None if computed is None else (float(computed.low), float(computed.high)),
        fits=fits,
    )
