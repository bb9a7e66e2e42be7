"""Who belongs to a launch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from moeprof.profiler.family import TOKEN_NAME, Ending, Family, end, has_proc, kill, start_of

pytestmark = pytest.mark.skipif(not has_proc(), reason="needs /proc to see processes")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process in a session of its own, with a token, that waits for the end of its stdin."""
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        env={**os.environ, TOKEN_NAME: "right"},
        start_new_session=True,
    ) as process:
        yield process
        process.kill()


def test_a_leader_is_known_by_its_session(child: subprocess.Popen[bytes]) -> None:
    # GIVEN a leader and its start WHEN its family is looked at with a foreign token THEN the session tells
    family = Family(child.pid, start_of(child.pid), "wrong")
    assert [(member.pid, member.session, member.parent) for member in family.members()] == [
        (child.pid, child.pid, os.getpid())
    ]


def test_a_process_is_known_by_its_token(child: subprocess.Popen[bytes]) -> None:
    # GIVEN no leader THEN the token tells, whole and not in part
    assert [member.pid for member in Family(None, None, "right").members()] == [child.pid]
    assert Family(None, None, "righ").members() == []


def test_a_reused_process_id_is_nobody_of_ours(child: subprocess.Popen[bytes]) -> None:
    # GIVEN a leader's id that somebody else has by now THEN he is left alone
    started = start_of(child.pid)
    assert started is not None
    family = Family(child.pid, started - 1, "wrong")
    assert family.members() == []
    assert kill(family) == Ending()
    assert child.poll() is None


def test_a_zombie_is_gone(child: subprocess.Popen[bytes]) -> None:
    # GIVEN a child that ended and was not collected
    family = Family(child.pid, start_of(child.pid), "right")
    os.kill(child.pid, 9)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    # THEN it does not count
    assert (family.members(), start_of(child.pid)) == ([], None)


def test_we_never_belong_to_a_family_ourselves() -> None:
    # GIVEN our own session WHEN its family is looked at THEN we are not in it
    family = Family(os.getsid(0), None, "wrong")
    assert os.getpid() not in [member.pid for member in family.members()]


def test_a_family_that_ends_at_term_is_not_killed(child: subprocess.Popen[bytes]) -> None:
    # GIVEN a process that heeds TERM WHEN its family is ended THEN nobody had to be killed
    assert end(Family(child.pid, start_of(child.pid), "right"), 60, child.poll) == Ending()
    assert child.wait(60) == -15
