"""Real vLLM on the CPU with markers: one server of two ranks, a window of decodes, and what its traces hold.

Needs the environment of ``scripts/cpu_environment.py``; none is made here. Skipped, with the reason, where there is none.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import moeprof
from moeprof.profiler.vllm_plugin import server_site

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "extras" / "moeprof-cpu-backend" / "src"
ITERATIONS = 6
READY_S, REPLY_S, STOP_S = 300, 300, 20
SPECULATION = {
    "method": "mtp",
    "num_speculative_tokens": 3,
    "rejection_sample_method": "synthetic",
    "synthetic_acceptance_rates": [0.8, 0.6, 0.5],
}

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def python() -> str:
    """Return the Python of the environment with vLLM."""
    found = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "cpu_environment.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if found.returncode != 0:
        pytest.skip(f"no vLLM for the CPU: {found.stderr.strip()} (python scripts/cpu_environment.py makes it)")
    return found.stdout.strip()


class Server:
    """A running server."""

    def __init__(self, port: int, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.base, self.log, self.process = f"http://127.0.0.1:{port}", log, process

    def call(self, path: str, body: object = None, *, method: str = "GET") -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base + path, data=data, method=method, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=REPLY_S) as reply:
            content: bytes = reply.read()
        return content

    def ready(self) -> bool:
        try:
            self.call("/health")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while not self.ready():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.5)

    def complete(self, prompt: list[int], tokens: int) -> int:
        body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0}
        answer = json.loads(self.call("/v1/completions", body, method="POST"))
        return int(answer["usage"]["completion_tokens"])

    def running(self) -> float:
        text = self.call("/metrics").decode()
        return sum(float(value) for value in re.findall(r"^vllm:num_requests_running\S* (\S+)$", text, re.MULTILINE))

    def window(self, requests: int, tokens: int) -> list[int]:
        """Open the profiler while all requests run; return the numbers of tokens that came."""
        prompts = [[3 + (17 * r + 5 * n) % 1000 for n in range(32)] for r in range(requests)]
        with ThreadPoolExecutor(requests) as pool:
            replies = [pool.submit(self.complete, prompt, tokens) for prompt in prompts]
            deadline = time.monotonic() + REPLY_S
            while self.running() < requests:
                assert time.monotonic() < deadline and not any(reply.done() for reply in replies)
                time.sleep(0.02)
            self.call("/start_profile", method="POST")
            counts = [reply.result(timeout=REPLY_S) for reply in replies]
            self.call("/stop_profile", method="POST")
        return counts


@pytest.fixture(scope="module")
def server(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start the mega arm with markers; end its process group whatever happens."""
    folder = tmp_path_factory.mktemp("vllm")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VLLM_", "MOEPROF_"))},
        "PYTHONPATH": os.pathsep.join([str(BACKEND), str(server_site())]),
        "VLLM_PLUGINS": "moeprof_cpu_agrs,moeprof_cpu_synth,moeprof_cpu_mega,moeprof_markers",
        "MOEPROF_MARKERS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    model = str(folder / "model")
    subprocess.run([python, "-m", "moeprof_cpu_backend.model", model], env=environ, check=True, timeout=60)
    profiler = {
        "profiler": "torch",
        "torch_profiler_dir": str(folder / "traces"),
        "torch_profiler_with_stack": False,
        "ignore_frontend": True,
        "max_iterations": ITERATIONS,
    }
    flags = (
        "--served-model-name tiny --host 127.0.0.1 --api-server-count 1 --load-format dummy --max-model-len 512 --max-num-seqs 8 "
        "--enforce-eager --no-enable-prefix-caching --num-gpu-blocks-override 64 --data-parallel-size 2 --enable-expert-parallel "
        "--enable-logging-iteration-details"
    )
    command = [python, "-m", "vllm.entrypoints.cli.main", "serve", model, *flags.split(), "--port", str(port)]
    command += ["--speculative-config", json.dumps(SPECULATION), "--profiler-config", json.dumps(profiler)]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environ, stdout=output, stderr=output, start_new_session=True)
        try:
            running = Server(port, log, process)
            running.wait_ready()
            yield running
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def draft_numbers(names: list[str]) -> dict[str, int]:
    """Count the ranges of each draft."""
    return {name: names.count(name) for name in sorted(set(names)) if name.startswith("moeprof.draft#")}


def test_a_window_of_decodes_and_one_with_an_idle_rank(server: Server) -> None:
    # GIVEN the arm with a fused operator on two ranks, and a warm-up
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: server.complete([5 + n] * 16, 8), range(8))) == [8] * 8
    folder = server.log.parent / "traces"
    # WHEN a window is opened while 8 requests run
    assert server.window(8, 300) == [300] * 8
    # THEN the log proves the markers on both ranks
    assert (
        len(re.findall(r"moeprof markers: active \(V1 runner, target, sample, drafts\)$", server.log.read_text(), re.M))
        == 2
    )
    # AND both ranks hold exactly the window's iterations, under the same numbers, with three drafts in each
    first = moeprof.open_trace(folder)
    numbers = set()
    for key in first.ranks:
        names = [str(name) for name in first[key].markers["name"].to_list()]
        steps = [name for name in names if name.startswith("moeprof.iter#")]
        assert len(steps) == ITERATIONS
        assert draft_numbers(names) == {f"moeprof.draft#{k}": ITERATIONS for k in range(3)}
        assert (names.count("moeprof.target"), names.count("moeprof.sample")) == (ITERATIONS, ITERATIONS)
        numbers.add(tuple(sorted(steps)))
    assert len(numbers) == 1
    # AND vLLM's own markers give the same counts and pairs
    ours: Any = moeprof.report(first).to_dict()["ranks"]
    theirs: Any = moeprof.report(first, marker_family="vllm").to_dict()["ranks"]
    for a, b in zip(ours, theirs, strict=True):
        assert (a["iterations"]["marker"], b["iterations"]["marker"]) == ("moeprof", "vllm")
        assert (a["iterations"]["decode"], a["iterations"]["partial"]) == (ITERATIONS, 0)
        assert [a["pairs"]["ag_rs"][key] for key in ("target", "draft", "sample")] == [0, 3, 0]
        for row in a["counts"]:
            if row["constant"]:
                same = [r for r in b["counts"] if (r["class"], r["phase"]) == (row["class"], row["phase"])]
                assert [r["per_iteration"] for r in same] == [row["per_iteration"]]
    seen = set(folder.iterdir())
    # WHEN another is opened with one request, so that one rank has nothing to do
    assert server.window(1, 60) == [60]
    # THEN that rank's steps are marked idle
    idle = server.log.parent / "idle"
    idle.mkdir()
    for file in set(folder.iterdir()) - seen:
        if file.name.endswith(".json.gz"):
            file.rename(idle / file.name)
    ranks: Any = moeprof.report(idle).to_dict()["ranks"]
    idles = sorted((rank["iterations"]["idle"] > 0, rank["iterations"]["decode"]) for rank in ranks)
    assert idles == [(False, ITERATIONS), (True, 0)]
