"""What names and paths stand for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from moeprof import diff
from moeprof.errors import InputNotFoundError, ManifestError
from moeprof.series.side import sides

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "samples"


def test_arms_of_the_store() -> None:
    # GIVEN a store with passes and evaluations of two arms WHEN the sides are looked up
    base, mega = sides("base", "mega", SAMPLES / "store")
    # THEN each holds its passes, its evaluations and no trace
    assert base.samples is not None
    assert mega.samples is not None
    assert [(item.block, item.number) for item in base.samples.samples] == [(b, n) for b in (0, 2) for n in range(3)]
    assert [item.block for item in mega.samples.samples] == [1, 1, 1]
    assert (base.trace, mega.trace, len(base.runs), len(mega.runs)) == (None, None, 2, 1)
    assert [item.correct for _, item in mega.evaluations] == [(1197, 1198), (1205, 1206), (1212,)]
    assert base.samples.samples[0].printed["output_throughput"] == "7142.76"


def test_paths_of_results_and_traces(tmp_path: Path) -> None:
    # GIVEN a file, a folder of files, and a folder with traces beside results
    file = str(SAMPLES / "decode" / "base0_pass0.txt")
    shutil.copy(SAMPLES / "bench" / "py.json", tmp_path)
    for trace in (SAMPLES / "h200" / "base").iterdir():
        shutil.copy(trace, tmp_path)
    one, mixed = sides(file, str(tmp_path))
    # THEN passes and traces are told apart by content
    assert (one.trace, one.samples and len(one.samples.samples)) == (None, 1)
    assert (mixed.trace, mixed.samples and len(mixed.samples.samples)) == (str(tmp_path), 1)
    plain, _ = sides(str(SAMPLES / "h200" / "base"), file)
    assert (plain.trace, plain.samples) == (str(SAMPLES / "h200" / "base"), None)


def test_results_on_one_side_only() -> None:
    # GIVEN a trace against results WHEN they are compared
    found = diff(SAMPLES / "h200" / "base", SAMPLES / "decode" / "base0_pass0.txt")
    # THEN what only one side has is named, and nothing is made up
    assert "trace-absent" in {finding.slug for finding in found.findings}
    assert {row.verdict for row in found.serving} == {"missing"}
    assert (found.verdict, found.structure) == ("inconclusive", ())


def test_names_that_stand_for_nothing() -> None:
    # WHEN there is neither path nor arm THEN it is said
    with pytest.raises(InputNotFoundError):
        sides("base", "nobody", SAMPLES / "store")


def test_a_manifest_may_not_lead_out_of_its_run(tmp_path: Path) -> None:
    # GIVEN a stored run whose manifest names a file elsewhere
    shutil.copytree(SAMPLES / "store", tmp_path / "store")
    manifests = sorted((tmp_path / "store" / "runs" / "mega").glob("*/manifest.json"))
    manifest = next(path for path in manifests if "bench/mega1_pass0.txt" in path.read_text())
    manifest.write_text(manifest.read_text().replace('"bench/mega1_pass0.txt"', '"../../../../x.txt"'))
    # THEN it is refused
    with pytest.raises(ManifestError, match="is not there"):
        sides("base", "mega", tmp_path / "store")
