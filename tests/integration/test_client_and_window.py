"""The built-in client and the profile window against the fake server, over real sockets."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from moeprof.config.schema import Window
from moeprof.errors import PassFailedError, StalledError, WindowFailedError
from moeprof.profiler.client import run_pass
from moeprof.profiler.load import Load
from moeprof.profiler.window import Server, profile_window
from tests.fakes.running import fake_server

WINDOW = Window(iterations=5, seconds=20.0, start_s=20.0, stop_s=20.0, traces_s=20.0)


def test_192_streams_at_a_time(tmp_path: Path) -> None:
    # GIVEN a server with two engines and drafts
    load = Load(prompts=384, input_len=32, output_len=24, concurrency=192, vocabulary=1000)
    seen: list[tuple[int, int]] = []
    with fake_server() as address:
        # WHEN 384 requests are sent, 192 at a time
        result = run_pass(
            address, "model", load, tmp_path / "bench" / "pass0.json", timeout_s=100,
            progress=lambda done, total: seen.append((done, total)),
        )  # fmt: skip
    # THEN none is lost, every token is counted, and the counters of speculation agree with them
    raw = result.raw
    assert (result.problems, result.failed, result.client, result.file) == ((), 0, "builtin", "bench/pass0.json")
    assert (raw["completed"], raw["total_input_tokens"], raw["total_output_tokens"]) == (384, 384 * 32, 384 * 24)
    assert (raw["request_rate"], raw["max_concurrency"], raw["num_prompts"]) == ("inf", 192, 384)
    assert raw["spec_decode_draft_tokens"] == 3 * raw["spec_decode_num_drafts"]
    assert len(raw["spec_decode_per_position_acceptance_rates"]) == 3
    assert raw["output_throughput"] == 384 * 24 / raw["duration"]
    assert 0 < raw["p50_ttft_ms"] == raw["median_ttft_ms"] <= raw["p99_ttft_ms"] <= raw["p99_e2el_ms"]
    assert seen[-1] == (384, 384) and len(seen) == 384
    # AND the file has the values of each request beside the same figures
    content = json.loads((tmp_path / "bench" / "pass0.json").read_text())
    assert {key: content[key] for key in raw} == raw
    assert content["output_lens"] == [24] * 384 and content["errors"] == [""] * 384
    assert all(0 < len(gaps) < 24 for gaps in content["itls"])  # several tokens a chunk


def test_an_open_loop_without_drafts(tmp_path: Path) -> None:
    # GIVEN a server without speculation WHEN requests arrive at a rate
    load = Load(prompts=20, input_len=8, output_len=4, rate=100.0, vocabulary=1000)
    with fake_server("--drafts", "0") as address:
        result = run_pass(address, "model", load, tmp_path / "pass0.json", timeout_s=60)
    # THEN the rate is told, the pass lasts at least as long as the arrivals, and there are no keys of speculation
    assert (result.problems, result.raw["request_rate"], result.raw["max_concurrency"]) == ((), 100.0, None)
    assert result.raw["duration"] >= 0.2
    assert [key for key in result.raw if key.startswith("spec_")] == []


def test_tokens_that_are_missing_are_a_problem(tmp_path: Path) -> None:
    load = Load(prompts=4, input_len=8, output_len=6, concurrency=2, vocabulary=1000)
    with fake_server("--fail", "wrong-tokens") as address:
        result = run_pass(address, "model", load, tmp_path / "pass0.json", timeout_s=60)
    assert result.problems == ("20 output tokens instead of 24 (4 x 6)",)


def test_streams_that_are_cut_are_failures(tmp_path: Path) -> None:
    # GIVEN a server that cuts every stream from the fifth request on
    load = Load(prompts=8, input_len=8, output_len=20, concurrency=1, vocabulary=1000)
    with fake_server("--fail", "drop-after=4") as address:
        result = run_pass(address, "model", load, tmp_path / "pass0.json", timeout_s=60)
    # THEN they are counted with their reason, and not among the tokens
    assert (result.failed, result.raw["completed"], result.raw["total_output_tokens"]) == (4, 4, 80)
    assert result.problems[0] == "4 of 8 requests failed"
    assert result.problems[-1] == "reasons of failure: the connection ended in the middle of the answer (4)"


@pytest.mark.parametrize(
    ("options", "model", "message"),
    [
        (["--fail", "500"], "model", "all 4 requests failed: HTTP 500: EngineCore encountered an issue. (4)"),
        ([], "other", "all 4 requests failed: HTTP 404: The model `other` does not exist. (4)"),
        (["--max-model-len", "9"], "model", "all 4 requests failed: HTTP 400: the request does not fit max_model_len (4)"),
        (["--fail", "hang-after=1"], "model", "the pass did not finish within 2 s: 0 of 4 requests were done"),
    ],
)  # fmt: skip
def test_a_pass_that_measures_nothing_fails(options: list[str], model: str, message: str, tmp_path: Path) -> None:
    load = Load(prompts=4, input_len=8, output_len=6, concurrency=4, vocabulary=1000)
    with fake_server(*options) as address, pytest.raises(PassFailedError) as caught:
        run_pass(address, model, load, tmp_path / "pass0.json", timeout_s=2)
    assert caught.value.message == message


def test_a_pass_can_be_stopped_from_another_thread(tmp_path: Path) -> None:
    # GIVEN a server that hangs WHEN the watchdog says stop THEN the pass ends
    load = Load(prompts=4, input_len=8, output_len=6, concurrency=4, vocabulary=1000)
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    with fake_server("--fail", "hang-after=1") as address, pytest.raises(PassFailedError) as caught:
        run_pass(address, "model", load, tmp_path / "pass0.json", timeout_s=100, cancelled=stop)
    assert caught.value.message == "the pass was stopped after 0 of 4 requests"


class Seen:
    """Progress as the window wants it, read from /metrics."""

    generated_tokens = None

    def __init__(self, text: str) -> None:
        self.running = self._sum(text, "num_requests_running")
        self.waiting = self._sum(text, "num_requests_waiting")
        self.engine_steps = self._sum(text, "iteration_tokens_total_count")

    @staticmethod
    def _sum(text: str, name: str) -> float | None:
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"vllm:{name}{{"))


class Driven:
    """A fake server with what the window needs, and a memory of what was called."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.calls: list[str] = []

    def progress(self) -> Seen:
        with urlopen(f"{self.address}/metrics", timeout=20) as answer:
            return Seen(answer.read().decode())

    def post(self, route: str) -> None:
        self.calls.append(route)
        with urlopen(Request(f"{self.address}/{route}", b""), timeout=60) as answer:
            assert answer.status == 200

    def server(self) -> Server:
        return Server(
            self.address, "model", self.progress,
            lambda: self.post("start_profile"), lambda: self.post("stop_profile"), engines=2, ranks=2,
        )  # fmt: skip


