"""Each gate passes, fails, or has no data, on evidence made by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from moeprof.config.schema import Expect, Gates, Workload
from moeprof.profiler import gates
from moeprof.profiler.gpu_samples import SampleSummary
from moeprof.profiler.log_facts import LogFacts, Steps

WORK = Workload("decode", "decode", input_len=100, output_len=10)


@dataclass(frozen=True)
class Pass:
    raw: dict[str, Any] = field(
        default_factory=lambda: {"num_prompts": 4, "completed": 4, "total_input_tokens": 400, "total_output_tokens": 40}
    )
    failed: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Window:
    opened_at: float = 100.0
    closed_at: float = 110.0
    rank_files: tuple[str, ...] = ("a", "b")


def steps(*counts: int) -> LogFacts:
    return LogFacts(world_size=2, windows=(tuple(Steps(i, n, n, 0, 0, n) for i, n in enumerate(counts)),))


def raw(**changes: Any) -> Pass:
    return Pass({**Pass().raw, **changes})


LOG = LogFacts(moe_backends=("HUMMING",), all2all="AgRsAll2AllManager", model_runner="V2")


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        (gates.no_failed_requests([]), "no-data"),
        (gates.no_failed_requests([Pass(), Pass()]), "pass"),
        (gates.no_failed_requests([Pass(), Pass(failed=1)]), "fail"),
        (gates.no_failed_requests([raw(completed=3)]), "fail"),
        (gates.token_counts([], WORK), "no-data"),
        (gates.token_counts([Pass()], WORK), "pass"),
        (gates.token_counts([raw(total_output_tokens=None)], WORK), "no-data"),
        (gates.token_counts([Pass(), raw(total_output_tokens=39)], WORK), "fail"),
        (gates.token_counts([raw(total_output_tokens=41)], replace(WORK, ignore_eos=False)), "fail"),
        (gates.token_counts([raw(total_output_tokens=39)], replace(WORK, ignore_eos=False)), "pass"),
        (gates.token_counts([raw(total_input_tokens=401)], replace(WORK, ignore_eos=False)), "fail"),
        (gates.finite_logprobs(None), "no-data"),
        (gates.finite_logprobs([]), "no-data"),
        (gates.finite_logprobs([-0.5, 0.0]), "pass"),
        (gates.finite_logprobs([-0.5, float("nan")]), "fail"),
        (gates.finite_logprobs([float("-inf")]), "fail"),
        (gates.finite_logprobs([None]), "fail"),
        (gates.finite_logprobs([0.1]), "fail"),
        (gates.expected_backend(Expect(), LOG, {}, {}), "no-data"),
        (gates.expected_backend(Expect("humming"), LOG, None, None), "pass"),
        (gates.expected_backend(Expect("triton"), LOG, None, None), "fail"),
        (gates.expected_backend(Expect("humming"), None, None, None), "no-data"),
        (gates.expected_backend(Expect("humming"), LogFacts(), None, None), "no-data"),
        (gates.expected_backend(Expect(all2all="allgather-reducescatter"), LOG, None, None), "pass"),
        (gates.expected_backend(Expect(model_runner="V1"), LOG, None, None), "fail"),
        (gates.expected_backend(Expect(log=("a",)), LOG, {"a": True}, None), "pass"),
        (gates.expected_backend(Expect(log=("a", "b")), LOG, {"a": True}, None), "fail"),
        (gates.expected_backend(Expect(kernels={"moe_fused": 42}), LOG, None, None), "no-data"),
        (gates.expected_backend(Expect(kernels={"moe_fused": 42}), LOG, None, {"moe_fused": 42}), "pass"),
        (gates.expected_backend(Expect(kernels={"moe_fused": 42}), LOG, None, {}), "fail"),
        (gates.expected_backend(Expect("humming", kernels={"moe_fused": 42}), LOG, None, {"moe_fused": 41}), "fail"),
        (gates.expected_backend(Expect(kernels={"moe_fused": 0}), LOG, None, {}), "pass"),
        (gates.markers_present(False, None, None), "no-data"),
        (gates.markers_present(True, None, None), "no-data"),
        (gates.markers_present(True, None, "moeprof"), "pass"),
        (gates.markers_present(True, LogFacts(markers=("iter",)), "vllm"), "fail"),
        (gates.markers_present(True, LogFacts(markers=("iter",)), None), "pass"),
        (gates.markers_present(True, LogFacts(markers_reason="unknown runner"), None), "fail"),
        (gates.traces_complete(None, {}, 2, None), "no-data"),
        (gates.traces_complete(Window(), None, 2, None), "no-data"),
        (gates.traces_complete(Window(), {"a": 20, "b": 20}, 2, None), "pass"),
        (gates.traces_complete(Window(), {"a": 20, "b": 19}, 2, None), "fail"),
        (gates.traces_complete(Window(), {"a": 20, "b": 20}, 4, None), "fail"),
        (gates.traces_complete(Window(), {"a": 20}, 2, None), "fail"),
        (gates.traces_complete(Window(rank_files=()), {}, None, None), "fail"),
        (gates.traces_complete(Window(), {"a": 0, "b": 0}, 2, None), "fail"),
        (gates.traces_complete(Window(), {"a": 20, "b": 20}, None, steps(21, 19)), "pass"),
        (gates.traces_complete(Window(), {"a": 20, "b": 20}, None, steps(22, 20)), "fail"),
        (gates.traces_complete(Window(rank_files=("a",)), {"a": 20}, None, steps(20, 20)), "fail"),
        (gates.profile_apart([], Window()), "no-data"),
        (gates.profile_apart([(1.0, 2.0)], None), "no-data"),
        (gates.profile_apart([(1.0, 2.0), (3.0, 100.0)], Window()), "pass"),
        (gates.profile_apart([(3.0, 100.5), (1.0, 2.0)], Window()), "fail"),
        (gates.profile_apart([(1.0, 2.0)], Window(closed_at=99.0)), "fail"),
        (gates.steady_clocks(None, 0.05), "no-data"),
        (gates.steady_clocks(SampleSummary(0, 0, None, None, "nvidia-ml-py is not installed"), 0.05), "no-data"),
        (gates.steady_clocks(SampleSummary(5, 5, 0.05, ()), 0.05), "pass"),
        (gates.steady_clocks(SampleSummary(5, 5, 0.051, ()), 0.05), "fail"),
        (gates.no_cotenants(None, allowed=False), "no-data"),
        (gates.no_cotenants(SampleSummary(5, 5, 0.0, None), allowed=False), "no-data"),
        (gates.no_cotenants(SampleSummary(5, 5, 0.0, ()), allowed=False), "pass"),
        (gates.no_cotenants(SampleSummary(5, 5, 0.0, (7,)), allowed=False), "fail"),
        (gates.no_cotenants(SampleSummary(5, 5, 0.0, (7,)), allowed=True), "pass"),
        (gates.arms_differ({"moe_gemm": 90}, None), "no-data"),
        (gates.arms_differ({"moe_gemm": 90}, {"moe_gemm": 90, "moe_fused": 0}), "fail"),
        (gates.arms_differ({"moe_gemm": 6}, {"moe_gemm": 90}), "pass"),
    ],
)  # fmt: skip
def test_a_gate(verdict: tuple[str, str, dict[str, object]], outcome: str) -> None:
    # GIVEN evidence THEN the gate has the outcome that is due, and a sentence
    assert verdict[0] == outcome
    assert verdict[1]


def test_no_data_fails_only_where_it_is_required() -> None:
    # GIVEN a block without a probe and without GPU samples
    evidence = gates.Evidence(
        WORK, Expect("humming"), [Pass()], [(1.0, 2.0)], Window(), LOG, iterations={"a": 20, "b": 20}, ranks=2
    )
    # WHEN it is judged by the usual gates THEN it is good
    results = gates.judge(evidence, Gates())
    assert gates.outcome(results) == []
    assert [result.name for result in results if result.outcome == "no-data"] == [
        "finite-logprobs", "markers-present", "steady-clocks", "no-cotenants", "arms-differ",
    ]  # fmt: skip
    # WHEN one without data is required THEN that one stands against it
    failed = gates.outcome(gates.judge(evidence, Gates(required=("steady-clocks", "token-counts"))))
    assert [(result.name, result.outcome) for result in failed] == [("steady-clocks", "no-data")]


def test_an_arm_that_names_nothing_to_prove_cannot_fail_to_prove_it() -> None:
    # GIVEN a block of an arm whose `expect` is empty, with no server log
    evidence = gates.Evidence(WORK, Expect(), [Pass()])
    # WHEN it is judged by the usual gates THEN the result says so, and stands against nothing
    result = next(r for r in gates.judge(evidence, Gates()) if r.name == "expected-backend")
    assert (result.outcome, result.required, result.message) == ("no-data", False, "the arm names nothing to prove")
    # WHEN anything is named THEN its proof is required, and a missing log is against the block
    for named in (
        Expect("humming"),
        Expect(all2all="x"),
        Expect(model_runner="V1"),
        Expect(log=("a",)),
        Expect(kernels={"moe_fused": 0}),
    ):
        result = next(r for r in gates.judge(replace(evidence, expect=named), Gates()) if r.name == "expected-backend")
        assert (result.outcome, result.required) == ("no-data", True)
        assert result in gates.outcome([result])


@pytest.mark.parametrize(
    ("iterations", "outcome"),
    [(None, "no-data"), ({"a": 20, "b": 20}, "pass"), ({"a": 20, "b": 19}, "fail"), ({"a": 0}, "pass")],
)
def test_traces_that_a_program_wrote_itself(iterations: dict[str, int] | None, outcome: str) -> None:
    # GIVEN a program without requests and without a window WHEN its traces are judged
    evidence = gates.Evidence(None, iterations=iterations, program=True)
    # THEN ranks must agree, and only that is required of it
    required = [result for result in gates.judge(evidence, Gates()) if result.required]
    assert [(result.name, result.outcome) for result in required] == [("traces-complete", outcome)]


def test_the_first_of_two_arms_has_nothing_to_differ_from() -> None:
    # GIVEN that arms must differ
    wanted = Gates(required=("arms-differ",))
    # WHEN the other arm is not known yet THEN it is not required; known, it is
    first = gates.Evidence(WORK, kernels={"moe_gemm": 84})
    assert gates.outcome(gates.judge(first, wanted)) == []
    second = replace(first, other_kernels={"moe_gemm": 84})
    assert [r.name for r in gates.outcome(gates.judge(second, wanted))] == ["arms-differ"]


def test_the_figures_of_a_failure() -> None:
    # WHEN token counts are wrong THEN the manifest says which pass and by how much
    result = gates.judge(gates.Evidence(WORK, passes=[Pass(), raw(total_output_tokens=39)]), Gates())[1]
    assert result.to_dict() == {
        "name": "token-counts",
        "outcome": "fail",
        "required": True,
        "message": "1 of 2 passes have other token counts than the workload",
        "evidence": {"wrong": [{"pass": 1, "tokens": [400, 39], "expected": [400, 40]}]},
    }
