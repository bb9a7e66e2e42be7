"""Small made-up traces with one fault each, and the values (ns) that a reader must give or the error it must raise.

``accept`` in expected.json: ``yes`` must be read; ``no`` must be refused (values hold for recovery); ``either`` is
unambiguous, so it may be read with a finding, or refused, but never read in part.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import moeprof
from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.iterations import attribute
from moeprof.analyzers.tables import COMMUNICATION, Attribution
from moeprof.errors import (
    DuplicateRankError,
    ManyDocumentsError,
    TraceEmptyError,
    TraceMalformedError,
)

FOLDER = Path(__file__).parent / "odd"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text())

REFUSED: dict[str, tuple[type[moeprof.MoeprofError], int | None, str]] = {
    "01_unescaped_quote.json": (TraceMalformedError, 8, "unescaped quote"),
    "02_backslash_path.json": (TraceMalformedError, 8, "escape"),
    "13_zero_bytes.json": (TraceEmptyError, None, "empty"),
    "20_two_documents.json.gz": (ManyDocumentsError, None, "document"),
    "56_duplicate_ranks": (DuplicateRankError, None, "host_a.1735689699.pt.trace.json"),
}
RECOVERABLE = ("01_unescaped_quote.json", "02_backslash_path.json")


class Subject:
    """One odd trace read, reported and attributed."""

    def __init__(self, name: str, *, recover: bool = False) -> None:
        self.trace = moeprof.open_trace(FOLDER / name, recover=recover)
        self.report = moeprof.report(self.trace)
        self.json: dict[str, Any] = self.report.to_dict()
        self.attributions: list[Attribution] = [attribute(rank, classifier=load_classifier()) for rank in self.trace]

    def launches(self) -> pl.DataFrame:
        return pl.concat([attribution.launches for attribution in self.attributions])

    def kernels(self) -> pl.DataFrame:
        return self.launches().filter(pl.col("activity") == "kernel").sort("start_ns", "event")

    def findings(self, slug: str) -> list[moeprof.Finding]:
        return [finding for finding in self.report.findings if finding.slug == slug]

    def time(self, figure: str) -> int | None:
        values = [rank["time_ns"][figure] for rank in self.json["ranks"]]
        return None if None in values else sum(values)


def _evidence(slug: str, key: str) -> Callable[[Subject], Any]:
    def read(subject: Subject) -> Any:
        return sum(int(str(finding.evidence[key])) for finding in subject.findings(slug))

    return read


def _classes(subject: Subject) -> dict[str, int]:
    return dict(subject.launches().group_by(pl.col("class").cast(pl.String)).len().iter_rows())


def _per_iteration(subject: Subject, value: pl.Expr) -> list[int]:
    grouped = subject.kernels().group_by("iteration").agg(value.alias("value")).sort("iteration")
    return grouped["value"].to_list()


def _busy_by_device(subject: Subject) -> dict[str, int]:
    grouped = subject.kernels().group_by("device").agg(pl.col("duration_ns").sum()).sort("device")
    return {str(device): duration for device, duration in grouped.iter_rows()}


def _steady_communication(subject: Subject) -> int:
    (attribution,) = subject.attributions
    steady = attribution.iterations.filter(~pl.col("transient"))["iteration"]
    kernels = subject.kernels().filter(
        pl.col("iteration").is_in(steady.to_list()), pl.col("class").is_in(COMMUNICATION)
    )
    return int(str(kernels["duration_ns"].median())[:-2])


def _owner(subject: Subject) -> dict[str, str]:
    """The operator that launched each kernel, by time on the launch's thread: never by an id of another space."""
    (rank,) = list(subject.trace)
    owners = {}
    for name, launch in rank.kernels.select("name", "launch").iter_rows():
        call = rank.launches.row(launch, named=True)
        host = rank.events.filter(
            pl.col("category").cast(pl.String) == "cpu_op",
            pl.col("track") == call["track"],
            pl.col("start_ns") <= call["start_ns"],
            pl.col("start_ns") + pl.col("duration_ns") >= call["end_ns"],
        )
        owners[name] = str(host["name"][0])
    return owners


