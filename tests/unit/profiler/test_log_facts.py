"""What a server's log proves: on the excerpts of two real servers, and on lines made by hand."""

from __future__ import annotations

import json

import pytest

from moeprof.profiler.log_facts import LogFacts, Steps, log_facts, matches
from tests.shared import shared


def step(engine: int, index: int, *, contexts: int = 0, generations: int = 4, dummy: bool = False) -> str:
    return (
        f"(APIServer pid=1) INFO 11-30 20:46:30 [loggers.py:199] Engine {engine:03d}: Iteration({index}): {contexts} context requests, "
        f"{contexts * 9} context tokens, {generations} generation requests, {generations * 4} generation tokens, "
        f"iteration elapsed time: 38.23 ms{' (dummy)' if dummy else ''}, CPU KV cache usage: 1.0%"
    )


START, STOP = "(APIServer pid=1) INFO Starting profiler...", "(APIServer pid=1) INFO Stopping profiler..."
AUTO = "(Worker_DP0_EP0 pid=2) INFO Max profiling iterations reached. Stopping profiler..."


@pytest.mark.parametrize(
    ("arm", "backend", "gemm", "pid"),
    [("h200_base", "HUMMING", "indexed", 11788), ("h200_triton", "TRITON", None, 12888)],
)
def test_the_excerpt_of_a_real_server(arm: str, backend: str, gemm: str | None, pid: int) -> None:
    # GIVEN the log of a server with two ranks WHEN it is read THEN it proves the arm
    facts = log_facts(shared("traces", "bench", arm, "serve_excerpt.log").read_text())
    assert (facts.moe_backend, facts.humming_gemm) == (backend, gemm)
    assert (facts.all2all, facts.model_runner, facts.attention) == ("AgRsAll2AllManager", "V2", "FLASH_ATTN")
    assert (facts.world_size, dict(facts.workers)["Worker_DP0_EP0"]) == (2, pid)
    assert (facts.profiler_starts, facts.profiler_stops, facts.windows, facts.error_count) == (1, 1, ((),), 0)


def test_two_workers_on_one_line() -> None:
    # GIVEN lines that ran into one another, with colours and a progress bar
    text = (
        "\x1b[36m(Worker_DP0_EP0 pid=2)\x1b[0m (Worker_DP1_EP1 pid=3) INFO Using CPU Unquantized MoE backend\r"
        "50%|###  | 1/2\rUsing allgather_reducescatter all2all manager.(Worker_DP0_EP0 pid=2) Using MoEPrepareAndFinalizeNaiveDPEPModular"
    )
    facts = log_facts(text)
    # THEN all of it is found; with workers and no word of V2 the runner is V1
    assert (facts.moe_backend, facts.all2all) == ("CPU", "allgather_reducescatter")
    assert facts.prepare_finalize == "MoEPrepareAndFinalizeNaiveDPEPModular"
    assert facts.workers == (("Worker_DP0_EP0", 2), ("Worker_DP1_EP1", 3))
    assert facts.model_runner == "V1"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Using HUMMING Fp8 MoE backend out of potential backends: ['TRITON']", "HUMMING"),
        ("Using 'MARLIN' Mxfp4 MoE backend.", "MARLIN"),
        ("Using DEEP_GEMM_MEGA_MOE MoE backend", "DEEP_GEMM_MEGA_MOE"),
    ],
)
def test_spellings_of_the_backend(line: str, name: str) -> None:
    # WHEN a release spells the line in its way THEN the backend is found
    assert log_facts(line).moe_backend == name


def test_steps_between_start_and_stop() -> None:
    # GIVEN two engines: one line of engine 0 is missing, one of engine 1 is a dummy, two share a line
    lines = [
        step(0, 6),
        START,
        step(0, 7, contexts=1),
        step(0, 8),
        step(0, 10),
        step(1, 7),
        step(1, 8, dummy=True, generations=0) + step(1, 9),
        STOP,
        step(0, 11),
    ]
    # WHEN the log is read THEN the running index counts the missing line too
    assert log_facts("\n".join(lines)).windows == (
        (Steps(0, iterations=4, lines=3, dummy=0, contexts=1, generations=3), Steps(1, iterations=3, lines=3, dummy=1, contexts=0, generations=2)),
    )  # fmt: skip


def test_a_window_that_the_workers_close() -> None:
    # GIVEN workers that stop by themselves before the server is asked to, and a second window
    lines = [START, step(0, 7), AUTO, step(0, 8), STOP, START, step(0, 9), step(0, 10), STOP]
    facts = log_facts("\n".join(lines))
    # THEN steps after their stop do not count, and both windows are told apart
    assert [[s.iterations for s in window] for window in facts.windows] == [[1], [2]]
    assert (facts.profiler_starts, facts.profiler_stops) == (2, 2)


def test_markers() -> None:
    # WHEN the plugin reports THEN parts or reason are known; one process without markers is enough to say no
    active = "(Worker_DP0_EP0 pid=2) INFO moeprof markers: active (iter, target, draft)"
    inactive = "(Worker_DP1_EP1 pid=3) WARNING moeprof markers: not active: no runner"
    assert log_facts(active).markers == ("iter", "target", "draft")
    assert log_facts(f"{active}\n{inactive}").markers is None
    assert log_facts(f"{active}\n{inactive}").markers_reason == "no runner"
    gone = "WARNING moeprof markers: not active any more: ValueError: x"
    assert log_facts(gone).markers_reason == "ValueError: x"


def test_errors_are_kept_without_secrets() -> None:
    # GIVEN 25 lines of errors, the last with a secret THEN the last 20 are kept, and all are counted
    lines = [f"ValueError: {number}" for number in range(24)] + ["RuntimeError: HF_TOKEN=abcdefgh"]
    facts = log_facts("\n".join(["all is well", *lines]))
    assert (facts.error_count, len(facts.errors)) == (25, 20)
    assert facts.errors[-1] == "RuntimeError: HF_TOKEN=<redacted>"


def test_disturbances() -> None:
    # WHEN kernels are compiled during inference, graphs captured, a default used THEN each is told
    text = (
        "WARNING Triton kernel JIT compilation during inference: fused_moe_kernel. This causes a latency spike\n"
        "Graph capturing finished in 4 secs, took 0.5 GiB\nUsing default MoE config. Performance might be sub-optimal!"
    )
    facts = log_facts(text)
    assert (facts.jit, facts.graph_capture_s, facts.untuned) == (("fused_moe_kernel",), 4, True)


def test_an_empty_log_says_nothing() -> None:
    # GIVEN no text THEN nothing is known, and the object is JSON
    assert log_facts("") == LogFacts()
    assert json.loads(json.dumps(LogFacts().to_dict()))["moe_backend"] is None


def test_patterns_of_an_arm() -> None:
    # WHEN an arm's own patterns are looked for THEN each is answered, line by line
    assert matches("\x1b[1mone\x1b[0m\rtwo", ["^two$", "one two"]) == {"^two$": True, "one two": False}
