"""Whole blocks: moeprof as a process, the fake server as the arm's command."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moeprof.profiler import family
from tests.fakes.blocks import ROOT, SAMPLES, Blocks, until
from tests.fakes.running import fake_server

pytestmark = pytest.mark.skipif(not family.has_proc(), reason="needs /proc to see processes")


@pytest.fixture
def blocks(tmp_path: Path) -> Iterator[Blocks]:
    made = Blocks(tmp_path)
    yield made
    made.kill_all()


def outcomes(manifest: dict) -> dict[str, str]:
    """Return the gates of a manifest with their outcomes."""
    return {gate["name"]: gate["outcome"] for gate in manifest["gates"]}


def test_a_good_block(blocks: Blocks) -> None:
    # GIVEN an arm WHEN a block of it is captured
    assert blocks.run("capture", "--arm", "base") == 0, blocks.stderr
    # THEN the run folder holds everything, and the manifest lists it with sizes
    (folder,) = (blocks.store / "runs" / "base").iterdir()
    manifest = blocks.manifest("base", 0)
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    assert {name: entry["bytes"] for name, entry in manifest["files"].items()} == {
        name: size for name, size in files.items() if name != "manifest.json"
    }
    bench = [name for name in files if name.startswith("bench/")]
    assert sorted(bench) == [f"bench/{n}.json" for n in ("c2-pass0", "c2-pass1", "c4-pass0", "c4-pass1", "warmup0")]
    traces = sorted(re.sub(r"\d{10,}", "T", name) for name in files if name.startswith("traces/"))
    assert traces == [f"traces/dp{n}_pp0_tp0_dcp0_ep{n}_rank0.T.pt.trace.json.gz" for n in (0, 1)]
    events = {name.split("/")[1] for name in files if re.fullmatch(r"events/[^/]+/\w+\.parquet", name)}
    assert events == {"rank=dp0_pp0_tp0_dcp0_ep0_rank0", "rank=dp1_pp0_tp0_dcp0_ep1_rank0"}
    assert files["server.log"] > 1000
    # AND its figures are those of the workload, the traces and the probe
    assert (manifest["outcome"], manifest["arm"], manifest["block"], manifest["plan"]) == ("complete", "base", 0, None)
    assert [item["raw"]["completed"] for item in manifest["passes"]] == [4, 4, 8, 8]
    assert [item["raw"]["total_output_tokens"] for item in manifest["passes"]] == [64, 64, 128, 128]
    assert manifest["probe"] == {"seen": "gave 8 log probabilities", "tokens": 8, "finite": True}
    assert outcomes(manifest) == {
        "no-failed-requests": "pass", "token-counts": "pass", "finite-logprobs": "pass", "expected-backend": "pass",
        "markers-present": "fail", "traces-complete": "pass", "profile-apart": "pass", "steady-clocks": "no-data",
        "no-cotenants": "no-data", "arms-differ": "no-data",
    }  # fmt: skip
    # AND a person reads what was stored, what the gates say, and what to do next
    assert blocks.stdout == (
        f"stored base/{folder.name}\n  {folder}\n"
        "  gates: 6 passed; 1 failed; no data for steady-clocks, no-cotenants, arms-differ\n"
        "  gate markers-present failed, and is not required: the trace is cut by markers of family vllm\n"
        "next: moeprof report base\n"
    )
    told = [re.sub(r"\d+\.\d", "F", line) for line in blocks.stderr.splitlines()]
    assert re.sub(r"port \d+", "port N", told[0]) == "moeprof: starting arm base on port N"
    assert told[2:] == [
        "moeprof: warm-up 1 of 1 (builtin)",
        "moeprof: measuring c2: 2 passes",
        "moeprof: c2 pass 1: F tok/s, TPOT p50 F ms",
        "moeprof: c2 pass 2: F tok/s, TPOT p50 F ms",
        "moeprof: measuring c4: 2 passes",
        "moeprof: c4 pass 1: F tok/s, TPOT p50 F ms",
        "moeprof: c4 pass 2: F tok/s, TPOT p50 F ms",
        "moeprof: profile window",
        "moeprof: stopping the server",
        "moeprof: reading the traces",
    ]
    # AND nothing is left
    assert (blocks.alive(), blocks.locked(), blocks.runs()) == ({}, False, ["base/0"])


def test_a_plan_is_resumed_and_repeated(blocks: Blocks) -> None:
    # GIVEN a plan of three blocks WHEN it is killed in its second block
    process = blocks.start("run", "--plan", "aba", "base", "mega")
    assert until(lambda: "starting arm mega" in blocks.stderr)
    process.send_signal(signal.SIGKILL)
    process.wait()
    # THEN one run is there, and soon no process and no unfinished folder
    assert until(lambda: blocks.alive() == {} and blocks.runs() == ["base/0"])
    first = blocks.manifest("base", 0)["started"]
    # WHEN the same command is given again
    assert blocks.run("run", "--plan", "aba", "base", "mega") == 0, blocks.stderr
    # THEN only the rest is done
    assert blocks.runs() == ["base/0", "base/2", "mega/1"]
    assert blocks.manifest("base", 0)["started"] == first
    said = [line for line in blocks.stderr.splitlines() if " block " in line]
    assert said == [
        "moeprof: block 0-base is stored already", "moeprof: block 1-mega", "moeprof: block 2-base",
    ]  # fmt: skip
    assert [line for line in blocks.stdout.splitlines() if line.startswith("next")] == ["next: moeprof diff base mega"]
    # AND from the second block on it is known whether the arms differ
    judged = [
        outcomes(blocks.manifest(arm, number))["arms-differ"] for number, arm in enumerate(("base", "mega", "base"))
    ]
    assert judged == ["no-data", "pass", "pass"]
    # WHEN it is given a third time THEN nothing is done
    assert blocks.run("run", "base", "mega") == 0
    assert (blocks.stdout, blocks.stderr.count("is stored already")) == ("next: moeprof diff base mega\n", 3)
    # AND with --again everything is
    assert blocks.run("run", "base", "mega", "--again") == 0
    assert blocks.runs() == ["base/0", "base/0", "base/2", "base/2", "mega/1", "mega/1"]
    assert (blocks.alive(), blocks.locked()) == ({}, False)


def test_arms_that_launch_the_same_kernels_do_not_differ(blocks: Blocks) -> None:
    # GIVEN a candidate whose traces are the base's, and the gate required
    blocks.configure((f'"--samples", "{SAMPLES / "mega"}", ', ""), more='[gates]\nrequired = ["arms-differ"]\n')
    # WHEN the plan runs THEN the base's first block, which has nothing to be compared with, is stored, and the candidate's fails
    assert blocks.run("run", "--plan", "ab", "base", "mega") == 3
    assert blocks.error()[0] == (
        "moeprof: error[capture-gate-failed]: 1 required gate failed: arms-differ; both arms launch the same kernels"
    )
    assert blocks.runs() == ["base/0"]


def test_what_server_and_shell_know_is_not_stored(blocks: Blocks) -> None:
    # GIVEN an arm with a secret, a shell with another, and a server that prints both, one that looks like one, and a figure
    inherited, own, looks = "correct-horse-battery", "sesame-street-77", "hf_0123456789abcdef"
    blocks.environment["SOME_API_KEY"] = inherited
    line = f"have {inherited} and {own} and {looks}, max_tokens=16"
    flags = f'flags = ["--data-parallel-size", "2", "--extra-log", "{line}"]\nenv = {{ DB_PASSWORD = "{own}" }}'
    blocks.configure(('flags = ["--data-parallel-size", "2"]', flags))
    # WHEN a block is captured, and when one fails
    for fail, code in (("", 0), ("no-trace", 3)):
        if fail:
            blocks.configure(('flags = ["--data-parallel-size", "2"]', flags), ("traces_s = 60", "traces_s = 2"))
        assert blocks.run("capture", "--arm", "base", fail=fail) == code, blocks.stderr
    # THEN no file of the store holds one, and the line is there without them
    logs = list(blocks.store.rglob("server.log"))
    assert len(logs) == 2
    for file in blocks.store.rglob("*"):
        held = file.read_bytes() if file.is_file() else b""
        assert [secret for secret in (inherited, own, looks) if secret.encode() in held] == [], file
    for log in logs:
        assert "have <redacted> and <redacted> and <redacted>, max_tokens=16" in log.read_text()
    assert blocks.manifest("base", 0)["redactions"]["server.log"] >= 3


def test_a_program_that_writes_its_own_traces(blocks: Blocks) -> None:
    # GIVEN a program in the place of a server, nothing to send to it, and gates as they are by default
    script = "import pathlib, shutil, sys\nfor f in pathlib.Path(sys.argv[2]).iterdir(): shutil.copy(f, sys.argv[1])\n"
    (blocks.folder / "bench.py").write_text(script)
    (blocks.folder / "moeprof.toml").write_text(
        f"""\
