"""moeprof ingest, the whole command: what is stored, and what is refused with nothing left behind."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from moeprof.cli import main
from moeprof.store.folder import Store

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "samples"
DECODE = r"(?P<arm>\w+?)(?P<block>\d)_pass(?P<pass>\d)\.txt"
HEADER = "============ Serving Benchmark Result ============"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MOEPROF_STORE", raising=False)


def call(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in argv], out, err)
    return code, out.getvalue(), err.getvalue()


def report(rate: float, *, requests: int = 64, concurrency: int = 8, failed: int = 0) -> str:
    """Return a client's text."""
    return (
        f"{HEADER}\nSuccessful requests:   {requests - failed}\nFailed requests:   {failed}\n"
        f"Maximum request concurrency:   {concurrency}\nBenchmark duration (s):   1.00\n"
        f"Output token throughput (tok/s):   {rate:.2f}\n{'=' * 50}\n"
    )


def runs(arm: str) -> list[tuple[int, list[object]]]:
    """Return block and numbers of the passes of each stored run."""
    stored = Store(Path(".moeprof")).runs(arm)
    return [(run.manifest.block, [entry["number"] for entry in run.manifest.passes]) for run in stored]


def nothing_stored() -> bool:
    kept = Path(".moeprof/runs")
    return not kept.exists() or not any(kept.iterdir())


def test_a_pattern_makes_blocks_of_a_folder() -> None:
    # GIVEN nine outputs named after arm, block and pass
    code, out, err = call("ingest", str(SAMPLES / "decode"), "--pattern", DECODE)
    # WHEN they are ingested THEN each block is a run, and what the pattern leaves out is named
    assert (code, len(out.splitlines())) == (0, 3)
    assert (runs("base"), runs("mega")) == ([(0, [0, 1, 2]), (2, [0, 1, 2])], [(1, [0, 1, 2])])
    assert "CHECK.toml" in err
    # AND the manifest tells gates without evidence from those with it, and keeps the file as it came
    run = Store(Path(".moeprof")).runs("mega")[0]
    outcomes = {gate["name"]: gate["outcome"] for gate in run.manifest.gates}
    assert outcomes.pop("no-failed-requests") == "pass"
    assert set(outcomes.values()) == {"no-data"}
    assert not any(gate["required"] for gate in run.manifest.gates)
    kept = run.path / "bench" / "mega1_pass0.txt"
    assert kept.read_bytes() == (SAMPLES / "decode" / "mega1_pass0.txt").read_bytes()


def test_the_published_table_from_scratch() -> None:
    # GIVEN the nine outputs in the store WHEN the arms are compared
    call("ingest", str(SAMPLES / "decode"), "--pattern", DECODE)
    code, out, _ = call("diff", "base", "mega", "--format", "json")
    value = json.loads(out)
    rows = {row["metric"]: row for row in value["serving"]}
    # THEN medians, ranges and changes are those that were published
    assert code == 0
    output, tpot, ttft = (rows[name] for name in ("output_throughput", "median_tpot_ms", "median_ttft_ms"))
    assert [output["base"][key] for key in ("median", "min", "max", "n")] == [7040.49, 6586.89, 7257.96, 6]
    assert [output["candidate"][key] for key in ("median", "min", "max", "n")] == [7513.38, 7378.31, 7564.19, 3]
    assert (tpot["base"]["median"], tpot["candidate"]["median"]) == (13.875, 11.35)
    assert (ttft["base"]["median"], ttft["candidate"]["median"]) == (1440.105, 1826.18)
    changes = [round(100 * row["change"], 2) for row in (output, tpot, ttft)]
    assert changes == [6.72, -18.2, 26.81]
    labels = [row["label"] for row in (output, tpot, ttft)]
    assert labels == ["A/B/A complete", "A/B/A complete", "A/B/A, drifted"]
    assert value["verdict"] == "regressed"


