from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moeprof.errors import ConfigError, WindowFailedError
from moeprof.profiler.nsys.contents import contents
from moeprof.profiler.nsys.program import Nsys, find_nsys
from moeprof.profiler.nsys.session import Session


def program(folder: Path, text: str, name: str = "nsys") -> str:
    """A program in the place of nsys or its importer."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


SAYS = "echo 'NVIDIA Nsight Systems version 2025.3.1.90-1v0'"


def test_the_importer_is_looked_for_where_nsys_looks_and_beside(tmp_path: Path) -> None:
    # GIVEN Nsight Compute's layout: nsys in one folder of host, its importer in another one
    nsys = program(tmp_path / "host" / "target-linux-x64", SAYS)
    importer = program(tmp_path / "host" / "linux-desktop-x64", "", "QdstrmImporter")
    # WHEN it is looked at THEN it is there, and nsys does not find it
    assert find_nsys(nsys, {}) == Nsys(nsys, (2025, 3, 1, 90), importer, finds_importer=False)
    # GIVEN the importer in the folder where nsys looks THEN it does
    near = program(tmp_path / "host" / "host-linux-x64", "", "QdstrmImporter")
    assert find_nsys(nsys, {}) == Nsys(nsys, (2025, 3, 1, 90), near, finds_importer=True)


def test_no_nsys_and_something_else_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN no nsys WHEN looked for THEN the key that names one is told
    monkeypatch.setattr("moeprof.nsight._PLACES", {"nsys": ()})
    with pytest.raises(ConfigError, match="no nsys was found"):
        find_nsys(None, {"PATH": str(tmp_path)})
    # GIVEN another program, and one that is not there
    with pytest.raises(ConfigError, match="does not say that it is nsys"):
        find_nsys(program(tmp_path, "echo hello"), {})
    with pytest.raises(ConfigError, match="nsys does not run"):
        find_nsys(str(tmp_path / "absent"), {})


def session(tmp_path: Path, text: str, importer: str | None = None) -> Session:
    return Session(
        Nsys(program(tmp_path, text), (2025, 3), importer, finds_importer=importer is not None),
        "s",
        "node",
        dict(os.environ),
    )


def test_the_server_runs_behind_launch_and_nothing_is_recorded_yet(tmp_path: Path) -> None:
    # GIVEN a session WHEN its prefix is asked for THEN it names session, what is traced and the graph mode
    subject = session(tmp_path, "exit 0")
    assert subject.prefix()[1:] == ("launch", "--session-new=s", "--trace=cuda,nvtx", "--cuda-graph-trace=node")


def test_a_recording_without_importer_is_imported_by_hand(tmp_path: Path) -> None:
    # GIVEN an nsys that leaves a .qdstrm, and an importer in another folder
    importer = program(tmp_path / "other", 'cp "$2" "$4"', "QdstrmImporter")
    subject = session(tmp_path, f"touch {tmp_path}/out.qdstrm", importer)
    # WHEN the recording ends THEN a report is made of it, and the recording is gone
    assert subject.stop(tmp_path / "out", 10) == tmp_path / "out.nsys-rep"
    assert not (tmp_path / "out.qdstrm").exists()


@pytest.mark.parametrize(
    ("text", "importer", "said"),
    [
        ("touch {}/out.qdstrm", None, "has no importer"),
        ("touch {}/out.qdstrm", "echo 'error: libdw.so.1: cannot open'", "importer made no report: error: libdw.so.1"),
        ("echo 'nothing to stop'", None, "left no report: nothing to stop"),
        ("echo 'no such session' >&2; exit 1", None, "could not end its recording .it ended with 1.: no such session"),
        ("sleep 20", None, "did not end its recording within 0.3 s"),
    ],
)
def test_every_way_to_end_without_a_report_has_its_sentence(
    tmp_path: Path, text: str, importer: str | None, said: str
) -> None:
    # GIVEN an nsys that fails in some way
    made = program(tmp_path / "other", importer, "QdstrmImporter") if importer else None
    subject = session(tmp_path, text.format(tmp_path), made)
    # WHEN the recording is ended THEN one sentence says how
    with pytest.raises(WindowFailedError, match=said):
        subject.stop(tmp_path / "out", 0.3 if "sleep" in text else 10)


def real_nsys() -> Nsys:
    """The machine's own nsys; the test is skipped where there is none."""
    try:
        return find_nsys()
    except ConfigError as error:
        pytest.skip(f"NO REAL NSYS: {error.message}")


@pytest.mark.timeout(240)
def test_a_real_nsys_records_the_ranges_of_a_running_program(tmp_path: Path) -> None:
    # GIVEN a program that writes NVTX ranges for ever, under a real nsys that records nothing yet
    nsys = real_nsys()
    pytest.importorskip("nvtx", reason="NO MODULE nvtx: the recorded program writes no ranges")
    script = tmp_path / "program.py"
    script.write_text(
        "import nvtx, time\nwhile True:\n    with nvtx.annotate('moeprof.iter#1', domain='moeprof'):\n        time.sleep(0.02)\n"
    )
    subject = Session(nsys, f"moeproftest{os.getpid()}", "node", dict(os.environ))
    with subprocess.Popen([*subject.prefix(), sys.executable, str(script)]) as process:
        try:
            time.sleep(2)
            # WHEN a second of it is recorded
            subject.start(tmp_path / "w", 60)
            time.sleep(1)
            file = subject.export(subject.stop(tmp_path / "w", 120), 120)
            # THEN the export holds ranges
            assert contents(file).ranges > 10
        finally:
            subject.shut(20)
            subprocess.run(["pkill", "-f", str(script)], check=False)
            process.kill()
