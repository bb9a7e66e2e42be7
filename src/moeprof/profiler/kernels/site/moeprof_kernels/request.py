"""What is asked of the program: a JSON file that moeprof writes, and the answer that it reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Shape:
    """One MoE layer as one rank sees it.

    Attributes:
        hidden: Width of a token.
        intermediate: Width of an expert.
        experts: Experts held by the rank.
        top_k: Experts that each token goes to.
        weights: ``bf16`` or ``fp8_block`` (128 x 128 blocks).
    """

    hidden: int
    intermediate: int
    experts: int
    top_k: int
    weights: str


@dataclass(frozen=True)
class Request:
    """One arm.

    Attributes:
        backend: ``torch`` (grouped GEMM of torch), else a value of vLLM's ``--moe-backend``.
        shape: The layer.
        batches: Tokens that enter the layer, one measurement each.
        runs: Launches of the layer per batch under the profiler.
        seed: For weights, tokens and routing.
        driver: ``nsight-python``, ``ncu`` or ``none`` (build and launch once, measure nothing).
        prefix: Path prefix for the files of nsight-python.
        metrics: Names of metrics to collect.
    """

    backend: str
    shape: Shape
    batches: list[int]
    runs: int
    seed: int
    driver: str
    prefix: str
    metrics: list[str]


def read(path: str) -> Request:
    """Read a request."""
    value = json.loads(Path(path).read_text(encoding="utf-8"))
    return Request(**{**value, "shape": Shape(**value["shape"])})


def dump(request: Request) -> str:
    """Return a request as JSON."""
    return json.dumps(asdict(request), indent=1, sort_keys=True)


def range_name(batch: int) -> str:
    """Return the name of the NVTX range around one launch of the layer."""
    return f"moeprof.layer batch={batch}"
