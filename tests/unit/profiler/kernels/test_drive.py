from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from moeprof import nsight
from moeprof.config.schema import Arm, Expect, Server
from moeprof.errors import CaptureError, ConfigError, UsageError
from moeprof.profiler.kernels import tools as looking
from moeprof.profiler.kernels.drive import launch, run
from moeprof.profiler.kernels.order import LayerOrder, floor_order, layer_order
from moeprof.profiler.kernels.site.moeprof_kernels.request import Shape, read
from moeprof.profiler.kernels.tools import Tools, choose

SHAPE = Shape(64, 32, 8, 2, "fp8_block")
FOUND = Tools("/opt/ncu", (2025, 3, 1), (0, 9, 6), "/opt/extras/python")


def arm(*flags: str, command: tuple[str, ...] = ("vllm",)) -> Arm:
    return Arm("base", flags, {"A": "1"}, Server(command=command, model="m"), Expect())


def order(python: str = sys.executable) -> LayerOrder:
    return LayerOrder("base", "triton", python, {"A": "1"}, SHAPE, (16, 64), runs=2)


def test_the_backend_is_the_arms_flag() -> None:
    # GIVEN arms that name a backend, or none WHEN ordered THEN it is theirs, or vLLM's own choice
    assert layer_order(arm("--moe-backend", "humming"), SHAPE, [16]).backend == "humming"
    assert layer_order(arm("--moe-backend=triton"), SHAPE, [16]).backend == "triton"
    assert layer_order(arm(), SHAPE, [16]).backend == "auto"


@pytest.mark.parametrize("backend", ["deep_gemm_mega_moe", "flashinfer_moe_ep"])
def test_a_launch_that_waits_for_other_ranks_is_refused(backend: str) -> None:
    # GIVEN a fused kernel with dispatch and combine inside WHEN ordered THEN replaying it alone is refused
    with pytest.raises(ConfigError, match="waits for other ranks"):
        layer_order(arm("--moe-backend", backend), SHAPE, [16])


def test_the_python_is_the_servers() -> None:
    # GIVEN a server started through a Python, or through a program beside one
    assert layer_order(arm(command=("/venv/bin/python", "-m", "x")), SHAPE, [1]).python == "/venv/bin/python"
    beside = Path(sys.executable).parent / "vllm"
    assert layer_order(arm(command=(str(beside),)), SHAPE, [1]).python == str(beside.parent / "python")
    # THEN the floor runs in the same one, in bf16
    floor = floor_order(layer_order(arm(command=("/venv/bin/python",)), SHAPE, [1]), SHAPE, [1])
    assert (floor.python, floor.shape.weights, floor.backend) == ("/venv/bin/python", "bf16", "torch")


def test_ncu_is_given_the_ranges_and_nsight_python_its_module(tmp_path: Path) -> None:
    # GIVEN an order WHEN composed for ncu THEN only our ranges are profiled, clocks and caches are left alone
    plain = launch(order(), "ncu", FOUND, ("gpu__time_duration.sum",), tmp_path)
    words = " ".join(plain.argv)
    assert words.startswith("/opt/ncu --nvtx --nvtx-include regex:moeprof")
    assert "--clock-control none --cache-control none --metrics gpu__time_duration.sum" in words
    # AND for nsight-python the program starts by itself, with Nsight Compute's module within reach
    driven = launch(order(), "nsight-python", FOUND, ("m",), tmp_path)
    assert driven.argv[0] == sys.executable
    assert driven.env["PYTHONPATH"].endswith("/opt/extras/python")
    # AND the request says everything the program needs
    plain.request_file.write_text(plain.request)
    assert read(str(plain.request_file)).shape == SHAPE
    assert json.loads(plain.request)["batches"] == [16, 64]


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        ("auto", FOUND, "nsight-python"),
        ("ncu", FOUND, "ncu"),
        ("auto", replace(FOUND, nsight_python=None), "ncu"),
        ("auto", replace(FOUND, nsight_python=(1, 1, 0)), "ncu"),
        ("auto", replace(FOUND, nsight_python=(1, 1, 0), ncu_version=(2026, 3)), "nsight-python"),
    ],
)
def test_the_driver_is_the_first_that_fits(wanted: str, found: Tools, expected: str) -> None:
    # GIVEN what is installed WHEN a driver is chosen THEN nsight-python where it fits the ncu
    assert choose(wanted, found) == expected


def test_a_driver_that_does_not_fit_is_refused_with_the_cure() -> None:
    # GIVEN nsight-python 1 and an older ncu WHEN it is asked for THEN both versions are named
    with pytest.raises(
        UsageError, match=r"nsight-python 1.1.0 needs ncu 2026.2.1 or newer, and the one here is 2025.3.1"
    ):
        choose("nsight-python", replace(FOUND, nsight_python=(1, 1, 0)))
    with pytest.raises(UsageError, match="no ncu was found"):
        choose("auto", replace(FOUND, ncu=None))


def test_tools_are_asked_for_their_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN an ncu on PATH and a Python without nsight-python
    program = tmp_path / "ncu"
    program.write_text("#!/bin/sh\necho 'Version 2025.3.1.0 (build 1) (public-release)'\n")
    program.chmod(0o755)
    monkeypatch.setattr(nsight, "COMPUTE", tmp_path / "none")
    # WHEN they are looked for THEN the version is the one it says
    found = looking.find_tools(sys.executable, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert found == Tools(str(program), (2025, 3, 1, 0), None, None)


def script(tmp_path: Path, text: str) -> str:
    """A program in the place of ncu."""
    file = tmp_path / "ncu"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_a_report_that_is_left_is_returned(tmp_path: Path) -> None:
    # GIVEN an ncu that leaves a report
    ncu = script(tmp_path, 'while [ "$1" != --export ]; do shift; done; echo report > "$2"')
    command = launch(order(), "ncu", replace(FOUND, ncu=ncu), ("m",), tmp_path)
    # WHEN it is run THEN the report is there
    assert run(order(), command, 30, lambda _: None).read_text() == "report\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo 'ValueError: no such backend' >&2; exit 1", "the program ended with 1: ValueError: no such backend"),
        ("exit 0", "no report of Nsight Compute was left"),
        ("sleep 60", "was not measured within 0.2 s"),
    ],
)
def test_a_run_that_fails_says_why_and_shows_the_log(tmp_path: Path, text: str, said: str) -> None:
    # GIVEN an ncu that fails in some way
    command = launch(order(), "ncu", replace(FOUND, ncu=script(tmp_path, f"echo working\n{text}")), ("m",), tmp_path)
    told: list[str] = []
    # WHEN it is run THEN one sentence says why, and the log's end was told
    with pytest.raises(CaptureError, match=said):
        run(order(), command, 0.2 if "sleep" in text else 30, told.append)
    assert "base: working" in told


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    # GIVEN a Python that does not exist WHEN started THEN the error names it
    command = launch(order("/nowhere/python"), "nsight-python", FOUND, ("m",), tmp_path)
    with pytest.raises(CaptureError, match="/nowhere/python does not start"):
        run(order("/nowhere/python"), command, 5, lambda _: None)
