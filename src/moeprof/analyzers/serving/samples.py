"""From the reports of a client to samples: one per timed pass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from moeprof.analyzers.serving.results import ArmSamples, ExcludedPass, ServingSample, Workload
from moeprof.traces.benchmarks.results import BenchmarkPass

_STEADY = "steady_state."
_P50 = re.compile(r"(steady_state\.)?p50_(ttft|tpot|itl|e2el)_ms")
_T = TypeVar("_T")


def sample_of(
    report: BenchmarkPass,
    *,
    block: int,
    number: int,
    source: str,
    workload: str | None = None,
    started: float | None = None,
    ended: float | None = None,
) -> ServingSample:
    """Return the sample of a client's report.

    Args:
        report: What the client wrote.
        block: Block that the pass belongs to.
        number: Its number there.
        source: Where it came from.
        workload: Name of the workload, where it has one.
        started: When the pass began, in seconds since 1970; without it the client's own date counts.
        ended: When it ended.
    """
    values = {**report.values, **{_STEADY + name: value for name, value in report.steady_state.items()}}
    values, printed = _with_medians(values), _with_medians(report.printed)
    failed, completed = report.count("failed"), report.count("completed")
    prompts = report.count("num_prompts")
    if prompts is None and completed is not None and failed is not None:
        prompts = completed + failed
    written = _moment(report.date)
    return ServingSample(
        block=block,
        number=number,
        source=source,
        workload=Workload(
            name=workload,
            client=report.client,
            prompts=prompts,
            concurrency=report.count("max_concurrency"),
            rate=report.rate,
            input_tokens=report.count("total_input_tokens"),
            output_tokens=report.count("total_output_tokens"),
        ),
        values=values,
        printed=printed,
        completed=completed,
        failed=failed,
        speculative=report.speculative,
        started=written if started is None else started,
        ended=written if ended is None else ended,
    )


def gated(arm: ArmSamples) -> ArmSamples:
    """Return an arm without the passes in which a request failed or is missing; they are named, with the gate."""
    kept: list[ServingSample] = []
    excluded = list(arm.excluded)
    for sample in arm.samples:
        why = failure(sample)
        if why is None:
            kept.append(sample)
        else:
            excluded.append(ExcludedPass(sample.block, sample.number, sample.source, "no-failed-requests", why))
    return replace(arm, samples=tuple(sorted(kept, key=place)), excluded=tuple(excluded))


def place(sample: ServingSample) -> tuple[int, int, str]:
    """Return the sort key of a sample: block, number, source."""
    return sample.block, sample.number, sample.source


def failure(sample: ServingSample) -> str | None:
    """Return why a pass is not to be counted, in a clause; None where it is."""
    wanted = sample.workload.prompts
    if sample.failed:
        of = "" if wanted is None else f" of {wanted}"
        return f"{sample.failed}{of} requests failed"
    if sample.completed is not None and wanted is not None and sample.completed != wanted:
        return f"{sample.completed} of {wanted} requests completed"
    return None


def _with_medians(found: Mapping[str, _T]) -> dict[str, _T]:
    """Return figures with the median of each measure of which only the 50th percentile is told: they are one figure."""
    told = {name.replace("p50_", "median_", 1): item for name, item in found.items() if _P50.fullmatch(name)}
    return {**told, **found}


def _moment(date: str | None) -> float | None:
    """Return a client's date as seconds since 1970; local time is taken as it stands, which keeps the order on one machine."""
    if date is None:
        return None
    moment = datetime.fromisoformat(date)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