READ: dict[str, Callable[[Subject], Any]] = {
    "kernels": lambda s: sum(rank["coverage"]["kernels"] for rank in s.json["ranks"]),
    "kernel_sum_ns": lambda s: s.time("kernel_sum"),
    "gpu_busy_ns": lambda s: s.time("gpu_busy"),
    "gpu_span_ns": lambda s: s.time("wall"),
    "iterations": lambda s: sum(rank["iterations"]["total"] for rank in s.json["ranks"]),
    "dropped": _evidence("dropped-event", "count"),
    "instant_events": lambda s: sum(
        int((rank.events["ph"].cast(pl.String).is_in(["i", "I"])).sum()) for rank in s.trace
    ),
    "invalid": lambda s: sum(rank["coverage"]["invalid"] for rank in s.json["ranks"]),
    "overlaps": _evidence("same-stream-overlap", "overlaps"),
    "gaps_ns": lambda s: (s.kernels()["start_ns"] - s.kernels()["end_ns"].shift(1)).drop_nulls().to_list(),
    "ranks": lambda s: len(s.json["ranks"]),
    "arrival_skew_ns": lambda s: s.json["across_ranks"]["skew"]["arrival_ns"]["median"],
    "end_skew_ns": lambda s: s.json["across_ranks"]["skew"]["end_ns"]["median"],
    "cpu_threads": lambda s: sum(rank.events["track"].n_unique() for rank in s.trace),
    "kernel_sum_clipped_ns": _evidence("impossible-duration", "kernel_sum_clipped_ns"),
    "suspicious": lambda s: len(s.findings("impossible-duration")),
    "busy_by_device_ns": _busy_by_device,
    "streams": lambda s: s.kernels().select("device", "stream").n_unique(),
    "host_launches": lambda s: sum(int((rank.launches["device_rows"] > 0).sum()) for rank in s.trace),
    "linked_kernels": lambda s: sum(rank["coverage"]["linked"] for rank in s.json["ranks"]),
    "launch_time_ns": lambda s: sum(int(rank.launches["duration_ns"].sum()) for rank in s.trace),
    "graph_launches": lambda s: sum(int(rank.launches["is_graph"].sum()) for rank in s.trace),
    "graph_launches_without_kernels": lambda s: sum(
        len(rank.launches.filter("is_graph", pl.col("kernel_rows") == 0)) for rank in s.trace
    ),
    "reliable": lambda s: not any(finding.severity == "error" for finding in s.report.findings),
    "owner": _owner,
    "comm_kernels": lambda s: len(s.kernels().filter(pl.col("class").is_in(COMMUNICATION))),
    "collectives": lambda s: {k: v for k, v in _classes(s).items() if k in COMMUNICATION},
    "pairs": lambda s: sum(rank["pairs"]["ag_rs"]["total"] for rank in s.json["ranks"]),
    "with_size": lambda s: sum(len(rank.collectives.filter(pl.col("in_elements").is_not_null())) for rank in s.trace),
    "kernels_per_iteration": lambda s: _per_iteration(s, pl.len()),
    "sum_per_iteration_ns": lambda s: _per_iteration(s, pl.col("duration_ns").sum()),
    "steady_iterations": lambda s: s.attributions[0].iterations.filter(~pl.col("transient")).height,
    "comm_median_ns": _steady_communication,
    "iterations_by_pid": lambda s: {
        rank.tracks.filter(pl.col("track").is_in(rank.markers["track"].to_list()))["process"][0]: len(found.iterations)
        for rank, found in zip(s.trace, s.attributions, strict=True)
    },
}


def _check(subject: Subject, expected: dict[str, Any]) -> None:
    for key, value in expected.items():
        if key == "accept":
            continue
        if key == "rank":
            (rank,) = subject.json["ranks"]
            assert rank["rank"] == (None if value is None else f"rank{value}"), key
            assert bool(subject.findings("rank-unknown")) is (value is None)
        elif key == "classes":
            assert {class_: _classes(subject).get(class_, 0) for class_ in value} == value, key
        else:
            assert READ[key](subject) == value, key


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if expected["accept"] != "no"])
def test_odd_trace_gives_its_values(name: str) -> None:
    subject = Subject(name)
    _check(subject, EXPECTED[name])
    if EXPECTED[name]["accept"] == "either":
        assert subject.findings(
            {
                "04": "control-character",
                "05": "invalid-utf8",
                "07": "non-finite-number",
                "08": "trailing-comma",
            }[name[:2]]
        )


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if expected["accept"] == "no"])
def test_odd_trace_is_refused_with_its_cause(name: str) -> None:
    error, line, cause = REFUSED[name]
    with pytest.raises(error) as caught:
        moeprof.open_trace(FOLDER / name)
    assert caught.value.exit_code == 2
    assert cause in caught.value.message
    assert name in str(caught.value.path)
    if line is not None:
        assert caught.value.line == line


@pytest.mark.parametrize("name", RECOVERABLE)
def test_recovery_drops_the_bad_events_only(name: str) -> None:
    subject = Subject(name, recover=True)
    _check(subject, EXPECTED[name])
    assert all(rank.partial for rank in subject.trace)


def test_two_documents_are_refused_in_recovery_too() -> None:
    with pytest.raises(ManyDocumentsError):
        moeprof.open_trace(FOLDER / "20_two_documents.json.gz", recover=True)


def test_an_export_without_kernels_says_that_no_gpu_activity_was_recorded() -> None:
    subject = Subject("62_nsys_no_kernels.sqlite")
    (finding,) = subject.findings("no-gpu-activity")
    assert "no GPU activity recorded" in finding.message
    assert subject.findings("tables-missing")


def test_a_string_that_is_not_in_the_file_keeps_its_row() -> None:
    subject = Subject("68_nsys_missing_string.sqlite")
    assert "<string 4242>" in subject.kernels()["name"].to_list()
    (finding,) = subject.findings("missing-strings")
    assert finding.evidence["ids"] == ["4242"]


def test_ranges_that_overlap_are_reported() -> None:
    (finding,) = Subject("65_nsys_start_end_ranges.sqlite").findings("markers-overlap")
    assert finding.evidence == {"overlapping": 1, "markers": 2}


def test_open_array_says_that_its_end_mark_is_missing() -> None:
    assert Subject("10_array_no_bracket.json").findings("missing-end-mark")


def test_traces_without_any_timed_event_say_so() -> None:
    for name in ("14_metadata_only.json", "16_memory_only.json"):
        assert Subject(name).findings("no-timed-event")


def test_library_annotations_are_listed_and_are_no_iterations() -> None:
    (finding,) = Subject("49_library_markers.json").findings("no-iterations")
    assert finding.evidence["annotations"]


def test_capture_sidecar_is_named_and_left_out() -> None:
    (finding,) = Subject("59_capture_sidecar").findings("left-out")
    assert "capture_traces" in finding.message


def test_steps_are_labelled_by_their_number_and_counted() -> None:
    (attribution,) = Subject("74_step_numbers_from_3.json").attributions
    assert attribution.iterations["label"].to_list() == ["ProfilerStep#3", "ProfilerStep#4"]


def test_every_expected_case_is_there() -> None:
    kept = {path.name for path in FOLDER.iterdir()} - {"expected.json"}
    assert kept == set(EXPECTED)
