"""Attribution: launches belong to the iteration that launched them, with class and phase."""

from __future__ import annotations

import polars as pl
import pytest

from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.iterations import attribute
from moeprof.analyzers.markers import MarkerChoice
from moeprof.analyzers.tables import Attribution
from moeprof.errors import UsageError
from tests.builders import Event, cpu_op, graph_launch, kernel, launch, marker, rank

DECODE = "execute_context_0(0)_generation_8(32)"
GATHER = "ncclDevKernel_AllGather_RING_LL(x)"
SCATTER = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)"
GEMM = "fused_moe_kernel"
NORM = "rms_norm_kernel"
ATTENTION = "flash_fwd_kernel"


def attributed(events: list[Event], **choice: str) -> Attribution:
    return attribute(rank(events), classifier=load_classifier(), choice=MarkerChoice(**choice))


def launched(at: float, *names: str, correlation: int, gpu_at: float | None = None) -> list[Event]:
    """One call at `at` us that launches kernels of 1 us each, one after another on the device."""
    start = at + 100 if gpu_at is None else gpu_at
    call = launch(at, 1, correlation=correlation) if len(names) == 1 else graph_launch(at, 1, correlation=correlation)
    return [call, *(kernel(name, start + 2 * i, 1, correlation=correlation) for i, name in enumerate(names))]


def placed(found: Attribution) -> list[tuple[str, int | None, str | None]]:
    rows = found.launches.select("name", "iteration", pl.col("phase").cast(pl.String))
    return list(rows.iter_rows())


def test_kernels_belong_to_the_iteration_that_launched_them_however_late_they_run() -> None:
    # GIVEN two steps whose kernels all run after both steps have ended on the host
    events = [marker(DECODE, 0, 10), marker(DECODE, 20, 10)]
    events += launched(5, NORM, correlation=1, gpu_at=100)
    events += launched(12, ATTENTION, correlation=2, gpu_at=110)
    events += launched(25, NORM, correlation=3, gpu_at=120)
    # WHEN
    found = attributed(events)
    # THEN the call decides, and what comes after the marker still belongs to its iteration
    assert placed(found) == [(NORM, 0, "target"), (ATTENTION, 0, "draft"), (NORM, 1, "target")]
    assert found.family == "vllm"


def test_launch_before_the_first_marker_belongs_to_no_iteration() -> None:
    found = attributed([marker(DECODE, 10, 10), *launched(5, NORM, correlation=1), *launched(15, NORM, correlation=2)])
    assert placed(found) == [(NORM, None, None), (NORM, 0, "target")]


def test_launch_on_another_thread_belongs_to_no_iteration_and_is_counted() -> None:
    # GIVEN a copy thread beside the worker
    events = [marker(DECODE, 0, 10), *launched(2, NORM, correlation=1)]
    events += [launch(3, 1, correlation=9, tid=77), kernel("copy", 300, 1, correlation=9)]
    found = attributed(events)
    assert placed(found) == [(NORM, 0, "target"), ("copy", None, None)]
    assert [f.evidence["launches"] for f in found.findings if f.slug == "launched-by-other-threads"] == [1]


def test_training_step_owns_launches_of_every_thread_of_its_process() -> None:
    # GIVEN a backward pass on a thread of its own
    events = [marker("ProfilerStep#4", 0, 50), *launched(2, NORM, correlation=1)]
    events += [launch(20, 1, correlation=9, tid=77), kernel("backward", 300, 1, correlation=9)]
    assert placed(attributed(events)) == [(NORM, 0, "target"), ("backward", 0, "target")]


def test_drafts_run_from_the_kernel_that_prepares_them_to_the_last_layer_launch() -> None:
    # GIVEN sampling, the preparation of the drafts, two drafts as graphs with an eager kernel between, and a copy at the end
    events = [marker(DECODE, 0, 10), *launched(1, ATTENTION, GEMM, GEMM, correlation=1)]
    calls = [
        (12, (NORM,)),
        (13, ("_rejection_kernel",)),
        (14, ("_prepare_prefill_inputs_kernel",)),
        (15, (NORM, ATTENTION, GEMM, GEMM)),
        (16, ("_prepare_decode_inputs_kernel",)),
        (17, (NORM, ATTENTION, GEMM, GEMM)),
        (18, ("bfloat16_copy_kernel",)),
    ]
    for number, (at, names) in enumerate(calls, 2):
        events += launched(at, *names, correlation=number, gpu_at=1000 + 20 * at)
    found = attributed(events)
    phases = found.launches.group_by(pl.col("phase").cast(pl.String)).len().sort("phase")
    assert list(phases.iter_rows()) == [("draft", 10), ("sample", 3), ("target", 3)]