def options(traces: Path, *more: str) -> list[str]:
    config = {"profiler": "torch", "torch_profiler_dir": str(traces), "max_iterations": WINDOW.iterations}
    return ["--profiler-config", json.dumps(config), "--step-ms", "20", *more]


LOAD = Load(prompts=8, input_len=8, output_len=2000, concurrency=8, vocabulary=1000)


def test_a_window(tmp_path: Path) -> None:
    # GIVEN a server that closes its window after five steps and writes slowly, and a trace of an earlier window
    old = tmp_path / "dp0_pp0_tp0_dcp0_ep0_rank0.1796074479228585040.pt.trace.json.gz"
    old.write_bytes(b"x")
    with fake_server(*options(tmp_path, "--write-s", "0.5")) as address:
        driven = Driven(address)
        # WHEN it is profiled
        result = profile_window(driven.server(), LOAD, WINDOW, tmp_path)
        # THEN all requests ran throughout, both ranks' traces are whole, and no request is left behind
        assert (result.running_at_open, result.running_at_close, result.problems) == (8, 8, ())
        assert result.closed_by == "iterations" and result.engine_steps is not None and result.engine_steps >= 10
        assert [file.partition(".")[0] for file in result.rank_files] == [
            "dp0_pp0_tp0_dcp0_ep0_rank0",
            "dp1_pp0_tp0_dcp0_ep1_rank0",
        ]
        assert old.name not in result.rank_files and result.opened_at < result.closed_at
        assert driven.calls == ["start_profile", "stop_profile"]
        assert driven.progress().running == 0


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        ("no-trace", "no trace appeared within 1 s after the window"),
        ("one-rank-missing", "1 of 2 ranks left a trace within 1 s: dp0_pp0_tp0_dcp0_ep0_rank0"),
        ("tiny-trace", "so little that nothing can be in it"),
        ("cut-trace", "ends in the middle"),
        ("tmp-trace", "was not finished within 1 s"),
        ("slow-stop", "the server did not answer /stop_profile within 6 s"),
    ],
)
def test_a_window_without_whole_traces_fails(fail: str, message: str, tmp_path: Path) -> None:
    window = Window(iterations=5, seconds=20.0, start_s=20.0, stop_s=1.0, traces_s=1.0)
    with fake_server(*options(tmp_path, "--fail", fail)) as address, pytest.raises(WindowFailedError) as caught:
        profile_window(Driven(address).server(), LOAD, window, tmp_path)
    assert message in caught.value.message


