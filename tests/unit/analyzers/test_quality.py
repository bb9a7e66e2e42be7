"""Findings about the quality of a capture."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from moeprof.analyzers.quality import quality_findings
from moeprof.analyzers.tables import ATTRIBUTED, ITERATIONS, Attribution
from moeprof.findings import Finding
from moeprof.traces.schema import (
    COLLECTIVES,
    EVENTS,
    INVALID,
    KERNELS,
    LAUNCHES,
    MARKERS,
    TRACKS,
    Schema,
    conforms,
    empty,
)
from moeprof.traces.trace import RankTrace, TraceMetadata
from tests.shared import shared

Row = dict[str, object]


def _table(rows: Iterable[Row], schema: Schema, **defaults: object) -> pl.DataFrame:
    """Fill a frame of a schema; Enum columns take the words that occur."""
    full = [{**dict.fromkeys(schema), **defaults, **row} for row in rows]
    loose = {name: pl.String if dtype is pl.Enum else dtype for name, dtype in schema.items()}
    frame = pl.DataFrame(full, schema=loose)
    words = [name for name, dtype in schema.items() if dtype is pl.Enum]
    frame = frame.with_columns(
        pl.col(name).cast(pl.Enum(frame[name].drop_nulls().unique(maintain_order=True).to_list())) for name in words
    )
    assert conforms(frame, schema)
    return frame


def _kernel(start: int, end: int, name: str = "k", **columns: object) -> Row:
    return {"name": name, "start_ns": start, "end_ns": end, "duration_ns": end - start, **columns}


def _call(start: int, **columns: object) -> Row:
    return {"start_ns": start, "end_ns": start + 1, "duration_ns": 1, **columns}


def _rank_trace(
    kernels: Iterable[Row] = (),
    calls: Iterable[Row] = (),
    events: Iterable[Row] = (),
    invalid: Iterable[Row] = (),
    markers: int = 0,
    raw: dict[str, object] | None = None,
) -> RankTrace:
    gpu: Row = {"activity": "kernel", "device": 0, "stream": 7}
    numbered = [{"event": number, **row} for number, row in enumerate(kernels)]
    linked = pl.Series([row.get("launch") for row in numbered], dtype=pl.UInt32)
    launches = []
    for number, call in enumerate(calls):
        rows = int((linked == number).sum())
        launches.append({"launch": number, "event": 100_000 + number, "device_rows": rows, "kernel_rows": rows, **call})
    call_defaults: Row = {"name": "cudaLaunchKernel", "track": 0, "is_graph": False, "is_kernel_launch": True}
    timed = {"ph": "X", "category": "cpu_op", "name": "op", "track": 0, "start_ns": 0, "duration_ns": 1}
    return RankTrace(
        key="rank0",
        source="rank0.json",
        events=_table(({"event": n, **timed, **row} for n, row in enumerate(events)), EVENTS),
        kernels=_table(numbered, KERNELS, **gpu),
        launches=_table(launches, LAUNCHES, **call_defaults),
        markers=_table(({"marker": n, "event": n, "name": "m"} for n in range(markers)), MARKERS),
        collectives=empty(COLLECTIVES),
        tracks=empty(TRACKS),
        invalid=_table(({**gpu, **row} for row in invalid), INVALID),
        metadata=TraceMetadata(raw=raw or {}),  # type: ignore[arg-type]  # raw is JSON
        event_counts={},
    )


def _attribution(
    trace: RankTrace, starts: Iterable[int] = (), *, labels: Iterable[str] = (), classes: dict[str, str] | None = None
) -> Attribution:
    """Cut the host timeline at the starts, as attribution does: a launch belongs to the last start before its call."""
    begins = [*starts]
    names = [*labels] or ["execute"] * len(begins)
    iterations = _table(
        (
            {"iteration": n, "label": label, "start_ns": start, "marker_end_ns": start + 1, "next_start_ns": after}
            for n, (start, after, label) in enumerate(zip(begins, [*begins[1:], None], names, strict=False))
        ),
        ITERATIONS,
        track=0,
        partial=False,
        transient=False,
        counted=True,
    )
    calls = trace.launches.select("launch", launch_start_ns="start_ns")
    rows = trace.kernels.with_columns(pl.col("name", "activity").cast(pl.String)).join(calls, on="launch", how="left")
    spans = iterations.select("iteration", launch_start_ns="start_ns")
    known = rows.filter(pl.col("launch_start_ns").is_not_null()).sort("launch_start_ns")
    owned = known.join_asof(spans, on="launch_start_ns") if begins else known.with_columns(iteration=None)
    rows = pl.concat([owned, rows.filter(pl.col("launch_start_ns").is_null())], how="diagonal_relaxed")
    rows = rows.with_columns(pl.col("name").replace_strict(classes or {}, default="elementwise").alias("class"))
    attributed = _table(rows.sort("start_ns", "event").select(*(c for c in ATTRIBUTED if c in rows.columns)).to_dicts(),
                        ATTRIBUTED)  # fmt: skip
    return Attribution("rank0", "vllm" if begins else None, False, "decode" if begins else None, iterations, attributed)


def _found(trace: RankTrace, attribution: Attribution, slug: str) -> list[Finding]:
    return [finding for finding in quality_findings(trace, attribution) if finding.slug == slug]


def _only(trace: RankTrace, attribution: Attribution, slug: str) -> Finding:
    (finding,) = _found(trace, attribution, slug)
    assert finding.rank == "rank0"
    return finding


def _three_iterations(*, kernel: bool, call: bool) -> tuple[RankTrace, Attribution]:
    """Three iterations of two launches; in the second, the second kernel or its call may be absent."""
    calls: list[Row] = []
    kernels: list[Row] = []
    for number in range(3):
        for position, name in enumerate(("first", "second")):
            is_odd = (number, position) == (1, 1)
            start = 100 * number + 10 * position
            if call or not is_odd:
                if kernel or not is_odd:
                    kernels.append(_kernel(start + 5, start + 8, name, launch=len(calls)))
                calls.append(_call(start))
    trace = _rank_trace(kernels, calls, events=[{}])
    return trace, _attribution(trace, (0, 100, 200))


def test_a_clean_rank_gives_no_finding() -> None:
    # GIVEN three equal iterations
    # WHEN quality is judged
    # THEN there is nothing to say
    trace, attribution = _three_iterations(kernel=True, call=True)
    assert quality_findings(trace, attribution) == ()


def test_a_kernel_gone_with_its_launch_is_a_difference() -> None:
    # GIVEN an iteration without a kernel that the others have, and without its launch
    trace, attribution = _three_iterations(kernel=False, call=False)
    # WHEN quality is judged
    finding = _only(trace, attribution, "iteration-deviates")
    # THEN it is a note that names the kernel
    assert finding.severity == "note"
    assert finding.message == (
        "iteration 1 has 1 kernel instead of 2 (without 1 x second; its launch is missing too: a difference, not a"
        " loss)"
    )
    assert _found(trace, attribution, "launches-without-kernels") == []


def test_a_kernel_gone_while_its_launch_is_there_is_lost() -> None:
    # GIVEN an iteration with a launch whose kernel has no record
    trace, attribution = _three_iterations(kernel=False, call=True)
    # WHEN quality is judged
    deviates = _only(trace, attribution, "iteration-deviates")
    lost = _only(trace, attribution, "launches-without-kernels")
    # THEN both findings warn
    assert deviates.severity == lost.severity == "warning"
    assert deviates.message.endswith("(without 1 x second; 1 launch on record left no kernel: a lost record)")
    assert lost.message == (
        "1 of 6 kernel launches left no kernel record (cudaLaunchKernel); 0 of them at the end of the window"
    )


def test_a_graph_replay_with_fewer_kernels_is_a_warning() -> None:
    # GIVEN one graph launch per iteration, the last of which made one kernel less
    calls = [_call(100 * n, name="cudaGraphLaunch", is_graph=True) for n in range(3)]
    kernels = [_kernel(100 * n + 10 * k, 100 * n + 10 * k + 5, f"k{k}", launch=n) for n in range(3) for k in range(4)]
    trace = _rank_trace(kernels[:-1], calls)
    attribution = _attribution(trace, (0, 100, 200))
    # WHEN quality is judged
    replay = _only(trace, attribution, "graph-replay-differs")
    deviates = _only(trace, attribution, "iteration-deviates")
    # THEN the replay is named, and the iteration deviates for that reason
    assert replay.severity == deviates.severity == "warning"
    assert replay.message == (
        "1 graph replay of 3 differ from their like: graph launch 0 of iteration 2: 3 kernels instead of 4"
    )
    assert deviates.message == (
        "iteration 2 has 3 kernels instead of 4 (without 1 x k3; the kernels of its graph launches differ)"
    )


def test_a_kernel_gone_from_a_graph_is_no_difference_of_eager_launches() -> None:
    # GIVEN a graph of two kernels and a silent launch; in the second iteration one kernel and that call are gone
    calls: list[Row] = []
    kernels: list[Row] = []
    for number in range(3):
        names = ("first",) if number == 1 else ("first", "second")
        kernels += [_kernel(100 * number + 20, 100 * number + 30, name, launch=len(calls)) for name in names]
        calls.append(_call(100 * number, is_graph=True))
        if number != 1:
            calls.append(_call(100 * number + 5))
    trace = _rank_trace(kernels, calls)
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace, (0, 100, 200)), "iteration-deviates")
    # THEN as many calls as kernels are gone, and it is a warning all the same
    assert finding.severity == "warning"
    assert "the kernels of its graph launches differ" in finding.message


def test_graph_replays_of_other_labels_are_not_compared() -> None:
    # GIVEN replays with different kernel counts in iterations with different labels
    calls = [_call(100 * n, name="cudaGraphLaunch", is_graph=True) for n in range(2)]
    trace = _rank_trace([_kernel(5, 6, launch=0), _kernel(105, 106, launch=1), _kernel(107, 108, launch=1)], calls)
    attribution = _attribution(trace, (0, 100), labels=("generation_1", "generation_2"))
    # WHEN quality is judged
    # THEN nothing is said about replays
    assert _found(trace, attribution, "graph-replay-differs") == []


def test_graph_launches_without_kernels_are_an_error() -> None:
    # GIVEN three graph launches without a GPU row, one of copies alone, and an eager kernel
    calls = [_call(100 * n, name="cudaGraphLaunch", is_graph=True) for n in range(3)]
    copies = _call(350, name="cudaGraphLaunch", is_graph=True, device_rows=2, kernel_rows=0)
    trace = _rank_trace([_kernel(410, 473, launch=4)], [*calls, copies, _call(400)])
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace), "graph-launches-without-kernels")
    assert _found(trace, _attribution(trace), "launches-without-kernels") == []
    # THEN the trace is called not reliable
    assert finding.severity == "error"
    assert finding.message == (
        "3 of 4 graph launches left no kernel record: busy, idle and per-iteration counts are not reliable"
    )
    assert finding.evidence["reliable"] is False


@pytest.mark.parametrize(
    ("first_call", "place"),
    [
        (50, "1 of them start before the first launch on record"),
        (500, "all of them start before the first launch on record"),
    ],
)
def test_orphans_are_counted_and_placed(first_call: int, place: str) -> None:
    # GIVEN an orphan at the start, one later, and a linked kernel that takes half of the time
    rows = [_kernel(10, 20, "early"), _kernel(60, 70, "late"), _kernel(510, 530, "linked", launch=0)]
    trace = _rank_trace(rows, [_call(first_call)])
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace), "kernels-without-launch")
    # THEN count, share, names and place are told
    message = f"2 of 3 kernels (50.00 % of kernel time) have no launch on record (early, late); {place}"
    assert (finding.severity, finding.message) == ("warning", message)


def test_orphans_without_any_launch_say_so() -> None:
    # GIVEN a file of kernels alone
    trace = _rank_trace([_kernel(10, 20), _kernel(30, 40, activity="memcpy")])
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace), "kernels-without-launch")
    # THEN copies are counted apart
    assert finding.message == (
        "1 of 1 kernel (100.00 % of kernel time) and 1 copy have no launch on record (k); no launch call is on record"
        " at all"
    )


def test_a_launch_whose_kernel_was_set_aside_is_told_once() -> None:
    # GIVEN a launch whose only kernel row is invalid
    invalid: list[Row] = [{"name": "a", "reason": "zero-time", "launch": 1}]
    trace = _rank_trace([_kernel(0, 1, launch=0)], [_call(0), _call(5)], invalid=invalid, events=[{}])
    # WHEN quality is judged
    # THEN the row is invalid, and not lost as well
    assert [finding.slug for finding in quality_findings(trace, _attribution(trace))] == ["invalid-rows"]


def test_messages_cut_long_names_and_evidence_keeps_them() -> None:
    # GIVEN an orphan with a name of 500 characters
    trace = _rank_trace([_kernel(0, 1, "x" * 500)])
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace), "kernels-without-launch")
    # THEN the message stays readable
    assert "x" * 36 + "…" + "x" * 23 in finding.message
    assert "x" * 37 not in finding.message
    assert finding.evidence["names"] == ["x" * 500]


def test_invalid_rows_are_counted_by_reason() -> None:
    # GIVEN rows set aside for two reasons
    invalid: list[Row] = [{"name": name, "reason": reason} for name, reason in [("a", "zero-time"), ("b", "zero-time"),
                                                                     ("b", "negative-duration")]]  # fmt: skip
    trace = _rank_trace([_kernel(0, 1, launch=0)], [_call(0)], invalid=invalid)
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace), "invalid-rows")
    # THEN reasons and names are told
    assert finding.message == "3 GPU rows set aside as invalid (1 negative-duration, 2 zero-time): a, b"
    assert finding.severity == "warning"


def test_an_impossible_duration_is_named_with_its_stream_and_the_clipped_sum() -> None:
    # GIVEN a kernel of 1.6 s that runs past the next two kernels of its stream
    rows = [
        _kernel(1_000_000, 1_040_000, "a"),
        _kernel(1_050_000, 1_601_050_000, "copy"),
        _kernel(1_100_000, 1_150_000, "b"),
        _kernel(1_200_000, 1_210_000, "c"),
    ]
    trace = _rank_trace(rows)
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace), "impossible-duration")
    # THEN raw and clipped sums stand side by side
    wanted = ("suspicious", "name", "device", "stream", "duration_ns", "kernel_sum_ns", "kernel_sum_clipped_ns")
    assert [finding.evidence[key] for key in wanted] == [1, "copy", 0, 7, 1_600_000_000, 1_600_100_000, 150_000]


@pytest.mark.parametrize(
    "later",
    [
        pytest.param([(100, 150), (200, 2_000_000)], id="only one later kernel ends inside"),
        pytest.param([(100, 150), (200, 1_000_000)], id="one later kernel ends with it"),
        pytest.param([(100, 150)], id="only one later kernel"),
        pytest.param([(100, 150, 8), (200, 250, 8)], id="on another stream"),
        pytest.param([(1_000_000, 1_000_050), (1_000_060, 1_000_090)], id="after its end"),
    ],
)
def test_a_long_kernel_that_outlasts_less_than_two_is_not_impossible(later: list[tuple[int, ...]]) -> None:
    # GIVEN a long kernel among short ones
    short = [_kernel(-100 + 10 * n, -95 + 10 * n) for n in range(9)]
    rest = [_kernel(row[0], row[1], stream=row[2] if len(row) > 2 else 7) for row in later]
    trace = _rank_trace([*short, _kernel(0, 1_000_000, "long"), *rest])
    # WHEN quality is judged
    # THEN it is left alone
    assert _found(trace, _attribution(trace), "impossible-duration") == []


@pytest.mark.parametrize(("duration", "found"), [(500, 0), (501, 1)])
def test_only_more_than_a_hundred_medians_are_impossible(duration: int, found: int) -> None:
    # GIVEN a kernel that outlasts two others, among kernels of 5 ns
    short = [_kernel(start, start + 5) for start in (-30, -20, -10, 100, 200)]
    trace = _rank_trace([*short, _kernel(0, duration, "long")])
    # WHEN quality is judged
    # THEN a hundred times the median is still possible
    assert len(_found(trace, _attribution(trace), "impossible-duration")) == found


def test_same_stream_overlaps_are_counted_once_per_kernel() -> None:
    # GIVEN overlaps of 27 and 5 (inside an earlier kernel that is not the one just before), and other streams
    rows = [
        _kernel(1000, 1040),
        _kernel(1013, 1043),
        _kernel(1015, 1016),
        _kernel(1020, 1025),
        _kernel(1000, 1040, stream=8),
        _kernel(1000, 1040, device=1),
        _kernel(1010, 1030, activity="memcpy"),
    ]
    trace = _rank_trace(rows)
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace), "same-stream-overlap")
    # THEN kernels of one (device, stream) are compared, copies are not
    assert finding.severity == "note"
    assert (finding.evidence["overlaps"], finding.evidence["overlap_ns"]) == (3, 27 + 1 + 5)


def test_touching_and_empty_kernels_do_not_overlap() -> None:
    # GIVEN a kernel of no length at the end of another, and one inside another
    trace = _rank_trace([_kernel(1000, 1040), _kernel(1040, 1040), _kernel(1020, 1020), _kernel(1040, 1080)])
    # WHEN quality is judged
    # THEN no overlap is reported
    assert _found(trace, _attribution(trace), "same-stream-overlap") == []


def test_a_kernel_before_its_launch_violates_causality() -> None:
    # GIVEN one kernel that starts 7 ns before its launch call, and one that starts with it
    trace = _rank_trace([_kernel(93, 120, launch=0), _kernel(200, 220, launch=1)], [_call(100), _call(200)])
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace), "causality")
    # THEN only the first is counted
    assert (finding.severity, finding.evidence["kernels"]) == ("warning", 1)
    assert finding.evidence["greatest_lead_ns"] == 7


@pytest.mark.parametrize(
    ("start", "duration", "severity", "iterations"),
    [
        (-40, 30, "note", []),
        (0, 0, "warning", [0]),
        (130, 5, "warning", [1]),
        (-40, 45, "warning", [0]),
        (90, 20, "warning", [0, 1]),
        (500, 10, "note", []),
    ],
)
def test_profiler_overhead_is_placed_in_iterations(
    start: int, duration: int, severity: str, iterations: list[int]
) -> None:
    # GIVEN one overhead event, and iterations from 0 and 100; the last one launches until 150
    trace = _rank_trace(
        [_kernel(5, 6, launch=0), _kernel(155, 156, launch=1)],
        [_call(0), _call(150)],
        events=[{"category": "overhead", "start_ns": start, "duration_ns": duration}],
    )
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace, (0, 100)), "profiler-overhead")
    # THEN it is a warning where it falls into a counted iteration
    assert (finding.severity, finding.evidence["iterations"]) == (severity, iterations)
    assert finding.evidence["time_ns"] == duration


@pytest.mark.parametrize(("phase", "instant"), [("M", 0), ("i", 4)])
def test_a_file_without_a_timed_event_says_what_it_holds(phase: str, instant: int) -> None:
    # GIVEN four events that do not last
    trace = _rank_trace(events=[{"ph": phase, "start_ns": 5, "duration_ns": None}] * 4)
    # WHEN quality is judged
    findings = quality_findings(trace, _attribution(trace))
    # THEN that is the one finding, with the number of instant events
    assert [finding.slug for finding in findings] == ["no-timed-event"]
    assert findings[0].evidence == {"events": 4, "instant_events": instant}


def test_host_events_without_kernels_are_no_gpu_activity() -> None:
    # GIVEN host events and a marker, and nothing launched
    trace = _rank_trace(events=[{}, {}], markers=1)
    # WHEN quality is judged
    findings = quality_findings(trace, _attribution(trace, (0,)))
    # THEN GPU times have no data, and the window is empty
    assert [(finding.slug, finding.severity) for finding in findings] == [
        ("empty-window", "warning"),
        ("no-gpu-activity", "warning"),
    ]


def test_copies_without_kernels_are_told() -> None:
    # GIVEN one memcpy and a host event
    trace = _rank_trace([_kernel(5, 9, activity="memcpy", launch=0)], [_call(0, is_kernel_launch=False)], events=[{}])
    # WHEN quality is judged
    finding = _only(trace, _attribution(trace), "no-gpu-activity")
    # THEN the message does not say that there is nothing
    assert finding.message == "no kernel recorded, only 1 copy or memset"


def test_work_before_the_first_iteration_is_outside() -> None:
    # GIVEN one kernel of four launched before the first marker, and an orphan
    calls = [_call(start) for start in (-10, 5, 15, 25)]
    rows = [_kernel(30 + n, 31 + n, launch=n) for n in range(4)]
    trace = _rank_trace([*rows, _kernel(90, 91)], calls)
    # WHEN quality is judged with and without iterations
    finding = _only(trace, _attribution(trace, (0, 20)), "outside-iterations")
    # THEN the orphan does not count, and without iterations nothing is outside
    assert (finding.severity, finding.evidence["launches"], finding.evidence["of_launches"]) == ("note", 1, 5)
    assert _found(trace, _attribution(trace), "outside-iterations") == []


@pytest.mark.parametrize(("duration", "severity"), [(5, "note"), (6, "warning")])
def test_unclassified_time_above_a_twentieth_is_a_warning(duration: int, severity: str) -> None:
    # GIVEN an unclassified kernel of 5 or 6 ns beside 95 ns
    trace = _rank_trace([_kernel(0, 95, "gemm", launch=0), _kernel(100, 100 + duration, "odd", launch=1)],
                        [_call(0), _call(1)])  # fmt: skip
    attribution = _attribution(trace, classes={"odd": "other"})
    # WHEN quality is judged
    finding = _only(trace, attribution, "unclassified")
    # THEN the share decides
    assert finding.severity == severity
    assert (finding.evidence["launches"], finding.evidence["names"]) == (1, ["odd"])


def test_derived_and_cut_files_are_named() -> None:
    # GIVEN a file that says that it was derived and cut
    trace = _rank_trace(raw={"moeprof_derived": {"from": "base"}, "moeprof_cut": "2 iterations"})
    # WHEN quality is judged
    findings = quality_findings(trace, _attribution(trace))
    # THEN both are told
    assert [(f.slug, f.severity) for f in findings if f.slug.endswith("trace")] == [
        ("derived-trace", "warning"),
        ("cut-trace", "note"),
    ]


def _measured(path: Path) -> tuple[RankTrace, list[int]]:
    """Read a measured trace with nothing of ours: rows, launch calls, overhead, and the starts of its iterations."""
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    timed = [event for event in events if event.get("ph") == "X" and isinstance(event["ts"], Decimal)]
    for event in timed:
        event["start_ns"], event["duration_ns"] = int(event["ts"] * 1000), int(event["dur"] * 1000)
        event["end_ns"] = event["start_ns"] + event["duration_ns"]
    keys = ("name", "start_ns", "duration_ns", "end_ns")
    host = [event for event in timed if event.get("cat") in ("cuda_runtime", "cuda_driver")]
    host.sort(key=lambda event: event["start_ns"])
    number = {event["args"]["correlation"]: n for n, event in enumerate(host)}
    activity = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
    rows = [
        {
            **{key: event[key] for key in keys},
            "activity": activity[event["cat"]],
            "device": event["args"]["device"],
            "stream": event["args"]["stream"],
            "launch": number.get(event["args"]["correlation"]),
        }
        for event in timed
        if event.get("cat") in activity
    ]
    calls = [
        {
            **{key: event[key] for key in keys},
            "is_graph": event["name"] == "cudaGraphLaunch",
            "is_kernel_launch": event["name"].startswith(("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch")),
        }
        for event in host
    ]
    kernels_of = [0] * len(host)
    for row in rows:
        launch = row["launch"]
        if row["activity"] == "kernel" and isinstance(launch, int):
            kernels_of[launch] += 1
    for call, count in zip(calls, kernels_of, strict=True):
        call["kernel_rows"] = call["device_rows"] = count
    overhead = [
        {"category": "overhead", "start_ns": event["start_ns"], "duration_ns": event["duration_ns"]}
        for event in timed
        if event.get("cat") == "overhead"
    ]
    markers = [event for event in timed if event.get("cat") == "user_annotation"]
    starts = sorted(event["start_ns"] for event in markers if event["name"].startswith("execute_context_"))
    rows.sort(key=lambda row: row["start_ns"])
    return _rank_trace(rows, calls, events=overhead), starts


@pytest.mark.parametrize(
    ("arm", "rank", "overlaps", "slow", "deviating"),
    [
        ("base", "dp0_pp0_tp0_dcp0_ep0_rank0", 1158, [0, 11], [19]),
        ("base", "dp1_pp0_tp0_dcp0_ep1_rank0", 1187, [0, 11], [19]),
        ("triton", "dp0_pp0_tp0_dcp0_ep0_rank0", 1737, [0, 10], []),
        ("triton", "dp1_pp0_tp0_dcp0_ep1_rank0", 1718, [0, 10], []),
        ("mega_derived", "dp0_pp0_tp0_dcp0_ep0_rank0", 1158, [0, 11], [19]),
        ("mega_derived", "dp1_pp0_tp0_dcp0_ep1_rank0", 1187, [0, 11], [19]),
    ],
)
def test_measured_traces_give_their_published_findings(
    arm: str, rank: str, overlaps: int, slow: list[int], deviating: list[int]
) -> None:
    # GIVEN a measured rank
    path = shared("traces", "h200", arm, f"{rank}.pt.trace.json.gz")
    trace, starts = _measured(path)
    # WHEN quality is judged
    found = {finding.slug: finding for finding in quality_findings(trace, _attribution(trace, starts))}
    # THEN overlaps, profiler cost and the one deviating iteration are told, and nothing else is amiss
    assert found.pop("same-stream-overlap").evidence["overlaps"] == overlaps
    assert found.pop("profiler-overhead").evidence["iterations"] == slow
    if deviating:
        finding = found.pop("iteration-deviates")
        assert finding.severity == "note"
        assert "1 x _apply_write_kernel; its launch is missing too: a difference, not a loss" in finding.message
        cases = finding.evidence["iterations"]
        assert isinstance(cases, list)
        assert [case["iteration"] for case in cases if isinstance(case, dict)] == deviating
    assert found == {}
