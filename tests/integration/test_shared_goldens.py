"""Reports of real traces against golden values that were counted apart from this program.

The full traces are large and live beside the project; cut ones of the same runs are in samples/ and are always tested.
"""

from __future__ import annotations

from typing import Any

import pytest

import moeprof
from tests.shared import shared

pytestmark = pytest.mark.filterwarnings("error")

H200_TIMES = {
    "base": {
        "dp0": (163730073, 149216974, 149541149, 272447345, 12166501),
        "dp1": (180980016, 166066711, 166379601, 285455411, 12101102),
    },
    "triton": {
        "dp0": (157931779, 144237881, 144487409, 284717446, 15111906),
        "dp1": (131310173, 118278004, 118535922, 280184064, 15185727),
    },
    "mega_derived": {
        "dp0": (153423985, 138206100, 138530275, 272447345, 12166501),
        "dp1": (169144708, 153769571, 154082461, 285455411, 12101102),
    },
}
H200_COUNTS = {
    # arm: iterations, kernels, phases (target, draft, sample), MoE GEMM, fused, gathers and scatters as (target, draft)
    "base": (22, 36387, (1286, 354, 14), (84, 6), (0, 0), (42, 3)),
    "triton": (18, 32202, (1412, 363, 14), (84, 6), (0, 0), (42, 3)),
    "mega_derived": (22, 29919, (992, 354, 14), (0, 6), (42, 0), (0, 3)),
}
OVERLAPS = {"base": (1158, 1187), "triton": (1737, 1718), "mega_derived": (1158, 1187)}


def per_iteration(rank: dict[str, Any], class_: str, phase: str) -> int:
    rows = [row for row in rank["counts"] if (row["class"], row["phase"]) == (class_, phase)]
    return rows[0]["per_iteration"] if rows else 0


def kernels_in(rank: dict[str, Any], phase: str) -> int:
    return sum(row["per_iteration"] for row in rank["kernels"] if row["phase"] == phase)