[server]
backend = "command"
command = [{json.dumps(sys.executable)}, "bench.py", "{{traces}}"]
[arms.base]
flags = [{json.dumps(str(SAMPLES / "base"))}]
[arms.mega]
flags = [{json.dumps(str(SAMPLES / "mega"))}]
"""
    )
    # WHEN both arms are captured, and the same is asked for again
    assert blocks.run("run", "--plan", "ab", "base", "mega") == 0, blocks.stderr
    assert blocks.runs() == ["base/0", "mega/1"]
    assert blocks.run("run", "--plan", "ab", "base", "mega") == 0, blocks.stderr
    assert blocks.stderr.count("is stored already") == 2
    # THEN what can be judged of a program is, and nothing else is required of it
    judged = {gate["name"]: (gate["outcome"], gate["required"]) for gate in blocks.manifest("mega", 1)["gates"]}
    assert judged["traces-complete"] == ("pass", True)
    assert judged["arms-differ"] == ("pass", False)
    for name in ("no-failed-requests", "token-counts", "profile-apart", "expected-backend"):
        assert judged[name] == ("no-data", False)
    # AND a workload for it is an error of the command line
    assert blocks.run("capture", "--arm", "base", "--workload", "small") == 2
    assert blocks.error()[0] == "moeprof: error[usage]: arm base runs a program to its end and is sent nothing"
    assert blocks.alive() == {}


def test_a_switch_without_effect_is_seen(blocks: Blocks) -> None:
    # GIVEN a candidate whose traces are the base's
    blocks.configure((f'"--samples", "{SAMPLES / "mega"}", ', ""))
    # WHEN the plan runs THEN the candidate's gate tells
    assert blocks.run("run", "--plan", "ab", "base", "mega") == 0, blocks.stderr
    assert [outcomes(blocks.manifest(arm, n))["arms-differ"] for n, arm in enumerate(("base", "mega"))] == [
        "no-data",
        "fail",
    ]
    assert "gate arms-differ failed, and is not required: both arms launch the same kernels" in blocks.stdout


def test_a_server_that_runs_already(blocks: Blocks, tmp_path: Path) -> None:
    # GIVEN a server that somebody else started, with a folder of its own for traces
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    config = f'{{"torch_profiler_dir": "{theirs}", "max_iterations": 2}}'
    blocks.configure(more='[gates]\nrequired = ["traces-complete", "token-counts"]\n')
    with fake_server("--served-model-name", "tiny", "--profiler-config", config) as address:
        # WHEN it is captured, twice
        for block in ("0", "1"):
            words = ("--attach", f"{address}/", "--attach-traces", str(theirs), "--block", block)
            assert blocks.run("capture", "--arm", "base", *words) == 0, blocks.stderr
            # THEN the run holds copies of that window's traces
            assert len(list((blocks.store / "runs" / "base").glob(f"*-{block}/traces/*.json.gz"))) == 2
            assert (blocks.manifest("base", int(block))["attached"], blocks.manifest("base", 0)["argv"]) == (True, [])
        # AND the server's own files are where they were
        assert len(list(theirs.iterdir())) == 4
    assert blocks.stderr.startswith(f"moeprof: attached to {address}\n")
    # WHEN the server is gone THEN the error says so
    assert blocks.run("capture", "--arm", "base", *words) == 3
    assert blocks.error()[0] == (
        "moeprof: error[server-not-ready]: the server to attach to is not ready: "
        f"{address}/health refused the connection"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--attach", "http://127.0.0.1:1"), "--attach needs to know where the server writes its traces"),
        (("--attach-traces", "."), "--attach-traces is given without --attach"),
        (("--attach", "127.0.0.1:1", "--attach-traces", "."), "--attach 127.0.0.1:1 is no address of a server"),
        (("--attach", "http://127.0.0.1:1", "--attach-traces", "no"), "--attach-traces no is no folder"),
    ],
)
def test_options_to_attach_that_make_no_sense(blocks: Blocks, words: tuple[str, ...], message: str) -> None:
    # GIVEN half of what is needed WHEN it is tried THEN nothing is begun
    assert blocks.run("capture", "--arm", "base", *words) == 2
    assert blocks.error()[0] == f"moeprof: error[usage]: {message}"
    assert not blocks.store.exists()


def test_a_dry_run_needs_no_server(blocks: Blocks) -> None:
    # GIVEN a command that does not exist, and a secret in the environment of an arm
    blocks.configure(
        ("\n[workloads.small]", '[arms.mega.env]\nHF_TOKEN = "hf_0123456789abc"\n\n[workloads.small]'),
        (f'command = ["{sys.executable}", "{ROOT / "tests/fakes/server.py"}"]', 'command = ["/nowhere/vllm"]'),
        ("[arms.base]\n", "[arms.base]\nmarkers = false\n"),
    )
    # WHEN a plan is tried THEN what would be run is printed, secrets taken out, and nothing is made
    assert blocks.run("run", "base", "mega", "--dry-run") == 0, blocks.stderr
    heads = [line for line in blocks.stdout.splitlines() if line.startswith("# block")]
    assert heads == [f"# block {name}, workload small" for name in ("0-base", "1-mega", "2-base")]
    runs = blocks.folder / "RUN" / "traces"
    profiler = f'{{"profiler":"torch","torch_profiler_dir":"{runs}","ignore_frontend":true,"max_iterations":2,"torch_profiler_with_stack":false}}'
    assert blocks.stdout.splitlines()[:4] == [
        "# block 0-base, workload small",
        "# port: a free one; RUN: the run's folder",
        "PYTHONUNBUFFERED=1 \\",
        "/nowhere/vllm serve tiny --host 127.0.0.1 --port 8000 --served-model-name tiny --data-parallel-size 2 "
        f"--enable-logging-iteration-details --profiler-config '{profiler}'",
    ]
    assert "HF_TOKEN='<redacted>' \\" in blocks.stdout and "hf_0123456789abc" not in blocks.stdout
    assert (blocks.stderr, blocks.store.exists()) == ("", False)
