"""Arms built by hand, and the nine decode passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from moeprof.analyzers.serving.results import ArmSamples, Block, ServingSample, Workload
from moeprof.analyzers.serving.samples import sample_of
from moeprof.traces.benchmarks.reading import read_results

SAMPLES = Path(__file__).resolve().parents[4] / "samples"
LOAD = Workload(None, "vllm", 64, 8, float("inf"), 4096, 2048)


def sample(
    block: int, number: int, values: Mapping[str, float], *, workload: Workload = LOAD, failed: int = 0
) -> ServingSample:
    """Return a pass with values; some of its requests may have failed."""
    return ServingSample(
        block,
        number,
        f"b{block}p{number}",
        workload,
        values,
        completed=(workload.prompts or 0) - failed,
        failed=failed,
        speculative=False,
    )


def arm(blocks: Mapping[int, Sequence[float]], metric: str = "output_throughput", name: str = "arm") -> ArmSamples:
    """Return an arm with one metric: block to the values of its passes."""
    samples = [
        sample(block, number, {metric: value}) for block, row in blocks.items() for number, value in enumerate(row)
    ]
    return ArmSamples(name, name, tuple(samples))


def with_blocks(samples: ArmSamples, *blocks: Block) -> ArmSamples:
    """Return an arm that knows more of its blocks."""
    return replace(samples, blocks=blocks)


def decode(name: str, *blocks: int) -> ArmSamples:
    """Return an arm of the decode samples."""
    return ArmSamples(
        name,
        name,
        tuple(
            sample_of(
                read_results(SAMPLES / "decode" / f"{name}{block}_pass{number}.txt").passes[0],
                block=block,
                number=number,
                source=f"{name}{block}_pass{number}.txt",
            )
            for block in blocks
            for number in range(3)
        ),
    )
