"""vLLM's clients: found, told what to send, run, and read. The programs are scripts of a few lines that do one thing."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from moeprof.errors import ConfigError, PassFailedError
from moeprof.profiler.bench import command_line, read_result, run_bench
from moeprof.profiler.find_client import ChosenClient, choose_client
from moeprof.profiler.load import Load
from tests.shared import shared_root

LOAD = Load(prompts=64, input_len=64, output_len=30, concurrency=8)


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_auto_takes_rust_then_python_then_the_built_in_one(tmp_path: Path) -> None:
    # GIVEN a server environment that grows
    bin_ = tmp_path / "bin"
    server = str(program(bin_ / "python"))
    env = {"PATH": str(tmp_path / "none")}
    # THEN what is there is taken, with the reason
    assert choose_client("auto", [server, "s.py"], env).name == "builtin"
    program(bin_ / "vllm")
    found = choose_client("auto", [server, "s.py"], env)
    assert (found.name, found.words) == ("vllm", (str(bin_ / "vllm"), "bench", "serve"))
    program(bin_ / "vllm-rs")
    found = choose_client("auto", [server, "s.py"], env)
    assert (found.name, found.because) == ("vllm-rs", "vllm-rs is there")
    assert choose_client("vllm", [server, "s.py"], env).name == "vllm"
    assert choose_client("builtin", [server, "s.py"], env).words == ()


def test_the_python_client_is_the_one_of_the_servers_command(tmp_path: Path) -> None:
    # GIVEN the ways in which vLLM's server is started THEN the client is started the same way
    python, vllm = str(program(tmp_path / "bin" / "python3")), str(program(tmp_path / "bin" / "vllm"))
    env = {"PATH": str(tmp_path / "bin")}
    module = (python, "-m", "vllm.entrypoints.cli.main", "bench", "serve")
    assert choose_client("auto", ["vllm"], env).words == (vllm, "bench", "serve")
    assert choose_client("auto", ["vllm", "serve"], env).words == (vllm, "bench", "serve")
    assert choose_client("auto", ["python3", "-m", "vllm.entrypoints.openai.api_server"], env).words == module
    assert choose_client("auto", ["python3", "-m", "vllm.entrypoints.cli.main", "serve"], env).words == module


def test_a_client_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="asks for vllm-rs bench serve"):
        choose_client("vllm-rs", ["nowhere"], {"PATH": str(tmp_path)})


def test_command_line() -> None:
    # GIVEN a closed loop for the Python client, and an open one for the Rust client
    out = Path("/run/bench/pass0.json")
    python = ChosenClient("vllm", ("vllm", "bench", "serve"), "")
    words = command_line(python, "http://127.0.0.1:1", "tiny", LOAD, out, tokenizer="/model")
    # THEN every word is as vLLM wants it
    assert " ".join(words) == (
        "vllm bench serve --backend vllm --base-url http://127.0.0.1:1 --endpoint /v1/completions --model /model "
        "--served-model-name tiny --tokenizer /model --dataset-name random --random-input-len 64 --random-output-len 30 "
        "--num-prompts 64 --max-concurrency 8 --seed 0 --temperature 0 --ignore-eos "
        "--percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,90,99 --disable-tqdm "
        "--save-result --result-dir /run/bench --result-filename pass0.json"
    )
    rust = ChosenClient("vllm-rs", ("vllm-rs", "bench", "serve"), "")
    load = Load(10, 64, 1, rate=0.5, ignore_eos=False)
    words = command_line(rust, "http://127.0.0.1:1", "tiny", load, out, tokenizer="/model")
    assert {"--request-rate", "0.5", "--prompt-token-ids"} <= set(words)
    assert not {"--max-concurrency", "--ignore-eos"} & set(words)


RESULT = {
    "date": "20261130-203730", "backend": "vllm", "request_rate": "inf", "label": None, "max_concurrency": 8,
    "duration": 1.0, "completed": 64, "failed": 0, "total_input_tokens": 4096, "total_output_tokens": 1920,
    "request_throughput": 64.0, "output_throughput": 1920.0, "total_token_throughput": 6016.0, "mean_ttft_ms": 1.0,
    "median_ttft_ms": 1.0, "mean_tpot_ms": 1.0, "mean_e2el_ms": 30.0, "input_lens": [64],
}  # fmt: skip


def script(tmp_path: Path, text: str) -> ChosenClient:
    """Return a client that runs a Python text; its last argument is the result's file name."""
    path = tmp_path / "client.py"
    path.write_text(
        "import json, os, signal, subprocess, sys, time\nout = os.path.join(sys.argv[-3], sys.argv[-1])\n" + text
    )
    return ChosenClient("vllm", (sys.executable, str(path)), "")