def test_swapped_arms_invert_the_ratios() -> None:
    # GIVEN both orders of the arms THEN ratios are reciprocals, and improvements are regressions
    call("ingest", str(SAMPLES / "decode"), "--pattern", DECODE)
    one, other = (
        json.loads(call("diff", *arms, "--format", "json")[1]) for arms in (("base", "mega"), ("mega", "base"))
    )
    for row, back in zip(one["serving"], other["serving"], strict=True):
        assert row["metric"] == back["metric"]
        assert (1 + row["change"]) * (1 + back["change"]) == pytest.approx(1)
        assert (1 + row["interval"][0]) * (1 + back["interval"][1]) == pytest.approx(1)
        assert (row["p"], row["delta"]) == (back["p"], -back["delta"])


def test_text_and_json_are_one_pass() -> None:
    # GIVEN JSON of three passes and the text of one of them WHEN all are ingested
    files = [
        str(SAMPLES / "bench" / name)
        for name in ("h200_base_pass0.txt", *(f"h200_base_pass{n}.json" for n in range(3)))
    ]
    assert call("ingest", *files, "--arm", "h200")[0] == 0
    # THEN there are three passes at full precision, and all files are kept
    run = Store(Path(".moeprof")).runs("h200")[0]
    told = json.loads((run.path / "manifest.json").read_text())
    assert [entry["raw"]["output_throughput"] for entry in told["passes"]] == [
        5609.621653875338, 6468.32203811078, 6969.104751887414,
    ]  # fmt: skip
    assert len(list(run.bench.iterdir())) == 4
    assert run.manifest.passes[0]["text"] == "bench/h200_base_pass0.txt"


def test_one_text_with_three_runs() -> None:
    # GIVEN the text of --num-runs 3 THEN it is three passes, which a diff can read back
    assert call("ingest", str(SAMPLES / "bench" / "rs.txt"), "--arm", "rs")[0] == 0
    value = json.loads(call("diff", "rs", "rs", "--format", "json")[1])
    row = next(row for row in value["serving"] if row["metric"] == "output_throughput")
    assert row["base"]["values"] == [1698.48, 1700.21, 1704.43]
    assert not any(row["metric"] == "steady_state.output_throughput" for row in value["serving"])


def test_several_concurrencies_are_points_of_their_own(tmp_path: Path) -> None:
    # GIVEN a sweep with two passes at each of two concurrencies
    names = []
    for concurrency in (8, 64):
        for number in range(2):
            name = tmp_path / f"c{concurrency}_{number}.txt"
            name.write_text(report(100.0 + concurrency + number, concurrency=concurrency))
            names.append(str(name))
    assert call("ingest", *names, "--arm", "a")[0] == 0
    # THEN each is numbered, and compared, by itself
    value = json.loads(call("diff", "a", "a", "--format", "json")[1])
    assert [(row["workload"], row["base"]["values"]) for row in value["serving"] if row["gates"]] == [
        ("c8", [108.0, 109.0]), ("c64", [164.0, 165.0]),
    ]  # fmt: skip