def test_gathers_of_logits_make_no_draft() -> None:
    # GIVEN a tensor-parallel head: its all-gather after the forward belongs to no layer
    events = [marker(DECODE, 0, 10), *launched(1, ATTENTION, correlation=1)]
    events += [*launched(12, GATHER, correlation=2), *launched(14, "_rejection_kernel", correlation=3)]
    assert placed(attributed(events))[1:] == [(GATHER, 0, "sample"), ("_rejection_kernel", 0, "sample")]


def test_gathers_around_experts_belong_to_the_draft() -> None:
    events = [marker(DECODE, 0, 10), *launched(1, ATTENTION, correlation=1)]
    events += launched(12, GATHER, correlation=2, gpu_at=200)
    events += launched(13, ATTENTION, correlation=3, gpu_at=210)
    events += launched(14, GATHER, correlation=4, gpu_at=220)
    events += launched(15, GEMM, correlation=5, gpu_at=230)
    events += launched(16, SCATTER, correlation=6, gpu_at=240)
    phases = [phase for _, _, phase in placed(attributed(events))]
    assert phases == ["target", "sample", "draft", "draft", "draft", "draft"]


@pytest.mark.parametrize("pair", [("Broadcast", "Reduce_Sum"), ("AllGather", "Reduce_Sum")])
def test_last_combine_of_a_draft_is_part_of_it_in_every_spelling(pair: tuple[str, str]) -> None:
    dispatch, combine = (f"ncclDevKernel_{word}_RING_LL" for word in pair)
    events = [marker(DECODE, 0, 10), *launched(1, ATTENTION, correlation=1)]
    for number, name in enumerate((dispatch, GEMM, GEMM, combine, "bfloat16_copy_kernel"), 2):
        events += launched(10 + number, name, correlation=number, gpu_at=200 + 10 * number)
    assert [phase for _, _, phase in placed(attributed(events))] == ["target", *["draft"] * 4, "sample"]


def test_nested_scopes_of_the_runner_decide_the_phase() -> None:
    # GIVEN the V1 runner's scopes after the forward
    events = [marker(DECODE, 0, 10), *launched(1, NORM, correlation=1)]
    events += [marker("gpu_model_runner: sample", 12, 4), marker("gpu_model_runner: draft", 20, 6)]
    events += [*launched(13, ATTENTION, correlation=2), *launched(21, NORM, correlation=3)]
    assert placed(attributed(events)) == [(NORM, 0, "target"), (ATTENTION, 0, "sample"), (NORM, 0, "draft")]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_scopes_of_one_extent_nest_the_same_in_any_file_order(order: tuple[int, ...]) -> None:
    # GIVEN scopes that start and end together, in some order of the file
    scopes = [marker(f"gpu_model_runner: {name}", 12, 8) for name in ("forward", "sample", "draft")]
    events = [marker(DECODE, 0, 10), *(scopes[index] for index in order), *launched(14, NORM, correlation=1)]
    # WHEN attributed THEN drafts lie in the sampling call
    assert placed(attributed(events)) == [(NORM, 0, "draft")]


@pytest.mark.parametrize("swapped", [False, True])
def test_replays_launched_at_one_time_are_held_against_their_like_in_any_file_order(swapped: bool) -> None:
    # GIVEN two replays of each step that start together, of two and of three kernels; the last step's in another order
    events = []
    for step in range(3):
        pair = [
            launched(
                100 * step + 1, *[NORM] * kernels, correlation=10 * step + kernels, gpu_at=1000 + 100 * step + kernels
            )
            for kernels in (2, 3)
        ]
        events += [
            marker(DECODE, 100 * step, 10),
            *(row for rows in (pair[::-1] if swapped and step == 2 else pair) for row in rows),
        ]
    # WHEN attributed THEN nothing falls short
    assert not attributed(events).iterations["partial"].any()


@pytest.mark.parametrize("family", ["vllm", "anchor"])
def test_a_pattern_and_another_family_exclude_each_other(family: str) -> None:
    # GIVEN a pattern beside a family that is not the user's WHEN both are asked for THEN that makes no sense
    with pytest.raises(UsageError, match="exclude each other"):
        MarkerChoice("tick", family)


