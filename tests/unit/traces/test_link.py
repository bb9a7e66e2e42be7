from __future__ import annotations

from typing import Any

import pytest

from moeprof.traces import schema
from moeprof.traces.trace import RankTrace
from tests.builders import Event, cpu_op, event, graph_launch, kernel, launch, marker, rank


def column(found: RankTrace, name: str) -> list[object]:
    return found.kernels[name].to_list()


def test_links_a_kernel_to_the_call_that_shares_its_correlation() -> None:
    # GIVEN two calls and two kernels, in crossed order
    found = rank(
        [
            launch(20, correlation=2),
            launch(10, correlation=1),
            kernel("b", 50, 5, correlation=2),
            kernel("a", 40, 5, correlation=1),
        ]
    )
    # WHEN the launches are numbered by start, THEN each kernel names its own
    assert found.launches["correlation"].to_list() == [1, 2]
    assert column(found, "launch") == [0, 1]
    assert column(found, "start_ns") == [40_000, 50_000]
    assert found.launches["kernel_rows"].to_list() == [1, 1]


def test_graph_replay_hangs_off_one_launch() -> None:
    # GIVEN one graph launch, three kernels and a memcpy with its id
    rows = [kernel(f"k{i}", 100 + i, 1, correlation=9) for i in range(3)]
    found = rank([graph_launch(10, correlation=9), *rows, kernel("copy", 104, 1, correlation=9, category="gpu_memcpy")])
    # THEN it is one launch with four device rows, three of them kernels
    assert found.launches.select("device_rows", "kernel_rows", "is_graph", "is_kernel_launch").rows() == [
        (4, 3, True, True)
    ]
    assert column(found, "launch") == [0, 0, 0, 0]
    assert column(found, "activity") == ["kernel", "kernel", "kernel", "memcpy"]


def test_orphans_stay_with_no_launch() -> None:
    # GIVEN a kernel whose id nobody has and one without an id
    found = rank([launch(1, correlation=1), kernel("a", 5, 1, correlation=77), kernel("b", 6, 1)])
    # THEN both are kept, unlinked
    assert column(found, "launch") == [None, None]
    assert found.launches["device_rows"].to_list() == [0]


def test_external_id_never_links() -> None:
    # GIVEN an operator whose External id equals a kernel's correlation
    op = cpu_op("aten::mm", 1, 5, **{"External id": 7})
    found = rank([op, kernel("mm", 9, 1, correlation=7)])
    # THEN the kernel is an orphan and the operator no launch
    assert column(found, "launch") == [None]
    assert found.launches.height == 0


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_calls_with_one_id_the_first_kernel_launch_wins(order: int) -> None:
    # GIVEN three calls of one id: the earliest is no kernel launch
    calls = [
        launch(1, correlation=5, name="cudaEventQuery"),
        launch(3, correlation=5, name="cuLaunchKernel", category="cuda_driver"),
        launch(8, correlation=5),
    ]
    # WHEN they stand in either order in the file
    found = rank([*calls[::order], kernel("k", 20, 1, correlation=5)])
    # THEN the kernel belongs to the first kernel launch, and the doubt is told
    assert found.launches["start_ns"][found.kernels["launch"][0]] == 3_000
    (finding,) = found.findings
    assert (finding.slug, finding.severity, finding.rank) == ("ambiguous-correlation", "warning", "rank0")
    assert finding.evidence == {"ids": 1, "first_id": "5"}


def test_shared_ids_without_gpu_work_are_no_finding() -> None:
    assert rank([launch(1, correlation=5), launch(2, correlation=5)]).findings == ()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (kernel("k", 10, -3), "negative-duration"),
        (kernel("k", 10, "9000000000000000"), "impossible-time"),
        (kernel("k", None, 3), "no-time"),
        (kernel("k", 10, None), "no-time"),
        (kernel("k", 0, 0), "zero-time"),
        (kernel("k", 0, 0, correlation=1), "zero-time"),
    ],
)
def test_unusable_rows_are_set_aside_with_a_reason(row: Event, reason: str) -> None:
    # GIVEN a good row and a bad one
    found = rank([launch(4, correlation=1), kernel("good", 20, 1), row])
    # THEN only the good one is a kernel, and the other is counted
    assert column(found, "name") == ["good"]
    assert found.invalid["reason"].to_list() == [reason]


def test_zero_time_is_valid_where_everything_starts_at_zero() -> None:
    # GIVEN a zero-length kernel at 0, launched at 0: nothing says that it is wrong
    found = rank([launch(0, correlation=1), kernel("k", 0, 0, correlation=1)])
    assert found.invalid.height == 0
    assert column(found, "duration_ns") == [0]


def test_rows_set_aside_still_count_as_records_of_their_launch() -> None:
    # GIVEN a launch whose only kernel has no usable time
    found = rank([launch(4, correlation=1), kernel("k", 0, 0, correlation=1)])
    # THEN the record was not lost
    assert found.launches["kernel_rows"].to_list() == [1]
    assert found.invalid["launch"].to_list() == [0]


