"""Blocks that fail: each ends with its code and a sentence, leaves nothing running, and keeps what a person needs to see."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moeprof.profiler import family
from tests.fakes.blocks import SERVER, Blocks, until

pytestmark = pytest.mark.skipif(not family.has_proc(), reason="needs /proc to see processes")
WRONG = '"--data-parallel-size", "2"]'


@pytest.fixture
def blocks(tmp_path: Path) -> Iterator[Blocks]:
    made = Blocks(tmp_path)
    yield made
    made.kill_all()


def nothing_runs(blocks: Blocks) -> bool:
    """Tell whether no process, no run folder and no lock is left."""
    return (blocks.alive(), blocks.runs(), blocks.locked()) == ({}, [], False)


@pytest.mark.parametrize(
    ("fail", "changes", "slug", "message", "log"),
    [
        ("start", (), "server-died", r"the server ended with exit code 1 before it was ready: ImportError: libcudart.*",
         "ImportError: libcudart.so.13"),
        ("load", (), "server-died", r"the server ended with exit code 1 before it was ready: RuntimeError: CUDA error: .*",
         "gpu_worker.py"),
        ("", ((WRONG, '"--no-such-flag"]'),), "server-died",
         r"the server ended with exit code 2 before it was ready: error: unrecognized arguments: --no-such-flag.*",
         "unrecognized arguments: --no-such-flag"),
        ("never-ready", (("ready_s = 60", "ready_s = 2"),), "server-not-ready",
         r"the server was not ready within 2 s: http://127\.0\.0\.1:\d+/health answered 503 at the end",
         "Starting vLLM API server"),
        ("500", (), "pass-failed", r"all 8 requests failed: HTTP 500: EngineCore encountered an issue\. \(8\)", None),
        ("hang-after=20", (("stall_s = 30", "stall_s = 2"),), "server-stalled",
         r"the server made no progress for 2 s: 4 requests running, 0 waiting, \d+ tokens so far", "Using V2 Model Runner"),
        ("die-after=100", (), "server-died",
         r"the server ended with exit code 1 while it was measured: RuntimeError: CUDA error: .*", "gpu_worker.py"),
        ("no-trace", (("traces_s = 60", "traces_s = 2"),), "window-failed",
         r"no trace appeared within 2 s after the window", None),
        ("tiny-trace", (), "window-failed",
         r"the trace dp0_pp0_tp0_dcp0_ep0_rank0\.\d+\.pt\.trace\.json\.gz has \d+ bytes, so little that nothing .*", None),
        ("cut-trace", (("traces_s = 60", "traces_s = 2"),), "window-failed",
         r"the trace dp1_pp0_tp0_dcp0_ep1_rank0\.\d+\.pt\.trace\.json\.gz ends in the middle", None),
        pytest.param("tmp-trace", (("traces_s = 60", "traces_s = 2"),), "window-failed",
         r"the trace dp1_\S+\.tmp was not finished within 2 s", None, marks=pytest.mark.slow),
        ("one-rank-missing", (("traces_s = 60", "traces_s = 2"),), "window-failed",
         r"1 of 2 ranks left a trace within 2 s: dp0_pp0_tp0_dcp0_ep0_rank0", None),
        ("slow-stop", (("stop_s = 60", "stop_s = 1"),), "window-failed",
         r"the server did not answer within 1 s to /stop_profile", None),
        ("wrong-tokens", (), "capture-gate-failed",
         r"1 required gate failed: token-counts; 4 of 4 passes have other token counts than the workload", None),
        pytest.param("drop-after=8", (), "pass-failed",
         r"all 4 requests failed: the connection ended in the middle of the answer \(4\)", None, marks=pytest.mark.slow),
    ],
    ids=lambda value: value if isinstance(value, str) and re.fullmatch(r"[a-z0-9=-]+", value) else "",
)  # fmt: skip
def test_a_block_that_fails(
    blocks: Blocks, fail: str, changes: tuple[tuple[str, str], ...], slug: str, message: str, log: str | None
) -> None:
    # GIVEN a server with a fault
    blocks.configure(*changes)
    # WHEN a block is captured
    code = blocks.run("capture", "--arm", "base", fail=fail)
    # THEN it ends with code 3 and one sentence, and nothing is left running or stored
    head, *rest = blocks.error()
    assert (code, blocks.stdout) == (3, "")
    assert re.fullmatch(rf"moeprof: error\[{slug}\]: {message}", head), head
    assert nothing_runs(blocks)
    # AND what it left can be looked at, where the message says, under the name that it has now
    folder = blocks.failed()
    (hint,) = (line for line in rest if line.startswith("  try: "))
    assert f"look at {folder}" in hint
    places = [Path(line.removeprefix("  at: ")) for line in rest if line.startswith("  at: ")]
    assert [place for place in places if not place.exists() or not place.is_relative_to(folder)] == []
    assert json.loads((folder / "failed.json").read_text())["reason"] == head.partition("]: ")[2]
    assert (folder / "server.log").stat().st_size > 0
    assert json.loads((folder / "manifest.json").read_text())["outcome"] == "failed"
    # AND the lines of the log that tell of the cause are shown
    assert log is None or any(line.startswith("  | ") and log in line for line in rest)


def test_a_stalled_server_leaves_evidence(blocks: Blocks) -> None:
    # GIVEN a server that hangs with requests running
    blocks.configure(("stall_s = 30", "stall_s = 2"))
    # WHEN the watchdog ends the block THEN metrics and stacks are kept, and the error names the file
    assert blocks.run("capture", "--arm", "base", fail="hang-after=20") == 3
    evidence = blocks.failed() / "stall.txt"
    assert f"  at: {evidence}" in blocks.error()
    text = evidence.read_text()
    assert "the server made no progress for 2 s" in text and "last metrics:" in text and "end of the log" in text


def test_a_server_that_ignores_term_is_killed(blocks: Blocks) -> None:
    # GIVEN a server, and children of it, that do not end when asked to
    blocks.configure(("stop_s = 5", "stop_s = 1"), (WRONG, '"--data-parallel-size", "2", "--workers", "2"]'))
    # WHEN a block is captured THEN it is good, and nobody is left
    assert blocks.run("capture", "--arm", "base", fail="ignore-term") == 0, blocks.stderr
    assert (blocks.alive(), blocks.runs()) == ({}, ["base/0"])


def test_workers_of_a_dead_server_go_too(blocks: Blocks) -> None:
    # GIVEN a server whose children survive it
    blocks.configure((WRONG, '"--data-parallel-size", "2", "--workers", "2"]'))
    # WHEN it dies in a pass THEN they are gone as well
    assert blocks.run("capture", "--arm", "base", fail="die-after=100") == 3
    assert nothing_runs(blocks)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((("vocabulary = 100", ""),), "workload small needs the size of the model's vocabulary for its random token ids"),
        (((str(SERVER), str(SERVER)), (f'["{sys.executable}", ', '["no-such-vllm", ')),
         "the command no-such-vllm was not found on PATH"),
        (((f'["{sys.executable}", ', '["/nowhere/vllm", '),), "the command /nowhere/vllm cannot be run: no such file or directory"),
        ((('client = "builtin"', 'client = "vllm-rs"'),),
         "passes.client asks for vllm-rs bench serve, which is not in the server's environment"),
    ],
    ids=["vocabulary", "on-path", "path", "client"],
)  # fmt: skip
def test_a_configuration_that_cannot_be_run(blocks: Blocks, changes: tuple[tuple[str, str], ...], message: str) -> None:
    # GIVEN a configuration with a mistake WHEN a block is captured
    blocks.configure(*changes)
    code = blocks.run("capture", "--arm", "base")
    # THEN it ends with code 2 before anything was measured, and nothing is kept
    assert (code, blocks.error()[0]) == (2, f"moeprof: error[config-invalid]: {message}")
    assert nothing_runs(blocks) and not (blocks.store / "failed").exists()
    assert "ready after" not in blocks.stderr


def test_a_port_that_is_taken(blocks: Blocks) -> None:
    # GIVEN somebody who listens on the wanted port
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        blocks.configure(('model = "tiny"', f'model = "tiny"\nport = {port}'))
        # WHEN a block is captured THEN the message names him
        assert blocks.run("capture", "--arm", "base") == 2
    assert re.fullmatch(
        rf"moeprof: error\[config-invalid\]: port {port} on 127\.0\.0\.1 is held by \S+ \(pid \d+\)", blocks.error()[0]
    )
    assert nothing_runs(blocks)


def test_a_second_writer_is_refused(blocks: Blocks) -> None:
    # GIVEN a capture that runs
    process = blocks.start("capture", "--arm", "base", fail="never-ready")
    assert until(blocks.locked)
    # WHEN another one begins in the same store THEN it is told who writes
    second = subprocess.run(
        [sys.executable, "-m", "moeprof", "capture", "--arm", "base"],
        cwd=blocks.folder, env=blocks.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    process.send_signal(signal.SIGINT)
    assert second.returncode == 2
    assert f"pid {process.pid} on" in second.stderr and "error[store-locked]" in second.stderr
    # AND the first one ends as it was asked to
    assert process.wait(60) == 130
    told = f"moeprof: interrupted; nothing was stored; what the block left lies in {blocks.failed()}\n"
    assert blocks.stderr.endswith(told)
    assert nothing_runs(blocks)
    # AND what it left is the log, with the reason
    assert (blocks.failed() / "server.log").stat().st_size > 0
    reason = json.loads((blocks.failed() / "failed.json").read_text())["reason"]
    assert reason == "the block was interrupted (Ctrl-C)"


#: Lower the soft limit of file size for moeprof, and give programs that it starts the hard one again.
SOFT = (
    "import resource, subprocess, sys\n"
    "n = int(sys.argv.pop(1))\n"
    "hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (n, hard))\n"
    "real = subprocess.Popen.__init__\n"
    "def free(self, *words, **named):\n"
    "    real(self, *words, **named, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)))\n"
    "subprocess.Popen.__init__ = free\n"
    "sys.argv[0] = 'moeprof'\n"
    "from moeprof.cli import run\n"
    "run()\n"
)


@pytest.mark.parametrize("least", [60_000, 3000], ids=["tables", "bench"])
def test_a_file_that_cannot_grow(blocks: Blocks, least: int) -> None:
    # GIVEN a limit on moeprof's own files that the normalised tables, or the client's results, go beyond
    # WHEN a block is captured
    code = blocks.run("capture", "--arm", "base", program=("-c", SOFT, str(least)))
    # THEN it ends with code 3, and says what, where and why
    head, *rest = blocks.error()
    assert (code, head) == (3, "moeprof: error[store-write-failed]: cannot capture the block: File too large")
    assert any(line.startswith("  at: ") for line in rest)
    assert nothing_runs(blocks)
    assert (blocks.failed() / "server.log").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 500 KiB; skip where that is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    words = [mount or "mount", "-t", "tmpfs", "-o", "size=500k", "tmpfs", str(folder)]
    if mount is None or subprocess.run(words, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("filled", [0, 300_000, 480_000], ids=["at-the-tables", "at-the-traces", "from-the-start"])
def test_a_disk_that_runs_full(blocks: Blocks, small_disk: Path, filled: int) -> None:
    # GIVEN a store on a disk with little room
    blocks.configure(("traces_s = 60", "traces_s = 5"), ("stall_s = 30", "stall_s = 3"))
    (small_disk / "other").write_bytes(b"x" * filled)
    # WHEN a block is captured
    code = blocks.run("capture", "--arm", "base", "--store", str(small_disk / "store"))
    # THEN it ends with code 3, says that the disk is full, and leaves the reason
    assert code == 3
    assert "the disk is full" in blocks.stderr or "the disk was full" in blocks.stderr
    assert blocks.alive() == {}
    assert [path.name for path in (small_disk / "store" / "runs").glob("*/*")] == []
    (folder,) = (small_disk / "store" / "failed").iterdir()
    assert json.loads((folder / "failed.json").read_text())["arm"] == "base"
    assert (folder / "server.log").exists()


def test_a_store_that_cannot_be_written(blocks: Blocks) -> None:
    # GIVEN a file where the store's folder belongs WHEN a block is captured THEN code, place and advice are told
    blocks.store.write_text("")
    assert blocks.run("capture", "--arm", "base") == 3
    head, place, _ = blocks.error()
    assert head == "moeprof: error[store-write-failed]: cannot lock the store: a file stands where a folder belongs"
    assert place.startswith(f"  at: {blocks.store}")


def test_progress_that_cannot_be_told_loses_nothing(blocks: Blocks) -> None:
    # GIVEN a stderr that takes nothing WHEN a block is captured THEN it is stored all the same
    process = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m moeprof capture --arm base 2>/dev/full'],
        cwd=blocks.folder, env=blocks.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0
    assert process.stdout.startswith("stored base/")
