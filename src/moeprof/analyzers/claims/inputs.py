"""What the figures of a pass can have been before they were printed: rounding, sharpened by what must hold among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from moeprof.analyzers.claims.digits import Range, certain, printed
from moeprof.analyzers.serving.metrics import Metric, Metrics
from moeprof.analyzers.serving.results import ServingSample
from moeprof.findings import Finding

_PER_DURATION = ("total_token_throughput", "output_throughput", "request_throughput", "input_throughput")
_SLACK = Fraction(1, 10**9)  # a client computes in floats


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Figures of one report that cannot all be true."""

    source: str
    figures: tuple[str, ...]

    def finding(self) -> Finding:
        """Return it as a finding."""
        return Finding(
            "report-inconsistent",
            "warning",
            f"{self.source} contradicts itself: no duration fits {', '.join(self.figures)}",
            evidence={"source": self.source, "figures": [*self.figures]},
        )


def written(sample: ServingSample, metric: Metric, metrics: Metrics) -> Range | None:
    """Return what the digits of one figure stand for; None where the pass has no value."""
    value = metrics.value(metric, sample.values)
    if value is None:
        return None
    name = next((each for each in (metric.name, *metric.aliases) if each in sample.values), metric.name)
    text = sample.printed.get(name)
    return certain(value) if text is None or isinstance(value, int) else printed(text)


def sharpened(sample: ServingSample, metric: Metric, metrics: Metrics) -> Range | None:
    """Return the range of a figure after all that the same report says of it: throughputs are tokens over duration.

    Args:
        sample: The pass.
        metric: The figure.
        metrics: The registry.
    """
    plain = written(sample, metric, metrics)
    duration = _duration(sample)
    if plain is None or duration is None or isinstance(duration, Contradiction) or not sample.printed:
        return plain
    derived = duration if metric.name == "duration" else None
    if (amount := _amounts(sample).get(metric.name)) is not None and amount > 0:
        derived = Range(amount / duration.high, amount / duration.low, amount / duration.point)
    if derived is None or not derived.meets(plain):
        return plain
    return Range(max(derived.low, plain.low), min(derived.high, plain.high), plain.point)


def contradiction(sample: ServingSample) -> Contradiction | None:
    """Return the figures of a printed report that cannot all be true; None where they can."""
    found = _duration(sample)
    return found if isinstance(found, Contradiction) else None


def _duration(sample: ServingSample) -> Range | Contradiction | None:
    """Return the durations that fit the printed one and every throughput."""
    text = sample.printed.get("duration")
    if text is None:
        return None
    start = printed(text)
    found, used = start, ["duration"]
    for name, amount in _amounts(sample).items():
        rate_text = sample.printed.get(name)
        if rate_text is None or amount <= 0 or (rate := printed(rate_text)).low <= 0:
            continue
        used.append(name)
        low, high = amount / rate.high * (1 - _SLACK), amount / rate.low * (1 + _SLACK)
        found = Range(max(found.low, low), min(found.high, high), start.point)
        if found.low > found.high:
            return Contradiction(sample.source, tuple(used))
    return found if found.low > 0 else None


def _amounts(sample: ServingSample) -> Mapping[str, Fraction]:
    """Return what each throughput divides by the duration, as far as the report tells."""
    load = sample.workload
    both = None if load.input_tokens is None or load.output_tokens is None else load.input_tokens + load.output_tokens
    known = dict(zip(_PER_DURATION, (both, load.output_tokens, sample.completed, load.input_tokens), strict=True))
    return {name: Fraction(amount) for name, amount in known.items() if amount is not None}
