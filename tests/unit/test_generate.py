"""The generator of benchmark inputs writes traces that are what they claim to be."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.generate import create


@pytest.mark.parametrize("layout", ["v211", "v213"])
@pytest.mark.parametrize(("mode", "calls"), [("eager", 637), ("graph", 4)])
def test_an_iteration_has_the_kernels_of_a_decode_step(tmp_path: Path, layout: str, mode: str, calls: int) -> None:
    # GIVEN the smallest trace of a layout and a mode: one iteration
    target = tmp_path / "trace.json"
    size, events = create(target, size=2000, layout=layout, mode=mode, stacks=False)
    # WHEN it is read
    rows = json.loads(target.read_bytes())["traceEvents"]
    # THEN it holds 42 + 3 MoE layers, launched one by one or by graphs, and its size is what was said
    found = Counter(row.get("cat") for row in rows)
    gemms = sum("grouped_gemm" in row["name"] for row in rows)
    assert (size, events) == (target.stat().st_size, len(rows))
    assert (found["kernel"], found["cuda_runtime"], found["user_annotation"], gemms) == (637, calls, 1, 90)


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    # GIVEN two traces of the same arguments and one of another seed
    files = [tmp_path / name for name in ("a.json.gz", "b.json.gz", "c.json.gz")]
    for file, seed in zip(files, (1, 1, 2), strict=True):
        create(file, size=2000, layout="v211", mode="eager", stacks=True, seed=seed)
    # WHEN their bytes are compared
    first, second, third = (file.read_bytes() for file in files)
    # THEN the first two are equal, the third is not
    assert first == second
    assert first != third