def test_own_markers_come_first_and_the_innermost_range_decides() -> None:
    # GIVEN our markers around vLLM's: drafts nest in the sampling call, a dummy batch has no engine marker
    events = [
        marker("moeprof.iter#7", 0, 40),
        marker(DECODE, 2, 10),
        marker("moeprof.target", 2, 10),
        marker("moeprof.sample", 14, 24),
        marker("moeprof.draft#0", 20, 5),
        marker("moeprof.iter#8", 50, 10),
    ]
    for number, at in enumerate((1, 3, 15, 21, 30, 39.5, 52), 1):
        events += launched(at, f"kernel_{number}", correlation=number, gpu_at=100 * number)
    found = attributed(events)
    assert found.family == "moeprof"
    assert [phase for _, _, phase in placed(found)] == [
        "target", "target", "sample", "draft", "sample", "sample", "target",
    ]  # fmt: skip
    assert found.iterations["kind"].to_list() == ["decode", "idle"]


def test_kinds_of_vllm_steps() -> None:
    labels = {
        DECODE: "decode",
        "execute_context_4(256)_generation_0(0)": "prefill",
        "execute_context_1(100)_generation_3(12)": "mixed",
        "execute_context_0(0)_generation_0(0)": "idle",
        "execute_40_context_1(sq8sk8sqsq64sqsk64)_generation_8(sq32sk900sqsq128sqsk3600)": "mixed",
        "execute_context_1(888_788544)_generation_0(0)": "prefill",
    }
    found = attributed([marker(label, 10 * i, 5) for i, label in enumerate(labels)])
    assert found.iterations["kind"].to_list() == list(labels.values())


def test_counts_are_over_decode_and_else_over_the_commonest_kind_that_is_not_idle() -> None:
    idle, prefill = "execute_context_0(0)_generation_0(0)", "execute_context_4(256)_generation_0(0)"
    with_decode = attributed([marker(label, 10 * i, 5) for i, label in enumerate([idle, idle, prefill, DECODE])])
    without = attributed([marker(label, 10 * i, 5) for i, label in enumerate([idle, idle, prefill])])
    assert (with_decode.counts_over, without.counts_over) == ("decode", "prefill")
    assert without.iterations["counted"].to_list() == [False, False, True]


def test_adjacent_markers_of_one_step_number_are_one_iteration() -> None:
    found = attributed([marker("step[12]", 0, 10), marker("step[12]", 20, 5), marker("step[13]", 40, 10)])
    assert found.iterations.select("label", "start_ns", "marker_end_ns").rows() == [
        ("step[12]", 0, 25000),
        ("step[13]", 40000, 50000),
    ]


def test_equal_labels_without_a_number_count_each() -> None:
    assert attributed([marker(DECODE, 0, 10), marker(DECODE, 20, 10)]).iterations.height == 2


def test_engine_markers_are_preferred_to_a_server_loop_around_them() -> None:
    found = attributed([marker("step[DECODE bs=8]", 0, 30), marker(DECODE, 5, 10)])
    assert (found.family, found.iterations["label"].to_list()) == ("vllm", [DECODE])


def test_a_family_can_be_asked_for() -> None:
    events = [marker("step[DECODE bs=8]", 0, 30), marker(DECODE, 5, 10)]
    assert attributed(events, family="sglang").iterations["label"].to_list() == ["step[DECODE bs=8]"]
    with pytest.raises(UsageError, match="unknown marker family"):
        MarkerChoice(family="guess")


def test_a_users_marker_is_used_where_no_known_family_is() -> None:
    events = [cpu_op("engine tick 1", 0, 10), cpu_op("engine tick 2", 20, 10), *launched(22, NORM, correlation=1)]
    found = attributed(events, pattern=r"engine tick \d+")
    assert (found.family, found.iterations.height) == ("user", 2)
    assert placed(found) == [(NORM, 1, "target")]


def test_a_users_marker_that_loses_to_a_known_family_is_mentioned() -> None:
    found = attributed([marker(DECODE, 0, 10), marker("tick", 0, 10)], pattern="tick")
    assert (found.family, [f.slug for f in found.findings]) == ("vllm", ["marker-not-used"])


def test_anchor_kernels_mark_iterations_where_nothing_else_does() -> None:
    events = []
    for step in range(4):
        events += launched(100 * step, "_rejection_kernel", correlation=10 * step + 1, gpu_at=1000 + 100 * step)
        if step < 3:
            events += launched(100 * step + 5, NORM, correlation=10 * step + 2, gpu_at=1010 + 100 * step)
    found = attributed(events)
    assert (found.family, found.iterations.height) == ("anchor", 4)
    # THEN the last one, which the window cuts, is partial
    assert found.iterations["partial"].to_list() == [False, False, False, True]


