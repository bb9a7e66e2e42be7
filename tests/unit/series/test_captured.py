"""Captured blocks as the launcher stores them: times, warm-ups, plans; compared arm against arm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from moeprof import diff
from moeprof.series.side import sides
from moeprof.store.folder import Store
from tests.unit.store.runs import clock, manifest


def result(rate: float, *, concurrency: int = 8, prompts: int = 64) -> dict[str, object]:
    """Return what the built-in client writes."""
    return {
        "backend": "vllm",
        "num_prompts": prompts,
        "request_rate": "inf",
        "max_concurrency": concurrency,
        "duration": 2048 / rate,
        "completed": prompts,
        "failed": 0,
        "total_input_tokens": 4096,
        "total_output_tokens": 2048,
        "output_throughput": rate,
        "median_ttft_ms": 1000 / rate,
    }


def block(
    store: Store,
    arm: str,
    number: int,
    rates: Sequence[float],
    at: float,
    *,
    plan: str | None = "aba",
    print_: str = "f",
) -> None:
    """Store a block: a warm-up that does not count, and timed passes one after another."""
    with store.begin(arm, number) as writer:
        (writer.path / "bench" / "warmup0.json").write_text(json.dumps(result(1.0)))
        passes = []
        for place, rate in enumerate(rates):
            name = f"c8-pass{place}.json"
            (writer.path / "bench" / name).write_text(json.dumps(result(rate)))
            passes.append({"file": f"bench/{name}", "client": "builtin", "at": [at + 10 * place, at + 10 * place + 9]})
        writer.commit(
            manifest(arm, number, plan=plan, fingerprint=print_, passes=tuple(passes), workload={"name": "chat"})
        )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", clock=clock(step_s=1))


def test_a_plan_is_compared_as_a_whole(store: Store) -> None:
    # GIVEN an A/B/A as captured, and an older run of the base arm on another version
    block(store, "base", 0, (50.0, 51.0, 49.0), 0, print_="old")
    block(store, "base", 0, (100.0, 101.0, 99.0), 1000)
    block(store, "mega", 1, (120.0, 121.0, 119.0), 2000)
    block(store, "base", 2, (100.5, 99.5, 100.2), 3000)
    # WHEN the arms are compared THEN the plan's blocks count, warm-ups do not, and the label is that of the design
    found = diff("base", "mega", store=store.root)
    rows = {row.metric: row for row in found.serving}
    throughput = rows["output_throughput"]
    assert throughput.base.values == (100.0, 101.0, 99.0, 100.5, 99.5, 100.2)
    assert (throughput.label, throughput.verdict, throughput.workload) == ("A/B/A complete", "improved", "chat c8")
    assert rows["median_ttft_ms"].verdict == "improved"
    assert (found.base.runs, found.candidate.runs, found.verdict) == (2, 1, "improved")


def test_a_block_that_ran_again_counts_once(store: Store) -> None:
    # GIVEN a plan whose first block was captured twice THEN the newer one counts
    block(store, "base", 0, (90.0, 91.0, 92.0), 0)
    block(store, "base", 0, (100.0, 101.0, 99.0), 1000)
    block(store, "mega", 1, (120.0, 121.0, 119.0), 2000)
    base, _ = sides("base", "mega", store.root)
    assert base.samples is not None
    assert [sample.values["output_throughput"] for sample in base.samples.samples] == [100.0, 101.0, 99.0]
    assert [sample.started for sample in base.samples.samples] == [1000.0, 1010.0, 1020.0]


def test_one_run_by_its_name(store: Store) -> None:
    # GIVEN two base blocks WHEN one is named THEN only its passes count
    block(store, "base", 0, (100.0, 101.0, 99.0), 1000)
    block(store, "base", 2, (100.5, 99.5, 100.2), 3000)
    name = store.runs("base")[0].name
    one, both = sides(name, "base", store.root)
    assert one.samples is not None
    assert both.samples is not None
    assert (len(one.samples.samples), len(both.samples.samples)) == (3, 6)
