"""Paths, traces and reports are taken alike; options reach what they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

import moeprof
from moeprof.analyzers.results import Report
from moeprof.traces.trace import Trace
from tests.unit.analyzers.reports import base_arm


def test_paths_and_traces_are_reported_first(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a reader and a reporter that record what they are asked for
    asked: list[object] = []
    trace = Trace("a trace", {})

    def open_trace(path: object, *, recover: bool, store: object = None) -> Trace:
        asked.append((path, recover))
        return trace

    def report_trace(one: object, **options: object) -> Report:
        assert one is trace
        asked.append(options)
        return base_arm()

    monkeypatch.setattr("moeprof.traces.open.open_trace", open_trace)
    monkeypatch.setattr("moeprof.analyzers.report.report", report_trace)
    # WHEN a path is held against a trace, and that against a report
    result = moeprof.diff(Path("folder"), trace, marker="step", recover=True)
    again = moeprof.diff(trace, base_arm())
    # THEN the path is opened, and what is no report yet is reported with the options
    options = {"rules": None, "marker": "step", "marker_family": None, "timeline": False, "ranks": False}
    assert asked == [(Path("folder"), True), options, options, {**options, "marker": None}]
    assert (result.verdict, again.verdict) == ("unchanged", "unchanged")
