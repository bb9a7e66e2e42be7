"""Faults for the self-test: each takes what a good run looks like and breaks one thing, as a regression would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from moeprof.analyzers.accuracy.results import Evaluation
from moeprof.analyzers.gates.observation import Count, Observation, Structure
from moeprof.analyzers.gates.rules import GateRules
from moeprof.analyzers.serving.metrics import Metric
from moeprof.analyzers.serving.results import ServingSample
from moeprof.findings import Finding

_COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast")
_FUSED = ("moe_fused", "moe_gemm")
_OTHER = "SELF_TEST_FALLBACK"
_BEYOND = 2.0  # times the threshold


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken copy of a run.

    Attributes:
        name: What is broken.
        broken: The copy.
        rules: Names of rules that must not pass; a ``*`` ends a prefix.
        metric: Point and name of the metric that was made worse, None for other faults.
    """

    name: str
    broken: Observation
    rules: tuple[str, ...]
    metric: tuple[str, str] | None = None


def faults(good: Observation, rules: GateRules) -> Iterator[Fault]:
    """Yield every fault that what is known of a run allows.

    Args:
        good: A run, or a baseline.
        rules: For the metrics that gate, and the findings that must not occur.
    """
    if good.structure is not None:
        yield from _of_structure(good, good.structure)
    yield from _of_passes(good, rules)
    if good.evaluations:
        yield from _of_accuracy(good, good.evaluations, rules)
    known = {finding.slug for finding in good.findings}
    for slug in sorted(set(rules.forbid) - (set() if rules.strict else known)):
        finding = Finding(slug, "warning", "injected by the self-test")
        yield Fault(f"finding {slug}", replace(good, findings=(*good.findings, finding)), (f"finding/{slug}",))


def _of_structure(good: Observation, structure: Structure) -> Iterator[Fault]:
    def broken(**changes: object) -> Observation:
        return replace(good, structure=replace(structure, **changes))  # type: ignore[arg-type]  # each names a field

    launches = {key: count for key, count in structure.launches.items() if count.value}
    layers = max(
        (structure.pairs.get(key, Count(0, ())).value or 0 for key in ("moe_gemm/target", "ag_rs/target")), default=0
    )
    layers = layers or max(
        (count.value or 0 for key, count in launches.items() if key == "moe_fused/target"), default=1
    )
    extra = next((f"{name}/target" for name in _COLLECTIVES if f"{name}/target" in launches), "all_reduce/target")
    yield Fault(
        f"one more {extra} per layer",
        broken(launches=_with(structure, extra, lambda value: value + max(layers, 1))),
        (f"structure/{extra}",),
    )
    for key in [f"{name}/target" for name in _FUSED if f"{name}/target" in launches]:
        yield Fault(
            f"one {key} lost", broken(launches=_with(structure, key, lambda value: value - 1)), (f"structure/{key}",)
        )
        minority = Count(launches[key].value, tuple(sorted({*launches[key].seen, (launches[key].value or 0) + 1})))
        changed = {**structure.launches, key: minority}
        yield Fault(f"one more {key} in some iterations", broken(launches=changed), (f"structure/{key}",))
        if key in structure.backends:
            yield Fault(
                f"{key} falls back to another backend",
                broken(backends={**structure.backends, key: (_OTHER,)}),
                (f"backend/{key}",),
            )
    drafts = {key: count for key, count in launches.items() if key.endswith("/draft")}
    if drafts:
        doubled = {key: _scaled(count, 2) if key in drafts else count for key, count in structure.launches.items()}
        yield Fault("twice as many drafts", broken(launches=doubled), tuple(f"structure/{key}" for key in drafts))
    for key, count in structure.pairs.items():
        if key.endswith("/per_iteration") and count.value:
            fewer = {**structure.pairs, key: Count(count.value - 1, (count.value - 1,))}
            yield Fault(f"one pair of {key.partition('/')[0]} lost", broken(pairs=fewer), (f"pairs/{key}",))
    gone = next(iter(launches), None)
    if gone is not None:
        rest = {key: count for key, count in structure.launches.items() if key != gone}
        yield Fault(f"{gone} vanished", broken(launches=rest), (f"structure/{gone}",))
    if len(structure.ranks) > 1:
        yield Fault("a rank is missing", broken(ranks=structure.ranks[1:]), ("structure/ranks",))
    yield Fault("no trace any more", replace(good, structure=None, traced=False), ("structure",))


