"""What a report says of a rank as a whole: its unit of launches and its coverage."""

from __future__ import annotations

import pytest

from moeprof.analyzers.report import report
from tests.builders import Event, cpu_op, kernel, launch, marker, trace

DECODE = "execute_context_0(0)_generation_8(32)"
COPY = [
    launch(10, correlation=1, name="cudaMemcpyAsync"),
    kernel("Memcpy HtoD", 20, 5, correlation=1, category="gpu_memcpy"),
]
NORM = [launch(10, correlation=1), kernel("rms_norm_kernel", 20, 5, correlation=1)]


@pytest.mark.parametrize(
    ("events", "unit"), [(COPY, "kernel"), (NORM, "kernel"), ([cpu_op("vllm::cpu_fused_moe", 10, 5)], "operator")]
)
def test_only_a_trace_without_any_device_row_counts_operators(events: list[Event], unit: str) -> None:
    # GIVEN a capture of copies, of kernels, of operators WHEN reported THEN it says what its launches are
    result = report(trace({"rank0": [marker(DECODE, 0, 50), *events]}))
    assert [rank.launch_unit for rank in result.ranks] == [unit]


@pytest.mark.parametrize(
    ("before", "outside"), [([], None), ([marker(DECODE, 15, 50)], 1), ([marker(DECODE, 5, 50)], 0)]
)
def test_nothing_is_outside_of_iterations_that_are_not_there(before: list[Event], outside: int | None) -> None:
    # GIVEN a kernel without any marker, before a marker, inside one WHEN reported THEN no data is not 0
    result = report(trace({"rank0": [*before, *NORM]}))
    assert [rank.coverage.outside_iterations for rank in result.ranks] == [outside]