def test_one_anchor_is_no_iteration() -> None:
    assert attributed(launched(1, "_rejection_kernel", correlation=1)).family is None


@pytest.mark.parametrize(("replays", "family", "iterations"), [(3, "anchor", 3), (1, None, 0)])
def test_anchors_count_by_their_launch_call(replays: int, family: str | None, iterations: int) -> None:
    # GIVEN replays of a graph that holds the anchor kernel four times
    anchors = ["_rejection_kernel"] * 4
    events = [row for n in range(replays) for row in launched(100 * n, *anchors, correlation=n + 1)]
    # WHEN attributed THEN each replay is one iteration, and a single one is none
    found = attributed(events)
    assert (found.family, found.iterations.height) == (family, iterations)


def test_markers_of_the_thread_with_most_of_them_are_used() -> None:
    events = [marker(DECODE, 0, 10), marker(DECODE, 20, 10), marker(DECODE, 5, 10, tid=99)]
    found = attributed(events)
    assert found.iterations.height == 2
    assert [f.evidence["left_out"] for f in found.findings if f.slug == "markers-on-other-threads"] == [1]


def test_launch_that_left_no_kernel_makes_its_iteration_partial() -> None:
    events = [marker(DECODE, 20 * i, 10) for i in range(3)]
    for i in range(3):
        events += launched(20 * i + 1, NORM, correlation=i + 1, gpu_at=100 + 10 * i)
    events.append(graph_launch(22, 1, correlation=50))
    found = attributed(events)
    assert found.iterations["partial"].to_list() == [False, True, False]
    assert found.counted["iteration"].to_list() == [0, 2]


def test_last_iteration_with_fewer_launch_calls_than_any_other_is_partial() -> None:
    events = [marker(DECODE, 20 * i, 10) for i in range(3)]
    for i in range(3):
        for k in range(3 if i == 0 else 2 if i == 1 else 1):
            events += launched(20 * i + 1 + k, NORM, correlation=10 * i + k + 1, gpu_at=100 + 20 * i + 2 * k)
    assert attributed(events).iterations["partial"].to_list() == [False, False, True]


def test_last_graph_replay_with_fewer_kernels_makes_its_iteration_partial() -> None:
    events = [marker(DECODE, 20 * i, 10) for i in range(3)]
    for i in range(3):
        events += launched(20 * i + 1, *[NORM] * (5 if i < 2 else 3), correlation=i + 1, gpu_at=100 + 20 * i)
    found = attributed(events)
    assert found.iterations["partial"].to_list() == [False, False, True]
    assert "3 kernels" in found.iterations["partial_reason"][2]


def test_iteration_with_less_work_in_the_middle_is_a_difference_and_stays() -> None:
    events = [marker(DECODE, 20 * i, 10) for i in range(3)]
    for i in range(3):
        events += launched(20 * i + 1, *[NORM] * (3 if i == 1 else 5), correlation=i + 1, gpu_at=100 + 20 * i)
    assert attributed(events).iterations["partial"].to_list() == [False, False, False]


@pytest.mark.parametrize(("first_us", "transient"), [(126, True), (124, False)])
def test_first_iteration_far_longer_than_the_others_is_a_transient_that_stays_in_counts(
    first_us: int, transient: bool
) -> None:
    starts = [0, first_us, first_us + 100, first_us + 200]
    found = attributed([marker(DECODE, start, 10) for start in starts])
    assert found.iterations["transient"].to_list() == [transient, False, False, False]
    assert found.iterations["counted"].all()


def test_the_transient_is_told_with_the_figures_that_were_judged() -> None:
    # GIVEN equal starts, and a first iteration whose kernels take more than five quarters of the others'
    events = []
    for step, length in enumerate((126, 100, 100, 101)):
        events += [marker(DECODE, 1000 * step, 10), launch(1000 * step, 1, correlation=step + 1)]
        events.append(kernel(NORM, 1000 * step + 100, length, correlation=step + 1))
    (told,) = [found for found in attributed(events).findings if found.slug == "start-transient"]
    # WHEN attributed THEN the kernel sum is told, not the wall time
    assert told.evidence == {"figure": "kernel_sum", "value_ns": 126_000, "median_of_others_ns": 100_000}
    assert told.message.startswith(
        "iteration 0 is a start transient: it has a kernel sum of 126.00 us, the others 100.00 us"
    )