def test_device_and_stream_fall_back_to_pid_and_tid() -> None:
    # GIVEN the 2021 layout: no stream in args, tid in words; and a row whose args win over pid and tid
    old = event("Kernel", "old", 1, 1, pid=2, tid="stream 7")
    new = event("kernel", "new", 5, 1, pid=9, tid=99, device=1, stream=0)
    found = rank([old, new])
    assert found.kernels.select("device", "stream").rows() == [(2, 7), (1, 0)]


def test_unreadable_pid_and_tid_leave_device_and_stream_unknown() -> None:
    found = rank([event("kernel", "k", 1, 1, pid="gpu", tid="main")])
    assert found.kernels.select("device", "stream").rows() == [(None, None)]


@pytest.mark.parametrize(
    ("category", "activity"),
    [
        *[("kernel", "kernel"), ("Kernel", "kernel"), ("gpu_memcpy", "memcpy"), ("Memcpy", "memcpy")],
        *[("gpu_memset", "memset"), ("Memset", "memset"), ("privateuse1_kernel", "kernel")],
    ],
)
def test_activity_comes_from_the_category_not_the_name(category: str, activity: str) -> None:
    found = rank([kernel("memcpy32_post", 1, 1, category=category)])
    assert column(found, "activity") == [activity]


def test_kernels_of_unknown_backends_need_device_and_stream() -> None:
    # GIVEN a row of an unknown backend without a stream
    found = rank([event("xpu_kernel", "k", 1, 1, pid=0, tid=0, device=0)])
    assert found.kernels.height == 0


@pytest.mark.parametrize("category", ["gpu_user_annotation", "cuda_sync", "overhead", "kernel", "ac2g"])
def test_rows_of_the_device_are_no_launches(category: str) -> None:
    found = rank([event(category, "x", 1, 5, pid=0, tid=7, correlation=3, stream=7, device=0)])
    assert found.launches.height == 0


@pytest.mark.parametrize("category", ["cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "privateuse1_driver"])
def test_any_host_call_with_a_correlation_is_a_launch(category: str) -> None:
    found = rank([event(category, "f", 1, 5, pid=1, tid=1, correlation=3)])
    assert found.launches.select("start_ns", "duration_ns", "end_ns", "correlation").rows() == [(1000, 5000, 6000, 3)]


def test_only_complete_events_count() -> None:
    # GIVEN flow events, which carry the kernel's category or id
    flow = event("kernel", "f", 1, None, pid=0, tid=7, ph="f", correlation=3)
    found = rank([flow, event("cuda_runtime", "s", 1, None, pid=1, tid=1, ph="s", correlation=3)])
    assert (found.kernels.height, found.launches.height) == (0, 0)


@pytest.mark.parametrize(
    ("name", "is_graph", "is_kernel_launch"),
    [
        ("cudaLaunchKernel", False, True),
        ("cudaLaunchKernelExC_v11060", False, True),
        ("cuLaunchKernelEx", False, True),
        ("cudaLaunchCooperativeKernel", False, True),
        ("hipModuleLaunchKernel", False, True),
        ("hipExtModuleLaunchKernel", False, True),
        ("cudaGraphLaunch_v10000", True, True),
        ("hipGraphLaunch", True, True),
        ("cudaGraphInstantiate", False, False),
        ("cudaLaunchHostFunc", False, False),
        ("cudaMemcpyAsync", False, False),
        ("cudaEventQuery", False, False),
    ],
)
def test_what_a_call_makes_is_read_from_its_name(name: str, is_graph: bool, is_kernel_launch: bool) -> None:
    found = rank([launch(1, correlation=1, name=name)])
    assert found.launches.select("is_graph", "is_kernel_launch").rows() == [(is_graph, is_kernel_launch)]


def test_kernels_are_sorted_by_start_then_event() -> None:
    found = rank([kernel("c", 9, 1), kernel("a", 5, 1), kernel("b", 5, 1)])
    assert column(found, "event") == [1, 2, 0]


def test_device_columns_reach_the_kernel() -> None:
    # GIVEN the args of a newer Kineto
    args: dict[str, Any] = {
        "grid": [1, 2, 3],
        "block": [4, 5, 6],
        "registers per thread": 32,
        "shared memory": 128,
        "graph id": 5,
        "graph node id": 2**63,
    }
    found = rank([kernel("k", 1, 1, **args), kernel("m", 3, 1, category="gpu_memcpy", bytes="4096")])
    columns = [
        "grid_x",
        "grid_y",
        "grid_z",
        "block_x",
        "block_y",
        "block_z",
        "registers_per_thread",
        "shared_memory",
        "bytes",
    ]
    assert found.kernels.select(columns).rows() == [(1, 2, 3, 4, 5, 6, 32, 128, None), (*[None] * 8, 4096)]
    assert found.kernels.select("graph_id", "graph_node_id").row(0) == (5, 2**63)


def test_every_table_conforms_also_when_empty() -> None:
    # GIVEN no event, and one of each
    full = [marker("m", 1, 5), launch(2, correlation=1), kernel("k", 5, 1, correlation=1)]
    for found in (rank([]), rank(full)):
        # THEN all tables have the fixed schemas
        for name in ("events", "kernels", "launches", "markers", "collectives", "tracks", "invalid"):
            assert schema.conforms(getattr(found, name), getattr(schema, name.upper())), name