@pytest.mark.parametrize("arm", sorted(H200_COUNTS))
def test_h200_arms_give_their_golden_counts(arm: str) -> None:
    result = moeprof.report(moeprof.open_trace(shared("traces/h200", arm))).to_dict()
    iterations, kernels, phases, gemms, fused, collectives = H200_COUNTS[arm]
    assert [rank["rank"] for rank in result["ranks"]] == [
        "dp0_pp0_tp0_dcp0_ep0_rank0",
        "dp1_pp0_tp0_dcp0_ep1_rank0",
    ]
    for rank in result["ranks"]:
        assert rank["iterations"] == {
            **rank["iterations"],
            "marker": "vllm",
            "total": iterations,
            "decode": iterations,
            "prefill": 0,
            "mixed": 0,
            "idle": 0,
            "partial": 0,
        }
        assert rank["counts_over"] == "decode"
        assert (rank["coverage"]["kernels"], rank["coverage"]["linked"], rank["coverage"]["unlinked"]) == (
            kernels,
            kernels,
            0,
        )
        assert rank["coverage"]["unclassified_launches"] == 0
        assert tuple(kernels_in(rank, phase) for phase in ("target", "draft", "sample")) == phases
        for class_, (target, draft) in {
            "moe_gemm": gemms,
            "moe_fused": fused,
            "all_gather": collectives,
            "reduce_scatter": collectives,
        }.items():
            assert (per_iteration(rank, class_, "target"), per_iteration(rank, class_, "draft")) == (target, draft)
            assert per_iteration(rank, class_, "sample") == 0
        pairs = rank["pairs"]["ag_rs"]
        assert (pairs["target"], pairs["draft"], pairs["sample"]) == (*collectives, 0)
        assert pairs["per_iteration"] == sum(collectives)
        assert pairs["total"] == sum(collectives) * iterations
        assert (pairs["unmatched_ag"], pairs["unmatched_rs"], pairs["equivalents"], pairs["constant"]) == (
            0,
            0,
            0,
            True,
        )
        gemm_pairs = rank["pairs"]["moe_gemm"]
        assert (gemm_pairs["target"], gemm_pairs["draft"], gemm_pairs["unmatched"]) == (gemms[0] // 2, gemms[1] // 2, 0)
    assert result["across_ranks"]["agree"] is True


@pytest.mark.parametrize("arm", sorted(H200_TIMES))
def test_h200_arms_give_their_golden_times(arm: str) -> None:
    result = moeprof.report(moeprof.open_trace(shared("traces/h200", arm))).to_dict()
    for rank, overlaps in zip(result["ranks"], OVERLAPS[arm], strict=True):
        kernel_sum, kernel_busy, gpu_busy, wall, period = H200_TIMES[arm][rank["rank"][:3]]
        times = rank["time_ns"]
        assert times["kernel_sum"] == kernel_sum
        assert times["kernel_busy"] == kernel_busy
        assert times["gpu_busy"] == gpu_busy
        assert times["wall"] == wall
        assert times["idle"] == wall - gpu_busy
        assert rank["device"] == "NVIDIA H200"
        found = {f["slug"]: f for f in result["findings"] if f["rank"] == rank["rank"]}
        assert found["same-stream-overlap"]["evidence"]["overlaps"] == overlaps
        assert "start-transient" in found
        # The golden period is a median over all periods; ours leaves the start transient out, so it may only be near.
        assert abs(rank["per_iteration_ns"]["wall"]["median"] - period) < 0.01 * period


def test_h200_base_names_iteration_19_as_a_difference_and_not_a_loss() -> None:
    result = moeprof.report(moeprof.open_trace(shared("traces/h200", "base"))).to_dict()
    deviating = [f for f in result["findings"] if f["slug"] == "iteration-deviates"]
    assert len(deviating) == 2
    for finding in deviating:
        assert "19" in finding["message"]
        assert "_apply_write_kernel" in finding["message"]
        assert "launch is missing too" in finding["message"]


def test_eager_ranks_with_unequal_tokens_pair_broadcast_and_reduce() -> None:
    result = moeprof.report(moeprof.open_trace(shared("traces/h200", "eager_cut"))).to_dict()
    expected = [(3156, 220319935, 218710086, 218814793, 313507334), (3157, 11393935, 11369390, 11482667, 314175593)]
    for rank, (kernels, kernel_sum, kernel_busy, gpu_busy, wall) in zip(result["ranks"], expected, strict=True):
        assert rank["iterations"]["decode"] == 2
        assert rank["iterations"]["partial"] == 0
        pairs = rank["pairs"]["ag_rs"]
        assert (pairs["target"], pairs["draft"], pairs["per_iteration"], pairs["equivalents"]) == (42, 3, 45, 45)
        assert (pairs["unmatched_ag"], pairs["unmatched_rs"]) == (0, 0)
        assert (per_iteration(rank, "moe_gemm", "target"), per_iteration(rank, "moe_gemm", "draft")) == (84, 6)
        assert (per_iteration(rank, "broadcast", "target"), per_iteration(rank, "reduce", "draft")) == (42, 3)
        assert rank["coverage"]["kernels"] == kernels
        times = rank["time_ns"]
        assert (times["kernel_sum"], times["kernel_busy"], times["gpu_busy"], times["wall"]) == (
            kernel_sum,
            kernel_busy,
            gpu_busy,
            wall,
        )


CPU = {
    # arm: AG ops, AG/RS pairs, fused MoE operators (both GEMMs), mega_moe; each (target, draft)
    "base": ((9, 9), (3, 3), (3, 3), (0, 0)),
    "mega": ((0, 9), (0, 3), (0, 3), (3, 0)),
}


@pytest.mark.parametrize("arm", sorted(CPU))
def test_cpu_arms_count_outermost_operators(arm: str) -> None:
    result = moeprof.report(moeprof.open_trace(shared("traces/cpu", arm))).to_dict()
    gathers, pairs, gemms, fused = CPU[arm]
    for rank in result["ranks"]:
        assert rank["iterations"]["decode"] == rank["iterations"]["total"] == 8
        assert rank["iterations"]["partial"] == 0
        for phase, index in (("target", 0), ("draft", 1)):
            assert per_iteration(rank, "all_gather", phase) == gathers[index]
            assert per_iteration(rank, "reduce_scatter", phase) == pairs[index]
            assert rank["pairs"]["ag_rs"][phase] == pairs[index]
            assert per_iteration(rank, "moe_gemm", phase) == gemms[index]
            assert rank["pairs"]["moe_gemm"][phase] == gemms[index]
            assert per_iteration(rank, "moe_fused", phase) == fused[index]
            assert per_iteration(rank, "attention", phase) == (4, 3)[index]
            assert per_iteration(rank, "all_reduce", phase) == (1, 2)[index]
        assert set(rank["time_ns"].values()) == {None}
        assert rank["coverage"]["kernels"] == 0


def test_cpu_sums_of_the_fused_operators() -> None:
    sums = {
        "base": {"_C::cpu_fused_moe": (3500546, 4270917)},
        "mega": {"_C::cpu_fused_moe": (1336985, 1392251), "moeprof_demo::mega_moe": (36649826, 37067711)},
    }
    for arm, by_name in sums.items():
        result = moeprof.report(moeprof.open_trace(shared("traces/cpu", arm))).to_dict()
        for name, expected in by_name.items():
            for rank, total in zip(result["ranks"], expected, strict=True):
                assert sum(row["kernel_sum"] for row in rank["kernels"] if row["name"] == name) == total


def test_cpu_window_with_prefill_and_empty_steps() -> None:
    trace = moeprof.open_trace(shared("traces/cpu", "base_idle"))
    result = moeprof.report(trace).to_dict()
    for rank in result["ranks"]:
        kinds = {kind: rank["iterations"][kind] for kind in ("total", "decode", "prefill", "mixed", "idle", "partial")}
        assert kinds == {"total": 50, "decode": 46, "prefill": 2, "mixed": 0, "idle": 2, "partial": 0}
        assert rank["pairs"]["ag_rs"]["per_iteration"] == 6
    left_out = [f for f in result["findings"] if f["slug"] == "left-out"]
    assert any("vm_23383.async_llm.1796069428328030820.pt.trace.json.gz" in f["message"] for f in left_out)


def test_diff_of_base_and_derived_mega_says_the_claim() -> None:
    diff = moeprof.diff(str(shared("traces/h200", "base")), str(shared("traces/h200", "mega_derived"))).to_dict()
    rows = {(row["class"], row["phase"]): row for row in diff["structure"]}
    gone, came = rows["moe_gemm", "target"], rows["moe_fused", "target"]
    assert (gone["base"], gone["candidate"], gone["change"]) == (84, 0, "removed")
    assert (came["base"], came["candidate"], came["change"]) == (0, 42, "added")
    assert diff["pairs"] == {"ag_rs": {"base": 45, "candidate": 3}, "moe_gemm": {"base": 45, "candidate": 3}}
    assert all(row["change"] == "same" for (_, phase), row in rows.items() if phase != "target")
    assert diff["verdict"] == "changed"
    text = "\n".join(diff["summary"])
    assert "84 -> 0" in text
    assert "0 -> 42" in text
    assert "45 -> 3" in text


def test_diff_of_base_and_triton_keeps_communication_and_names_the_backends() -> None:
    diff = moeprof.diff(str(shared("traces/h200", "base")), str(shared("traces/h200", "triton"))).to_dict()
    rows = {(row["class"], row["phase"]): row for row in diff["structure"]}
    assert {
        row["change"] for (class_, _), row in rows.items() if class_ in ("all_gather", "reduce_scatter", "moe_gemm")
    } == {"same"}
    assert diff["pairs"]["ag_rs"] == {"base": 45, "candidate": 45}
    text = "\n".join(diff["summary"])
    assert "HUMMING -> Triton" in text
    assert "communication: unchanged" in text
    came = {row["name"] for row in diff["kernels"] if row["base"] == 0 and row["candidate"]}
    went = {row["name"] for row in diff["kernels"] if row["candidate"] == 0 and row["base"]}
    assert any(name.startswith("fused_moe_kernel") for name in came)
    assert any("humming<" in name for name in went)


def test_diff_of_cpu_arms() -> None:
    diff = moeprof.diff(str(shared("traces/cpu", "base")), str(shared("traces/cpu", "mega"))).to_dict()
    assert diff["pairs"]["ag_rs"] == {"base": 6, "candidate": 3}
    rows = {(row["class"], row["phase"]): (row["base"], row["candidate"]) for row in diff["structure"]}
    assert rows["moe_gemm", "target"] == (3, 0)
    assert rows["moe_gemm", "draft"] == (3, 3)
    assert rows["moe_fused", "target"] == (0, 3)


@pytest.mark.parametrize("arm", ["h200/base", "cpu/mega", "public/hta/with_gpu_user_annotation", "odd/55_no_rank.json"])
def test_diff_of_a_thing_with_itself_is_unchanged(arm: str) -> None:
    path = str(shared("traces", *arm.split("/")))
    assert moeprof.diff(path, path).verdict == "unchanged"