@pytest.mark.parametrize(("first", "expected"), [(125, []), (126, ["start-transient"])])
def test_five_quarters_of_the_median_are_no_transient_yet(first: int, expected: list[str]) -> None:
    events = []
    for step, length in enumerate((first, 100, 100)):
        events += [marker(DECODE, 1000 * step, 10), launch(1000 * step, 1, correlation=step + 1)]
        events.append(kernel(NORM, 1000 * step + 100, length, correlation=step + 1))
    assert [found.slug for found in attributed(events).findings if found.slug == "start-transient"] == expected


def test_cpu_only_trace_counts_outermost_classified_operators() -> None:
    # GIVEN a wrapper that no rule knows around a collective with operators inside, and an operator that no rule knows
    events = [
        marker(DECODE, 0, 100),
        cpu_op("vllm::moe_forward", 1, 50),
        cpu_op("c10d::_allgather_base_", 2, 10),
        cpu_op("aten::copy_", 3, 2),
        cpu_op("_C::cpu_fused_moe", 20, 10),
        cpu_op("custom::thing", 60, 10),
        cpu_op("custom::inner", 61, 2),
    ]
    found = attributed(events)
    assert found.cpu_only
    rows = found.launches.select("name", pl.col("class").cast(pl.String), "gemms").rows()
    assert rows == [
        ("c10d::_allgather_base_", "all_gather", 0),
        ("_C::cpu_fused_moe", "moe_gemm", 2),
        ("custom::thing", "other", 0),
    ]


def test_trace_with_launch_calls_is_not_cpu_only() -> None:
    found = attributed([marker(DECODE, 0, 100), cpu_op("aten::mm", 1, 5), launch(2, 1, correlation=1)])
    assert not found.cpu_only
    assert found.launches.is_empty()


def test_collective_metadata_beats_the_name() -> None:
    events = [kernel("ncclDevKernel_Generic", 0, 1), kernel("ncclDevKernel_SendRecv(x)", 5, 1)]
    for event, collective in zip(events, ("_allgather_base", "all_to_allv"), strict=True):
        event["args"]["Collective name"] = collective
    found = attributed(events)
    assert found.launches["class"].cast(pl.String).to_list() == ["all_gather", "all_to_all"]


def test_without_markers_everything_is_one_window_in_phase_target() -> None:
    found = attributed(launched(1, NORM, correlation=1))
    assert (found.family, found.counts_over, placed(found)) == (None, None, [(NORM, None, "target")])
    assert found.counted.height == 1


def test_step_without_any_launch_beside_steps_that_launch_is_partial() -> None:
    # GIVEN a recovered file whose later half, launches and all, is gone; an empty step is no such case
    idle = "execute_context_0(0)_generation_0(0)"
    events = [marker(DECODE, 0, 10), marker(DECODE, 20, 10), marker(idle, 40, 10), *launched(1, NORM, correlation=1)]
    found = attributed(events)
    assert found.iterations["partial"].to_list() == [False, True, False]


def test_small_operators_of_the_last_step_tell_nothing_of_a_cut_on_a_cpu() -> None:
    events = [marker(DECODE, 0, 40), marker(DECODE, 50, 40)]
    events += [cpu_op("_C::cpu_fused_moe", 1, 2), cpu_op("aten::add", 5, 1), cpu_op("_C::cpu_fused_moe", 51, 2)]
    assert attributed(events).iterations["partial"].to_list() == [False, False]
    assert attributed(events[:-1]).iterations["partial"].to_list() == [False, True]


def test_markers_of_a_thread_that_launches_nothing_are_not_used() -> None:
    # GIVEN a thread that mirrors the worker's markers a little earlier, and more of them
    events = [marker(DECODE, 20 * i + 5, 10) for i in range(2)] + [marker(DECODE, 20 * i, 10, tid=99) for i in range(3)]
    found = attributed([*events, *launched(8, NORM, correlation=1)])
    assert found.iterations.height == 2
    assert placed(found) == [(NORM, 0, "target")]


def test_a_scope_that_ended_inside_a_later_one_does_not_come_back() -> None:
    # GIVEN the forward's scope, which ends 1 us after the sampling scope has begun
    events = [
        marker(DECODE, 0, 10),
        marker("gpu_model_runner: forward", 2, 9),
        marker("gpu_model_runner: sample", 10, 10),
        *launched(15, NORM, correlation=1),
        *launched(22, NORM, correlation=2, gpu_at=400),
    ]
    # THEN what is launched after both belongs to neither
    assert [phase for _, _, phase in placed(attributed(events))] == ["sample", "sample"]