def test_traces_and_results_of_a_block() -> None:
    # GIVEN a folder of rank traces, then results for the same arm
    assert call("ingest", str(SAMPLES / "h200" / "base"), "--arm", "t")[0] == 0
    assert call("ingest", str(SAMPLES / "gsm8k" / "decode_base.txt"), "--arm", "t")[0] == 0
    # THEN the arm's report is that of its traces, with the normalised tables beside them
    code, out, _ = call("report", "t", "--format", "json")
    assert (code, len(json.loads(out)["ranks"])) == (0, 2)
    first = Store(Path(".moeprof")).runs("t")[0]
    assert len(list(first.path.glob("events/rank=*/kernels.parquet"))) == 2


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a client's output on stdin
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(report(5.0).encode())))
    assert call("ingest", "-", "--arm", "piped")[0] == 0
    assert runs("piped") == [(0, [0])]


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        ({"a.txt": ""}, [], "the file is empty"),
        ({"a.txt": "hello\n"}, [], "neither a client's result, nor an evaluation, nor a trace"),
        ({"a.json": '{"duration": 1.0, "completed": 4, "out'}, [], "the JSON is damaged or cut"),
        ({"a.json": '{"traceEvents": [{"ph": "X"'}, [], "the file ends inside an event"),
        ({"a.txt": report(1.0), "b.txt": report(1.0)}, [], "b.txt holds the same bytes as a.txt"),
        ({"a.txt": report(1.0), "b.txt": "log\n" + report(1.0)}, [], "the same pass stands in a.txt and b.txt"),
        ({"a.txt": report(1.0), "b.txt": report(2.0, requests=9)}, [], "not passes of one workload: requests 64 and 9"),
        ({"a.txt": report(1.0), "b.txt": report(2.0)}, ["--pass", "3"], "are both pass 3 of block 0"),
        ({"a.txt": report(1.0)}, ["--arm", "../x"], "cannot be the name of an arm"),
        ({"a.txt": report(1.0)}, ["--pattern", "("], "--pattern is no regular expression"),
        ({"a.txt": report(1.0)}, ["--pattern", "(?P<who>a).txt"], "--pattern has a group 'who'"),
        ({"a.txt": report(1.0)}, ["--pattern", "(?P<arm>a).txt"], "--arm and the pattern both say the arm"),
        ({"a.txt": report(1.0)}, ["--pattern", "b.txt"], "a.txt does not match the pattern"),
        ({"a.txt": report(1.0)}, ["--pattern", "(?P<block>a).txt"], "for the block"),
        ({"a.txt": f"{HEADER}\nSuccessful requests:  4\nBenchmark duration (s):  nan\n"}, [], "is nan, not a number"),
        ({"a.txt": report(1.0), "a.json": '{"duration": 1.0, "completed": 64, "failed": 0, "output_throughput": 7.0}'},
         [], "a.txt and a.json share a name and disagree: output_throughput is 1.00 and 7.0"),
        ({"a.txt": report(7142.5).replace("7142.50", "7 142.50")}, [], "is '7 142.50', not one number"),
        ({"a.txt": report(7142.5).replace("7142.50", "7142.50 tok/s")}, [], "is '7142.50 tok/s', not one number"),
        ({"a.txt": report(-1.0)}, [], "Output token throughput (tok/s) is -1.0, below zero"),
        ({"a.txt": report(1.0).replace(":   64", ":   64.5")}, [], "Successful requests is 64.5, not a whole number"),
        ({"a.txt": report(1.0).replace("(s):   1.00", "(s):   0.00")}, [], "the duration is 0.00 s"),
        ({"a.txt": report(7142.5)[:-54]}, [], "the text ends within a number: output_throughput is 714"),
        ({"a.json": '{"duration": 1.0, "completed": 4, "output_throughput": "7.0"}'}, [], "is 7.0, not a number"),
        ({"a.json": '{"duration": 1.0, "completed": 4, "output_throughput": 7.0, "mean_ttft_ms": -1}'}, [], "below zero"),
        ({"a.json": '{"duration": 1.0, "completed": 4, "output_throughput": 7.0, "completed": 5}'}, [], "stands twice"),
        ({"a.json": "[]"}, [], "the file holds an empty list"),
        ({"a.json": '{"accuracy": 0.5, "num_questions": 4, "correct": [1, 1, 1, 1]}'}, [], "marked as right"),
        ({"a.json": '{"accuracy": 0.9, "num_questions": 10, "invalid_rate": 0.5}'}, [], "more than 10 questions"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(
    files: dict[str, str], arguments: list[str], message: str, tmp_path: Path
) -> None:
    # GIVEN inputs that are empty, garbage, given twice or contradictory
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    arm = [] if "--arm" in arguments else ["--arm", "x"]
    # WHEN they are ingested THEN the code is 2, one sentence says why, and nothing is stored
    code, out, err = call("ingest", *files, *arm, *arguments)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[0]
    assert nothing_stored()
    assert "Traceback" not in err


def test_what_is_stored_already_is_refused(tmp_path: Path) -> None:
    # GIVEN a stored pass
    for name, rate in (("a.txt", 1.0), ("b.txt", 2.0)):
        (tmp_path / name).write_text(report(rate))
    assert call("ingest", "a.txt", "--arm", "x")[0] == 0
    # WHEN it comes again, or another pass of its number THEN neither is taken; with a number of its own the other is
    assert "already stored, as bench/a.txt" in call("ingest", "a.txt", "--arm", "x", "--pass", "7")[2]
    code, _, err = call("ingest", "b.txt", "--arm", "x")
    assert code == 2
    assert "pass 0 of block 0 of x (c8) is already stored" in err
    assert call("ingest", "b.txt", "--arm", "x", "--pass", "1")[0] == 0
    assert sorted(runs("x")) == [(0, [0]), (0, [1])]
    value = json.loads(call("diff", "x", "x", "--format", "json")[1])
    assert value["serving"][0]["base"]["values"] == [1.0, 2.0]


def test_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN two blocks of which the second cannot be committed
    from moeprof.errors import StoreWriteError
    from moeprof.store.writer import RunWriter

    for name, rate in (("x0.txt", 1.0), ("x1.txt", 2.0)):
        (tmp_path / name).write_text(report(rate))
    commit = RunWriter.commit
    done: list[RunWriter] = []

    def second_fails(self: RunWriter, manifest: object) -> object:
        if done:
            raise StoreWriteError("cannot store the run: the disk is full")
        done.append(self)
        return commit(self, manifest)  # type: ignore[arg-type]  # whatever it was given

    monkeypatch.setattr(RunWriter, "commit", second_fails)
    # WHEN they are ingested THEN the first is taken back
    code, _, err = call("ingest", "x0.txt", "x1.txt", "--pattern", r"(?P<arm>x)(?P<block>\d)\.txt")
    assert code == 3
    assert "the disk is full" in err
    assert nothing_stored()


def test_a_failed_request_takes_a_pass_out(tmp_path: Path) -> None:
    # GIVEN three passes of which one had a failed request
    for number, failed in enumerate((0, 1, 0)):
        (tmp_path / f"p{number}.txt").write_text(report(100.0 + number, failed=failed))
    assert call("ingest", "p0.txt", "p1.txt", "p2.txt", "--arm", "x")[0] == 0
    # WHEN the arm is compared THEN two are left, the third is named, and --fail-on gate sees it
    code, out, _ = call("diff", "x", "x", "--format", "json", "--fail-on", "gate")
    value = json.loads(out)
    assert value["serving"][0]["base"]["values"] == [100.0, 102.0]
    assert [finding["slug"] for finding in value["findings"]].count("pass-excluded") == 2
    assert code == 1


def test_secrets_stay_out_of_the_manifest(tmp_path: Path) -> None:
    # GIVEN a result with a token among its metadata
    value = {"duration": 1.0, "completed": 1, "failed": 0, "output_throughput": 3.0, "note": "HF_TOKEN=hf_abcdefghij"}
    (tmp_path / "a.json").write_text(json.dumps(value))
    assert call("ingest", "a.json", "--arm", "x")[0] == 0
    assert "hf_abcdefghij" not in (Store(Path(".moeprof")).runs("x")[0].path / "manifest.json").read_text()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: ("\ufeff" + text).encode("utf-16-le"),
        lambda text: ("[rank0]: a warning {\n" + text).encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: gzip.compress(text.encode()),
    ],
    ids=["utf-16", "bracket", "crlf", "gzip"],
)
def test_the_same_pass_in_another_dress(change: Callable[[str], bytes], tmp_path: Path) -> None:
    # GIVEN an output of which the bytes differ, and the figures do not
    (tmp_path / "dressed.txt").write_bytes(change(report(1.0)))
    # WHEN it is ingested THEN it is read
    assert call("ingest", "dressed.txt", "--arm", "x")[0] == 0
    # AND what it tells is not taken a second time, in another block either
    (tmp_path / "plain.txt").write_text(report(1.0))
    code, _, err = call("ingest", "plain.txt", "--arm", "x", "--block", "2")
    assert (code, "tells of the pass that is stored as bench/dressed.txt" in err) == (2, True)