def _with(structure: Structure, key: str, change: Callable[[int], int]) -> Mapping[str, Count]:
    count = structure.launches.get(key, Count(0, (0,)))
    value = change(count.value or 0)
    moved = Count(value, tuple(sorted({change(seen) for seen in count.seen} | {value})))
    return {**structure.launches, key: moved}


def _scaled(count: Count, factor: int) -> Count:
    value = None if count.value is None else count.value * factor
    return Count(value, tuple(seen * factor for seen in count.seen))


def gating(good: Observation, rules: GateRules) -> list[tuple[str, Metric]]:
    """Return point and metric of all that gates and has values."""
    samples = () if good.samples is None else good.samples.samples
    found = {}
    for sample in samples:
        for name in sample.values:
            metric = None if rules.metrics.is_ignored(name) else rules.metrics.find(name)
            if metric is not None and metric.gates:
                found[sample.workload.point, metric.name] = metric
    return [(point, found[point, name]) for point, name in sorted(found)]


def worsened(good: Observation, point: str, metric: Metric, share: float) -> Observation:
    """Return a run in which a metric is worse by a share of itself, in every pass of a point."""
    factor = 1 - share if metric.better == "higher" else 1 + share
    return _mapped(
        good, point, lambda sample: {k: v * factor if k in _names(metric) else v for k, v in sample.values.items()}
    )


def _of_passes(good: Observation, rules: GateRules) -> Iterator[Fault]:
    for point, metric in gating(good, rules):
        rule = f"metric/{point}/{metric.name}"
        share = _BEYOND * metric.threshold
        named = (point, metric.name)
        yield Fault(
            f"{metric.name} ({point}) worse by {share * 100:g} %", worsened(good, point, metric, share), (rule,), named
        )
        if metric.name not in rules.optional:
            gone = _mapped(good, point, lambda s, m=metric: {k: v for k, v in s.values.items() if k not in _names(m)})  # type: ignore[misc]
            yield Fault(f"{metric.name} ({point}) vanished", gone, (rule,))
    if good.samples is not None and good.samples.samples:
        first, *rest = good.samples.samples
        failed = replace(first, failed=1, completed=max((first.completed or 1) - 1, 0))
        samples = replace(good.samples, samples=(failed, *rest))
        yield Fault("a pass with a failed request", replace(good, samples=samples), ("pass/*",))


def _names(metric: Metric) -> tuple[str, ...]:
    return (metric.name, *metric.aliases)


def _mapped(good: Observation, point: str, change: Callable[[ServingSample], Mapping[str, int | float]]) -> Observation:
    assert good.samples is not None  # the metric came from there
    samples = tuple(
        replace(sample, values=change(sample)) if sample.workload.point == point else sample
        for sample in good.samples.samples
    )
    return replace(good, samples=replace(good.samples, samples=samples))


def _of_accuracy(good: Observation, evaluations: tuple[Evaluation, ...], rules: GateRules) -> Iterator[Fault]:
    for task in sorted({run.task for run in evaluations}):
        fallen = tuple(
            replace(run, correct=tuple(count // 2 for count in run.correct), outcomes=None) if run.task == task else run
            for run in evaluations
        )
        yield Fault(f"accuracy of {task} halved", replace(good, evaluations=fallen), (f"accuracy/{task}",))
        rest = tuple(run for run in evaluations if run.task != task)
        yield Fault(f"accuracy of {task} vanished", replace(good, evaluations=rest), (f"accuracy/{task}",))
