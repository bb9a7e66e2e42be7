"""Reports of load clients as text: whole, cut, several in one file, among log lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeprof.errors import ResultError
from moeprof.traces.benchmarks.reading import parse_results, read_results
from moeprof.traces.benchmarks.results import BenchmarkPass

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
HEADER = "================= Serving Benchmark Result ================="
SHORT = f"{HEADER}\nSuccessful requests:    4\nBenchmark duration (s):   2.00\n"


def passes(text: str) -> tuple[BenchmarkPass, ...]:
    return parse_results(text.encode(), "out.txt").passes


def test_an_excerpt_lacks_what_it_lacks() -> None:
    # GIVEN a report cut after the TPOT part WHEN it is read THEN what is missing is absent, and the rest has its digits
    (found,) = read_results(SAMPLES / "decode" / "base0_pass0.txt").passes
    assert found.client == "vllm-rs"
    assert (found.values["median_tpot_ms"], found.printed["median_tpot_ms"]) == (13.89, "13.89")
    assert (found.values["completed"], found.values["failed"], found.values["total_output_tokens"]) == (256, 0, 131072)
    assert "median_itl_ms" not in found.values
    assert found.steady_state == {}
    assert found.speculative is None


def test_several_runs_in_one_text() -> None:
    # GIVEN three runs with steady-state parts and summaries behind them
    found = read_results(SAMPLES / "bench" / "rs.txt").passes
    # WHEN they are read THEN there are three passes, and neither part nor summary is mixed into them
    assert [item.values["output_throughput"] for item in found] == [1698.48, 1700.21, 1704.43]
    assert [item.steady_state["output_throughput"] for item in found] == [576.42, 568.75, 568.26]
    assert [item.repeat for item in found] == [0, 1, 2]
    assert [item.speculative for item in found] == [True] * 3
    assert all("Throughput CV" not in item.values for item in found)


@pytest.mark.parametrize("stem", ["py", "h200_base_pass0"])
def test_text_and_json_of_a_pass_agree(stem: str) -> None:
    # GIVEN both outputs of one pass, the text with log lines and a progress bar
    (text,) = read_results(SAMPLES / "bench" / f"{stem}.txt").passes
    (full,) = read_results(SAMPLES / "bench" / f"{stem}.json").passes
    # THEN every figure of the text is that of the JSON, rounded
    shared = [name for name in text.printed if name in full.values]
    assert len(shared) > 30
    for name in shared:
        decimals = len(text.printed[name].partition(".")[2])
        assert abs(text.values[name] - full.values[name]) <= 0.5001 * 10**-decimals, name
    assert (text.client, full.client) == ("vllm", "vllm")


def test_colour_and_carriage_returns_do_not_matter() -> None:
    # GIVEN a coloured log line, a progress bar and a report with Windows line ends
    text = "\x1b[32mINFO\x1b[0m x: 5\n 0%|  |\r100%|##|" + "\r" + SHORT.replace("\n", "\r\n")
    # THEN the report is read
    assert passes(text)[0].values == {"completed": 4, "duration": 2.0}


def test_an_unknown_label_keeps_its_name() -> None:
    # GIVEN a figure that no client of ours prints THEN it stands under its label
    assert passes(SHORT + "Cache hits (%):   12.50\n")[0].values["Cache hits (%)"] == 12.5


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (f"{HEADER}\nSuccessful requests:  4\n", "the report has no duration", 1),
        (SHORT + "Mean TTFT (ms):      nan\n", "Mean TTFT (ms) is nan, not a number", 4),
        (SHORT + "Mean TTFT (ms):      lots\n", "Mean TTFT (ms) is lots, not a number", 4),
        (SHORT + "Mean TTFT (ms):\n", "Mean TTFT (ms) has no figure", 4),
        (SHORT + "Mean TTFT (ms):  1.0\nMean TTFT (ms):  2.0\n", "Mean TTFT (ms) stands twice, as 1.0 and 2.0", 5),
    ],
)
def test_a_damaged_report_is_refused(text: str, message: str, line: int) -> None:
    # WHEN a report is no report THEN the error says what and where
    with pytest.raises(ResultError) as caught:
        passes(text)
    assert (caught.value.message, caught.value.line) == (message, line)


@pytest.mark.parametrize("content", [b"", b"  \n", b"hello", b"\x00\x01", b"{}", b"[]", b"[1]", b'{"a": 1'])
def test_what_is_no_result_is_refused(content: bytes) -> None:
    # WHEN there is no result in the bytes THEN an error says so
    with pytest.raises(ResultError):
        parse_results(content, "x")


def test_json_of_the_clients() -> None:
    # GIVEN results of the three clients
    base = {"duration": 2.0, "completed": 4, "output_throughput": 8.0, "request_rate": "inf"}
    kinds = {
        "vllm": {**base, "date": "20261130-203730", "endpoint_type": "vllm"},
        "vllm-rs": {**base, "date": "2026-11-30T20:34:56Z", "steady_state": {"output_throughput": 3.0}},
        "builtin": base,
    }
    # THEN each is told by what it writes, and the steady-state part stays apart
    for client, value in kinds.items():
        (found,) = parse_results(json.dumps(value).encode(), "x").passes
        assert (found.client, found.values["output_throughput"], found.rate) == (client, 8.0, float("inf"))
    assert parse_results(json.dumps(kinds["vllm-rs"]).encode(), "x").passes[0].steady_state == {
        "output_throughput": 3.0
    }


@pytest.mark.parametrize("change", [{"duration": "long"}, {"duration": 0}, {"request_rate": "soon"}])
def test_json_that_cannot_be_used(change: dict[str, object]) -> None:
    # WHEN a figure that makes a result is wrong THEN it is refused
    with pytest.raises(ResultError):
        parse_results(json.dumps({"duration": 1.0, "completed": 4, "output_throughput": 8.0} | change).encode(), "x")


def test_json_with_nan_is_refused() -> None:
    # GIVEN a NaN, which JSON does not know and Python writes all the same
    with pytest.raises(ResultError, match="output_throughput is nan"):
        parse_results(b'{"duration": 1.0, "completed": 4, "output_throughput": NaN}', "x")


def test_one_object_per_line() -> None:
    # GIVEN a file that --append-result has grown WHEN it is read THEN each line is a pass
    line = json.dumps({"duration": 1.0, "completed": 4, "output_throughput": 8.0})
    found = parse_results(f"{line}\n{line.replace('8.0', '9.0')}\n".encode(), "x").passes
    assert [(item.repeat, item.values["output_throughput"]) for item in found] == [(0, 8.0), (1, 9.0)]