def test_text_after_its_json_is_no_second_pass(tmp_path: Path) -> None:
    # GIVEN a stored JSON WHEN the text of the same pass comes later THEN it is refused
    assert call("ingest", str(SAMPLES / "bench" / "h200_base_pass0.json"), "--arm", "x")[0] == 0
    code, _, err = call("ingest", str(SAMPLES / "bench" / "h200_base_pass0.txt"), "--arm", "x", "--block", "1")
    assert (code, "tells of the pass that is stored" in err) == (2, True)


def test_a_log_with_a_report_and_an_evaluation(tmp_path: Path) -> None:
    # GIVEN one log of both programs, in either order
    evaluated = (SAMPLES / "gsm8k" / "decode_base.txt").read_text()
    bench = (SAMPLES / "decode" / "base0_pass0.txt").read_text()
    other = (SAMPLES / "decode" / "base0_pass1.txt").read_text()
    (tmp_path / "a.txt").write_text(f"{bench}\n{evaluated}")
    (tmp_path / "b.txt").write_text(f"{evaluated}\n{other}")
    # WHEN both are ingested THEN neither part is lost, and no figure of the one stands among the other's
    assert call("ingest", "a.txt", "--arm", "a")[1].endswith("1 pass, 1 evaluation\n")
    assert call("ingest", "b.txt", "--arm", "b")[1].endswith("1 pass, 1 evaluation\n")
    found = json.loads(call("diff", "a", "b", "--format", "json")[1])
    assert {row["metric"] for row in found["serving"] if row["gates"]} == {
        "output_throughput", "median_tpot_ms", "median_ttft_ms",
    }  # fmt: skip
    assert [row["base"]["correct"] for row in found["accuracy"]] == [[[1209, 1210]]]
    assert "metrics-undeclared" not in {item["slug"] for item in found["findings"]}


