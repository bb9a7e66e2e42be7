"""What processes are doing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from moeprof.profiler import stacks
from moeprof.profiler.family import Family, Member, has_proc, start_of

CODE = "import sys\ndef waits_for_input():\n    print('up', flush=True)\n    sys.stdin.read()\nwaits_for_input()"
STATES = (
    "State:\tS (sleeping)",
    "State:\tR (running)",
)  # it has said that it is up, and may still be on its way to wait
pytestmark = pytest.mark.skipif(not has_proc(), reason="needs /proc to see processes")


@pytest.fixture
def members() -> Iterator[list[Member]]:
    """Yield the family of one process that sits in a function."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield Family(process.pid, start_of(process.pid), "none").members()
        process.kill()


def test_without_py_spy_the_kernel_tells(members: list[Member], monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN no py-spy WHEN a process is looked at THEN its state and its one thread are told
    monkeypatch.setattr(stacks, "find_py_spy", lambda: None)
    lines = stacks.dump(members).splitlines()
    assert lines[0] == f"== process {members[0].pid} {members[0].name}"
    assert [line for line in lines if line in STATES] != []
    assert "Threads:\t1" in lines
    assert [line.split()[:2] for line in lines if line.startswith("thread")] == [["thread", str(members[0].pid)]]


def test_a_py_spy_that_fails_leaves_the_word_to_the_kernel(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a py-spy that may not trace WHEN a process is looked at THEN the kernel tells
    monkeypatch.setattr(stacks, "find_py_spy", lambda: "/bin/false")
    assert [line for line in stacks.dump(members).splitlines() if line in STATES] != []


def test_a_process_that_is_gone_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN the id of nobody WHEN it is looked at THEN that is said
    monkeypatch.setattr(stacks, "find_py_spy", lambda: None)
    assert stacks.dump([Member(2**22 + 1, "ghost", 1, 1, 1)]) == f"== process {2**22 + 1} ghost\ngone\n"


@pytest.mark.skipif(stacks.find_py_spy() is None, reason="py-spy is not installed")
def test_py_spy_names_the_function(members: list[Member]) -> None:
    # GIVEN py-spy WHEN a process is looked at THEN the function that it sits in is named
    assert "waits_for_input" in stacks.dump(members)
