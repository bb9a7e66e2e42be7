"""From manifests in a store to the environment of a diff: labels, verdict and exit code."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import moeprof
from moeprof.cli import main
from moeprof.findings import JsonValue
from moeprof.series.environment import flags, record
from moeprof.store.folder import Store
from moeprof.store.run import Run
from tests.unit.store.runs import manifest

_GPU = {"index": 0, "name": "NVIDIA H200", "uuid": "GPU-1", "memory_mib": 143771, "driver_version": "580"}
_VERSIONS: dict[str, JsonValue] = {"vllm": "0.26.0", "torch": "2.11", "moeprof": "1.0", "triton": None}
_DECODE = Path("samples/decode")


def block(store: Store, arm: str, number: int, files: str, **changes: object) -> Run:
    """Store a captured block with the three decode passes of a name."""
    with store.begin(arm, number) as writer:
        for index in range(3):
            shutil.copy(_DECODE / f"{files}_pass{index}.txt", writer.path / "bench" / f"pass{index}.txt")
        values: dict[str, object] = {
            "plan": "aba",
            "fingerprint": "f",
            "argv": ("vllm", "serve", "m", "--seed", "0", "--port", str(8000 + number), "--moe-backend", arm),
            "versions": _VERSIONS,
            "hardware": {"gpus": [_GPU, _GPU], "cpus": 64, "host": f"host{number}"},
            "git": {"revision": "abc", "dirty": False},
            "workload": {"seed": 0},
            "started": f"2026-11-30T2{number}:00:00Z",
            "ended": f"2026-11-30T2{number}:30:00Z",
            "passes": tuple(
                {"file": f"bench/pass{index}.txt", "at": [100.0 * number + 10 * index, 100.0 * number + 10 * index + 9]}
                for index in range(3)
            ),
            "extra": {"own": ["flags.moe-backend"], "client": {"name": "vllm-rs"}},
            **changes,
        }
        return writer.commit(manifest(arm, number, **values))


def aba(root: Path, **changes: dict[str, object]) -> Path:
    """Store A/B/A, with the manifests of some blocks changed: a0, b1, a2."""
    store = Store(root)
    for name, arm, files in (("a0", "base", "base0"), ("b1", "mega", "mega1"), ("a2", "base", "base2")):
        block(store, arm, int(name[1]), files, **changes.get(name, {}))
    return root


def run(*argv: str) -> tuple[int, str, str]:
    """Call the program."""
    out, err = io.StringIO(), io.StringIO()
    return main(list(argv), out, err), out.getvalue(), err.getvalue()


def test_arms_that_differ_only_in_what_is_theirs_are_complete(tmp_path: Path) -> None:
    # GIVEN an A/B/A whose arms differ in their back end, and blocks in ports and hosts
    result = moeprof.diff("base", "mega", store=aba(tmp_path))
    # THEN it is comparable, and what differs is listed without weight
    assert result.verdict != "not_comparable"
    assert {(row.key, row.matters, row.own) for row in result.environment} == {
        ("flags.moe-backend", False, True),
        ("hardware.host", False, False),
    }
    labels = {row.metric: row.label for row in result.serving}
    assert labels["output_throughput"] == "A/B/A complete"


def test_another_version_is_not_comparable_unless_allowed(tmp_path: Path) -> None:
    # GIVEN a candidate of another vLLM
    store = str(aba(tmp_path, b1={"versions": {**_VERSIONS, "vllm": "0.27.0"}}))
    # WHEN compared THEN the code is 2, the error names key and cure, and no figure is judged
    code, out, err = run("diff", "base", "mega", "--store", store, "--format", "json")
    assert code == 2
    assert "versions.vllm (0.26.0 against 0.27.0)" in err and "--allow-environment versions.vllm" in err
    told = json.loads(out)
    assert told["verdict"] == "not_comparable"
    assert {row["label"] for row in told["serving"]} == {"not comparable"}
    assert {row["reason"] for row in told["serving"]} == {"fingerprint"}
    assert not [claim for claim in told["claims"] if claim["kind"] == "sentence"]
    # AND allowed, it is compared, with a warning
    code, out, err = run(
        "diff", "base", "mega", "--store", store, "--format", "json", "--allow-environment", "versions"
    )
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["verdict"] != "not_comparable"
    assert "environment-allowed" in {finding["slug"] for finding in told["findings"]}


def test_a_return_block_that_differs_is_no_return_block(tmp_path: Path) -> None:
    # GIVEN a second base block from another revision
    store = aba(tmp_path, a2={"git": {"revision": "def", "dirty": False}})
    # WHEN compared THEN nothing can be; allowed, it is still no A/B/A
    assert moeprof.diff("base", "mega", store=store).verdict == "not_comparable"
    allowed = moeprof.diff("base", "mega", store=store, allow_environment=["git"])
    assert allowed.verdict != "not_comparable"
    assert {row.label for row in allowed.serving} == {"A/B only"}


def test_text_and_markdown_show_what_differs(tmp_path: Path) -> None:
    # GIVEN a candidate of another vLLM WHEN shown THEN the page has the keys, and the words escape nothing harmful
    store = str(aba(tmp_path, b1={"versions": {**_VERSIONS, "vllm": "0.27.0|\x1b[2J"}}))
    for fmt in ("text", "markdown"):
        _, out, _ = run("diff", "base", "mega", "--store", store, "--format", fmt)
        assert "Environment: what differs" in out and "versions.vllm" in out and "\x1b" not in out


def test_an_ingested_arm_tells_nothing_and_is_compared(tmp_path: Path) -> None:
    # GIVEN the samples' store, which was ingested WHEN compared THEN nothing differs, and it is said that nothing is known
    result = moeprof.diff("base", "mega", store="samples/store")
    assert result.environment == ()
    assert "environment-unknown" in {finding.slug for finding in result.findings}


def test_clocks_are_the_medians_within_the_timed_passes(tmp_path: Path) -> None:
    # GIVEN samples of a block: slow while it loads, at full speed within its passes
    found = block(Store(tmp_path), "base", 0, "base0")
    times = [-50.0, 1.0, 12.0, 25.0, 500.0]
    pl.DataFrame({"time": times, "sm_mhz": [345, 1980, 1980, 1965, 345], "memory_mhz": [3201] * 5}).write_parquet(
        found.path / "samples.parquet"
    )
    # WHEN its facts are taken THEN the clocks are those of the passes
    facts = record(found).facts
    assert (facts["clocks.sm_mhz"], facts["clocks.memory_mhz"]) == (1980.0, 3201.0)
    assert facts["hardware.gpus"] == "2 x NVIDIA H200"
    assert "versions.triton" not in facts


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("vllm serve m --seed 0 --seed=1", {"seed": "1"}),
        ("--max_num_seqs 8 --enforce-eager", {"max-num-seqs": "8", "enforce-eager": "yes"}),
        ("--no-enforce-eager --sizes 4 32", {"enforce-eager": "no", "sizes": "4 32"}),
        ("", {}),
    ],
)
def test_flags_of_a_command_line(words: str, expected: dict[str, str]) -> None:
    # GIVEN a command line WHEN its flags are taken THEN spellings are one, and the last of a name counts
    assert flags(words.split()) == expected


def test_traces_of_different_devices_are_warned_of_and_compared() -> None:
    # GIVEN the report of a trace, and the same of another device
    base = moeprof.report("samples/h200/base")
    other = replace(base, ranks=tuple(replace(rank, device="NVIDIA B200") for rank in base.ranks))
    # WHEN compared THEN there is a row and a warning, and the verdict is that of the launches
    result = moeprof.diff(base, other)
    assert [(row.key, row.base, row.candidate, row.between) for row in result.environment] == [
        ("hardware.gpus", "NVIDIA H200", "NVIDIA B200", "traces")
    ]
    assert "devices-differ" in {finding.slug for finding in result.findings}
    assert result.verdict != "not_comparable"


def test_the_configuration_states_margin_and_allowed_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a candidate of another vLLM, and a configuration that lets versions differ and states a margin
    samples = Path("samples/gsm8k").resolve()
    store = str(aba(tmp_path / "store", b1={"versions": {**_VERSIONS, "vllm": "0.27.0"}}))
    (tmp_path / "moeprof.toml").write_text('[compare]\nallow_environment = ["versions"]\naccuracy_margin = 0.05\n')
    monkeypatch.chdir(tmp_path)
    # WHEN compared there THEN both hold, and an option beats the margin
    assert run("diff", "base", "mega", "--store", store)[0] == 0
    paths = [str(samples / name) for name in ("decode_base.txt", "decode_mega_run3.txt")]
    for options, margin in (([], 0.05), (["--accuracy-margin", "0.1"], 0.1)):
        (row,) = json.loads(run("diff", *paths, "--format", "json", *options)[1])["accuracy"]
        assert row["noninferiority"]["margin"] == margin
    # GIVEN a margin in points WHEN compared THEN the configuration is refused
    (tmp_path / "moeprof.toml").write_text("[compare]\naccuracy_margin = 2\n")
    code, _, err = run("diff", *paths)
    assert code == 2 and "accuracy_margin" in err
