"""Every error of the analysis from an input that raises it: a path or a command line, through the whole program."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from moeprof import errors
from moeprof.cli import main

ODD = Path(__file__).parents[1] / "data" / "odd"

#: Arguments, the first line on stderr, and what else is told. `{tmp}` is a folder with `FILES`.
REAL: dict[type[errors.MoeprofError], tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    errors.UsageError: (
        ("report", "{tmp}/markers.json", "--format", "json", "--output", "text=-"),
        "error[usage]: two formats go to stdout",
        ("  try: use one of --format FORMAT and --output FORMAT=-",),
    ),
    errors.InputNotFoundError: (
        ("report", "{tmp}/absent"),
        "error[input-not-found]: no such file or folder",
        ("  at: {tmp}/absent", "  try: give a trace file, or a folder that holds one trace file per rank"),
    ),
    errors.TraceEmptyError: (
        ("report", "{odd}/13_zero_bytes.json"),
        "error[trace-empty]: the file is empty",
        ("  at: {odd}/13_zero_bytes.json",),
    ),
    errors.TraceTruncatedError: (
        ("report", "{tmp}/cut.json"),
        "error[trace-truncated]: the file ends inside an event",
        ("  at: {tmp}/cut.json:1 (byte 27)", "  try: the writer did not finish; --recover reads what is whole"),
    ),
    errors.TraceMalformedError: (
        ("report", "{odd}/01_unescaped_quote.json"),
        "error[trace-malformed]: unescaped quote in a string",
        ("  try: --recover reads what is whole and leaves the broken events out",),
    ),
    errors.ManyDocumentsError: (
        ("report", "{odd}/20_two_documents.json.gz"),
        "error[trace-many-documents]: more than one JSON document in the file",
        ("  try: several ranks wrote to one path: give each rank a file of its own and capture again",),
    ),
    errors.NotATraceError: (
        ("report", "{tmp}/settings.json"),
        "error[not-a-trace]: ",
        ("  at: {tmp}/settings.json",),
    ),
    errors.UnsupportedFormatError: (
        ("report", "{tmp}/run.qdstrm"),
        "error[format-unsupported]: a stream of Nsight Systems 2023.4 that its importer never made a report of",
        (
            "  at: {tmp}/run.qdstrm",
            "  try: convert it with the importer of the same nsys: QdstrmImporter -i run.qdstrm",
        ),
    ),
    errors.DuplicateRankError: (
        ("report", "{odd}/56_duplicate_ranks"),
        "error[rank-duplicate]: 2 files are ",
        ("  try: name one of the files, or keep each capture window in a folder of its own",),
    ),
    errors.RulesError: (
        ("report", "{tmp}/markers.json", "--rules", "{tmp}/rules.toml"),
        "error[rules-invalid]: unknown key 'rules' in the rules file",
        ("  at: {tmp}/rules.toml",),
    ),
    errors.NativeMissingError: (
        ("report", "{tmp}/markers.json"),
        "error[native-missing]: the native reader does not load: ",
        ("  try: make build, or install a built package of moeprof",),
    ),
    errors.ResultError: (
        ("ingest", "{tmp}/empty.txt", "--arm", "x", "--store", "{tmp}/store"),
        "error[result-invalid]: the file is empty",
        ("  at: {tmp}/empty.txt",),
    ),
    errors.ConflictError: (
        ("ingest", "{tmp}/pass.txt", "{tmp}/copy.txt", "--arm", "x", "--store", "{tmp}/store"),
        "error[result-conflict]: copy.txt holds the same bytes as pass.txt",
        ("  at: {tmp}/copy.txt", "  try: leave the copy out"),
    ),
    errors.MetricsError: (
        ("diff", "{tmp}/pass.txt", "{tmp}/pass.txt", "--metrics", "{tmp}/metrics.toml"),
        "error[metrics-invalid]: metric 'speed' has no direction",
        ("  at: {tmp}/metrics.toml", '  try: say better = "higher" or better = "lower"'),
    ),
    errors.ClaimError: (
        ("claims", "{tmp}/claims.toml"),
        "error[claim-invalid]: claim 1 names no metric",
        ("  at: {tmp}/claims.toml",),
    ),
    errors.BaselineError: (
        ("gate", "{tmp}/markers.json", "--baseline", "{tmp}/settings.json"),
        "error[baseline-invalid]: the file is no baseline of moeprof",
        ("  at: {tmp}/settings.json", "  try: moeprof baseline accept ARM_OR_PATH --reason TEXT writes one"),
    ),
    errors.NothingToCompareError: (
        ("diff", "{tmp}/markers.json", "{tmp}/launches.json"),
        "error[nothing-to-compare]: not comparable: ",
        ("  try: moeprof report PATH shows what each side holds",),
    ),
}
FILES = {
    "empty.txt": "",
    "pass.txt": "== Serving Benchmark Result ==\nSuccessful requests: 1\nBenchmark duration (s): 1.00\n",
    "copy.txt": "== Serving Benchmark Result ==\nSuccessful requests: 1\nBenchmark duration (s): 1.00\n",
    "metrics.toml": '[metrics.speed]\nunit = "m/s"\n',
    "claims.toml": '[[claim]]\ntext = "5 % better"\n',
    "cut.json": '{"traceEvents": [{"ph": "X"',
    "settings.json": '{"editor": "vi"}',
    "run.qdstrm": "NVIDIA Nsight Systems Stream 2023.4.4.54-234433681190v0",
    "rules.toml": "[rules]\n",
    "markers.json": '{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "execute_context_0(0)_generation_1(1)",'
    ' "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}',
    "launches.json": '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1,'
    ' "args": {"device": 0, "stream": 7}}]}',
}


@pytest.mark.parametrize("kind", REAL, ids=lambda kind: kind.slug)
def test_an_input_raises_its_error(
    kind: type[errors.MoeprofError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN an input that cannot be used
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    if kind is errors.NativeMissingError:
        monkeypatch.setitem(sys.modules, "moeprof._native", None)
        monkeypatch.delattr("moeprof._native", raising=False)
    arguments, first, others = REAL[kind]
    out, err = io.StringIO(), io.StringIO()
    # WHEN the program runs
    code = main([argument.format(tmp=tmp_path, odd=ODD) for argument in arguments], out, err)
    # THEN the code, what happened, where and what to do reach the user
    lines = err.getvalue().splitlines()
    assert code == kind.exit_code == 2
    assert lines[0].startswith(f"moeprof: {first}")
    assert f"[{kind.slug}]" in lines[0]
    for other in others:
        assert any(line.startswith(other.format(tmp=tmp_path, odd=ODD)) for line in lines), lines
