"""Observations for tests: a run with structure, three passes of one point in two blocks, and an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from moeprof.analyzers.accuracy.results import Evaluation
from moeprof.analyzers.gates.observation import Count, Observation, Structure
from moeprof.analyzers.serving.results import ArmSamples, ServingSample, Workload

LAUNCHES = {
    "moe_fused/target": 42,
    "all_gather/draft": 3,
    "reduce_scatter/draft": 3,
    "moe_gemm/draft": 6,
    "copy/sample": 5,
}
VALUES = {"output_throughput": 1000.0, "median_tpot_ms": 10.0, "median_ttft_ms": 500.0}
NOISE = (0.99, 1.0, 1.01, 0.995, 1.005, 1.0)


def count(value: int, *others: int) -> Count:
    """Return a count with further values seen."""
    return Count(value, tuple(sorted({value, *others})))


def structure(launches: Mapping[str, int | Count] = LAUNCHES, ranks: Sequence[str] = ("rank0", "rank1")) -> Structure:
    """Return a structure with these launches."""
    counts = {key: value if isinstance(value, Count) else count(value) for key, value in launches.items()}
    pairs = {"ag_rs/per_iteration": count(3), "ag_rs/draft": count(3), "ag_rs/target": count(0)}
    backends = {"moe_fused/target": ("MegaMoE",)}
    return Structure("decode", "kernel", "NVIDIA H200", tuple(ranks), 20, counts, pairs, backends)


def sample(block: int, number: int, factor: float, values: Mapping[str, float] = VALUES) -> ServingSample:
    """Return a pass whose values are worse by a factor: throughput falls, times rise."""
    worse = {k: v / factor if k == "output_throughput" else v * factor for k, v in values.items()}
    workload = Workload(client="vllm", prompts=64, concurrency=8, input_tokens=640, output_tokens=640)
    return ServingSample(block, number, f"{block}.{number}", workload, worse, completed=64, failed=0)


def passes(factor: float = 1.0, values: Mapping[str, float] = VALUES, *, n: int = 6) -> ArmSamples:
    """Return `n` passes, worse by a factor, with a little noise."""
    made = tuple(sample(0, number, factor * NOISE[number], values) for number in range(n))
    return ArmSamples("base", "base", made)


def run(**changes: object) -> Observation:
    """Return a good run, changed in some fields."""
    good = Observation(
        arm="base",
        source="base",
        structure=structure(),
        samples=passes(),
        evaluations=(Evaluation("gsm8k", 1319, (1209,), "eval.json", (0,), 5),),
        traced=True,
    )
    return replace(good, **changes)  # type: ignore[arg-type]  # each names a field