def run(
    client: ChosenClient, output: Path, timeout_s: float = 60.0, cancelled: threading.Event | None = None
) -> object:
    return run_bench(
        client, "http://127.0.0.1:1", "m", LOAD, output,
        tokenizer="t", env=dict(os.environ), timeout_s=timeout_s, cancelled=cancelled,
    )  # fmt: skip


def test_a_client_that_works(tmp_path: Path) -> None:
    # GIVEN a client that prints and writes a result WHEN it runs
    client = script(tmp_path, f"print('words')\nopen(out, 'w').write({json.dumps(RESULT)!r})")
    result = run_bench(
        client, "http://127.0.0.1:1", "m", LOAD, tmp_path / "bench" / "pass0.json",
        tokenizer="t", env=dict(os.environ), timeout_s=60,
    )  # fmt: skip
    # THEN figures are taken, lists and the date are not, and what it printed is kept
    assert (result.file, result.client, result.failed, result.problems) == ("bench/pass0.json", "vllm", 0, ())
    assert result.raw == {key: value for key, value in RESULT.items() if key not in ("date", "input_lens")}
    assert result.date == "2026-11-30T20:37:30"
    assert (tmp_path / "bench" / "pass0.txt").read_text() == "words\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print('\\x1b[31mValueError: no\\x1b[0m'); sys.exit(7)", "vllm bench serve ended with code 7: ValueError: no"),
        ("print('Multi-Run Summary')", "vllm bench serve wrote no result: Multi-Run Summary"),
        ("open(out, 'w').write('{')", "the result of vllm bench serve is no JSON: "),
        ("open(out, 'w').write('[]')", "the result of vllm bench serve is no JSON object"),
    ],
)
def test_a_client_that_fails(tmp_path: Path, text: str, message: str) -> None:
    # GIVEN a client that ends badly, and a result that an earlier one left
    (tmp_path / "pass0.json").write_text(json.dumps(RESULT))
    # WHEN it runs THEN the pass failed, with its last words
    with pytest.raises(PassFailedError) as caught:
        run(script(tmp_path, text), tmp_path / "pass0.json")
    assert caught.value.message.startswith(message)


def test_a_client_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(PassFailedError, match="cannot be started: No such file"):
        run(ChosenClient("vllm", (str(tmp_path / "none"),), ""), tmp_path / "pass0.json")


@pytest.mark.parametrize("way", ["limit", "cancelled"])
def test_a_client_that_hangs_is_ended_with_its_children(tmp_path: Path, way: str) -> None:
    # GIVEN a client that ignores TERM and has a child, which it names
    text = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(subprocess.Popen(['sleep', '600']).pid, flush=True)\n"
    client = script(tmp_path, text + "time.sleep(600)")
    cancelled = threading.Event()
    if way == "cancelled":
        threading.Timer(2.0, cancelled.set).start()
    # WHEN its time is over, or somebody says stop
    with pytest.raises(PassFailedError, match="did not finish within 2 s" if way == "limit" else "was stopped"):
        run(client, tmp_path / "pass0.json", 2.0 if way == "limit" else 60.0, cancelled)
    # THEN nobody is left, as soon as the kernel has done what KILL says
    child = int((tmp_path / "pass0.txt").read_text())
    deadline = time.monotonic() + 20
    while _lives(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(child)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] not in ("Z", "X")


@pytest.mark.parametrize(
    ("name", "client", "load", "date"),
    [
        ("py", "vllm", LOAD, "2026-11-30T20:37:30"),
        ("rs", "vllm-rs", Load(240, 64, 30, concurrency=8), "2026-11-30T20:34:56+00:00"),
        ("h200_base_pass0", "vllm", Load(128, 1024, 256, concurrency=64), "2026-11-30T20:37:38"),
    ],
)
def test_results_of_the_real_clients(name: str, client: str, load: Load, date: str) -> None:
    # GIVEN what the real clients wrote
    path = shared_root() / "samples" / "bench" / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    content = json.loads(path.read_text())
    # WHEN it is read THEN nothing is wrong with it, and every figure is as written
    result = read_result(path, client, load)  # type: ignore[arg-type]
    assert (result.problems, result.failed, result.date) == ((), 0, date)
    assert {key: content[key] for key in result.raw} == dict(result.raw)
    assert result.raw["request_rate"] == "inf" and "ttfts" not in result.raw and "date" not in result.raw