def test_a_window_that_cannot_be_opened_is_not(tmp_path: Path) -> None:
    # GIVEN servers on which the requests never all run: too few places, too short, refused
    cases = [
        (["--max-num-seqs", "2"], LOAD, "8 requests did not run together within 1 s; 4 ran and 4 waited"),
        (["--max-num-seqs", "2"], Load(8, 8, 4, vocabulary=9), "a request ended before all 8 ran"),
        (["--fail", "500"], LOAD, "requests for the profile window failed: HTTP 500"),
    ]
    for more, load, message in cases:
        with fake_server(*options(tmp_path, *more)) as address:
            driven = Driven(address)
            # WHEN it is tried THEN the reason is told, and the profiler was not started
            with pytest.raises(WindowFailedError) as caught:
                profile_window(driven.server(), load, WINDOW, tmp_path, open_s=1.0)
            assert caught.value.message.startswith(message) and driven.calls == []


def test_requests_that_end_too_early_are_a_problem(tmp_path: Path) -> None:
    # GIVEN requests that end while the window is open, closed by time
    load = Load(prompts=4, input_len=8, output_len=40, concurrency=4, vocabulary=1000)
    window = Window(iterations=10_000, seconds=3.0, start_s=20.0, stop_s=20.0, traces_s=20.0)
    with fake_server(*options(tmp_path)) as address:
        result = profile_window(Driven(address).server(), load, window, tmp_path)
    # THEN their places were kept busy, the traces are there, and that is said of them
    assert (result.closed_by, result.running_at_close) == ("seconds", 4)
    assert len(result.problems) == 1
    assert re.fullmatch(r"\d+ requests ended before the window closed, and were sent again", result.problems[0])


def test_a_stall_ends_the_window_and_stops_the_profiler(tmp_path: Path) -> None:
    # GIVEN a check that finds a stall once the window is open
    with fake_server(*options(tmp_path)) as address:
        driven = Driven(address)

        def check() -> None:
            if driven.calls:
                raise StalledError("no token")

        plain = driven.server()
        server = Server(
            plain.address, "model", plain.progress, plain.start, plain.stop, engines=2, ranks=2, check=check
        )
        # WHEN it is profiled THEN the stall is what is told, and the profiler was told to stop
        with pytest.raises(StalledError):
            profile_window(server, LOAD, WINDOW, tmp_path)
        assert driven.calls == ["start_profile", "stop_profile"]
