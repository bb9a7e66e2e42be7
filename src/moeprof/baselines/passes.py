"""The timed passes of a baseline: raw values of each metric by pass, for each measuring point."""

from __future__ import annotations

import math
from typing import cast

from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.analyzers.serving.results import ArmSamples, Block, ServingSample, Workload
from moeprof.analyzers.serving.samples import gated, place
from moeprof.baselines.document import Object, Reader
from moeprof.findings import JsonValue

_WORKLOAD = ("name", "client", "prompts", "concurrency", "rate")


def serving_of(arm: ArmSamples) -> Object:
    """Return the passes that failed no gate, by measuring point.

    Args:
        arm: The samples; numbers that are known to be no metrics are left out.
    """
    kept = gated(arm)
    fingerprints = {block.number: block.fingerprint for block in kept.blocks}
    found: Object = {}
    for point in sorted({sample.workload.point for sample in kept.samples}):
        samples = [sample for sample in kept.samples if sample.workload.point == point]
        found[point] = {
            "workload": _workload(samples[0].workload),
            "passes": [_pass(sample, fingerprints.get(sample.block)) for sample in samples],
            "metrics": _metrics(samples),
        }
    return found


def _workload(workload: Workload) -> Object:
    values: Object = {name: getattr(workload, name) for name in _WORKLOAD}
    if workload.rate is not None and not math.isfinite(workload.rate):
        values["rate"] = "inf"
    return values


def _pass(sample: ServingSample, fingerprint: str | None) -> Object:
    return {
        "block": sample.block,
        "number": sample.number,
        "completed": sample.completed,
        "input_tokens": sample.workload.input_tokens,
        "output_tokens": sample.workload.output_tokens,
        "speculative": sample.speculative,
        "started": sample.started,
        "ended": sample.ended,
        "fingerprint": fingerprint,
    }


def _metrics(samples: list[ServingSample]) -> Object:
    registry = load_metrics()
    names = sorted({name for sample in samples for name in sample.values if not registry.is_ignored(name)})
    return {
        name: {
            "passes": [f"{sample.block}.{sample.number}" for sample in samples if name in sample.values],
            "values": [sample.values[name] for sample in samples if name in sample.values],
        }
        for name in names
    }


def samples_from(read: Reader, arm: str, source: str) -> ArmSamples | None:
    """Return the passes of a baseline; None where it has none.

    Raises:
        BaselineError: Something is not as `serving_of` writes it.
    """
    samples: list[ServingSample] = []
    prints: dict[int, str | None] = {}
    for point in sorted(read.value):
        samples += _of_point(read.part(point), prints)
    if not samples:
        return None
    blocks = tuple(Block(number, prints[number]) for number in sorted(prints))
    return ArmSamples(arm, source, tuple(sorted(samples, key=place)), blocks)


def _of_point(read: Reader, prints: dict[int, str | None]) -> list[ServingSample]:
    read.only("workload", "passes", "metrics")
    values = _values(read.part("metrics"))
    samples = []
    seen: set[str] = set()
    for entry in read.parts("passes"):
        block, number = entry.whole("block"), entry.whole("number")
        key = f"{block}.{number}"
        if key in seen:
            raise entry.error(f"is pass {key} a second time")
        seen.add(key)
        prints.setdefault(block, entry.maybe_text("fingerprint"))
        speculative = entry.value.get("speculative")
        samples.append(
            ServingSample(
                block=block,
                number=number,
                source=f"baseline pass {key}",
                workload=_workload_from(read.part("workload"), entry),
                values=cast("dict[str, int | float]", values.get(key, {})),
                completed=entry.maybe_whole("completed"),
                speculative=speculative if isinstance(speculative, bool) else None,
                started=entry.maybe_number("started"),
                ended=entry.maybe_number("ended"),
            )
        )
    strange = sorted(set(values) - seen)
    if strange:
        raise read.error(f"holds values of pass {strange[0]}, which is not among its passes", "metrics")
    return samples


def _values(read: Reader) -> dict[str, dict[str, JsonValue]]:
    """Return the values of each pass by metric."""
    found: dict[str, dict[str, JsonValue]] = {}
    for name in read.value:
        entry = read.part(name)
        passes = entry.texts("passes")
        values = entry.value.get("values")
        numbers = values if isinstance(values, list) else []
        if len(numbers) != len(passes) or len(set(passes)) < len(passes):
            raise entry.error("has not one value for each of its passes", "values")
        for key, value in zip(passes, numbers, strict=True):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise entry.error(f"holds {value!r}, which is no number", "values")
            found.setdefault(key, {})[name] = value
    return found


def _workload_from(read: Reader, entry: Reader) -> Workload:
    read.only(*_WORKLOAD)
    rate = float("inf") if read.value.get("rate") == "inf" else read.maybe_number("rate")
    return Workload(
        name=read.maybe_text("name"),
        client=read.maybe_text("client"),
        prompts=read.maybe_whole("prompts"),
        concurrency=read.maybe_whole("concurrency"),
        rate=rate,
        input_tokens=entry.maybe_whole("input_tokens"),
        output_tokens=entry.maybe_whole("output_tokens"),
    )