def test_keys_in_any_order(tmp_path: Path) -> None:
    # GIVEN a JSON whose telling keys stand behind a long list
    full = json.loads((SAMPLES / "bench" / "h200_base_pass0.json").read_text())
    (tmp_path / "late.json").write_text(json.dumps({"generated_texts": ["x" * 100_000], **full}))
    # WHEN it is ingested THEN it is the pass that it is
    assert call("ingest", "late.json", "--arm", "x")[0] == 0


def test_a_report_on_what_holds_no_trace() -> None:
    # GIVEN an arm with timed passes only WHEN a report is asked for THEN the error says what there is, and what to do
    assert call("ingest", str(SAMPLES / "decode" / "base0_pass0.txt"), "--arm", "x")[0] == 0
    code, _, err = call("report", "x")
    assert (code, "holds no trace, only what was ingested" in err, "moeprof diff" in err) == (2, True, True)


def test_text_and_json_of_an_evaluation_are_one(tmp_path: Path) -> None:
    # GIVEN both outputs of one evaluation
    (tmp_path / "run.txt").write_text((SAMPLES / "gsm8k" / "decode_base.txt").read_text())
    (tmp_path / "run.json").write_text(json.dumps({"accuracy": 1210 / 1319, "num_questions": 1319}))
    # WHEN they are ingested THEN it is one run, with the count of the JSON
    assert call("ingest", "run.txt", "run.json", "--arm", "x")[1].endswith("1 evaluation\n")
    found = json.loads(call("diff", "x", "x", "--format", "json")[1])
    assert [row["base"]["correct"] for row in found["accuracy"]] == [[[1210, 1210]]]
    # AND where they disagree, neither is believed
    (tmp_path / "run.json").write_text(json.dumps({"accuracy": 0.5, "num_questions": 1319}))
    code, _, err = call("ingest", "run.txt", "run.json", "--arm", "y")
    assert (code, "the JSON of its name disagree" in err) == (2, True)


def test_a_device_is_no_file() -> None:
    # GIVEN a device that never ends WHEN it is named THEN it is refused before anything is read
    code, _, err = call("ingest", "/dev/zero", "--arm", "x")
    assert (code, "a device or a pipe, not a file" in err) == (2, True)


@pytest.mark.parametrize(
    ("pattern", "arm"),
    [
        (r"(?P<arm>.+)_pass\d+\.txt", "base12"),
        (r"(?P<arm>\w+?)(?P<block>\d+)_pass(?P<pass>\d+)\.txt", "base"),
        (r"(?P<arm>[^/]+)/base.+", "results"),
    ],
)
def test_a_pattern_takes_no_more_of_a_path_than_it_needs(pattern: str, arm: str, tmp_path: Path) -> None:
    # GIVEN a file in a folder, and a pattern that could swallow the folder's name
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "base12_pass3.txt").write_text(report(1.0))
    # WHEN it is ingested THEN the name of the file counts first, and folders only where the pattern asks for them
    code, out, _ = call("ingest", "results/base12_pass3.txt", "--pattern", pattern)
    assert (code, out.split("/")[0]) == (0, f"stored {arm}")
