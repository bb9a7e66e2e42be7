"""Look at an arm: what a name or a path stands for, its trace reported on."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from moeprof.analyzers.accuracy.samples import evaluations_of
from moeprof.analyzers.gates.observation import Observation, structure_of
from moeprof.analyzers.results import Report
from moeprof.errors import NothingToCompareError
from moeprof.series.environment import records
from moeprof.series.side import Side, sides


def observe(
    name: str,
    *,
    rules: str | None = None,
    marker: str | None = None,
    marker_family: str | None = None,
    recover: bool = False,
    store: str | os.PathLike[str] | None = None,
) -> tuple[Observation, str | None]:
    """Return what is known of an arm or a path, and the day of its newest run or pass; None where nothing tells it.

    Args:
        name: An arm, a run, or a path with traces or outputs of clients.
        rules: Kernel rules of the user.
        marker: Pattern of the user's markers.
        marker_family: Family of markers to use.
        recover: Read what is whole of a damaged trace.
        store: Where arms are looked for.

    Raises:
        MoeprofError: It cannot be read.
        NothingToCompareError: Its trace has a finding that says its counts cannot be relied on.
    """
    side, _ = sides(name, name, store)
    report = None if side.trace is None else _report(side.trace, rules, marker, marker_family, recover, store)
    if report is not None and not recover:
        _refuse_broken(report)
    found = Observation(
        arm=side.arm,
        source=name,
        structure=None if report is None else structure_of(report),
        samples=side.samples,
        evaluations=evaluations_of(side.evaluations),
        runs=records(side.runs),
        findings=() if report is None else report.findings,
        traced=report is not None,
    )
    return found, _day(side)


def _report(
    trace: str,
    rules: str | None,
    marker: str | None,
    family: str | None,
    recover: bool,
    store: str | os.PathLike[str] | None,
) -> Report:
    from moeprof.analyzers.report import report
    from moeprof.traces.open import open_trace

    return report(open_trace(trace, recover=recover, store=store), rules=rules, marker=marker, marker_family=family)


def _refuse_broken(report: Report) -> None:
    errors = [finding for finding in report.findings if finding.severity == "error"]
    if errors:
        raise NothingToCompareError(
            f"the trace cannot be relied on: {errors[0].message}",
            path=report.subject.source,
            hint="capture again; --recover goes on all the same",
        )


def _day(side: Side) -> str | None:
    started = [run.manifest.started[:10] for run in side.runs if run.manifest.started]
    passes = [] if side.samples is None else [sample.started for sample in side.samples.samples]
    days = [datetime.fromtimestamp(moment, UTC).date().isoformat() for moment in passes if moment is not None]
    return max(days or started, default=None)
