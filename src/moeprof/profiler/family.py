"""The processes that a launch brought into being, and their end.

A server's workers may leave its process group, and its children its session. Three things tell who belongs together: the session, the
chain of parents, and a token in the environment that every child inherits. One of them alone is not enough: a process that
renames itself overwrites its environment, and an orphan has no parent left. Standard library only: the guard runs this too.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

TOKEN_NAME = "MOEPROF_LAUNCH"
_PROC = Path("/proc")
_STEP_S = 0.05
_KILL_S = 10.0  # a process in an uninterruptible call does not go at once
_STRAGGLER_S = 3.0  # for what the leader left behind


@dataclass(frozen=True, slots=True)
class Member:
    """A living process of a family."""

    pid: int
    name: str
    parent: int
    session: int
    started: int  # clock ticks since boot


@dataclass(frozen=True, slots=True)
class Family:
    """What identifies a launch.

    Attributes:
        leader: Process id of the first process, which is also its group's and its session's; None when it is not known.
        started: Start of the leader in clock ticks, so that a reused process id is not mistaken for it; None when it is not known.
        token: Value of ``MOEPROF_LAUNCH`` in the environment of its processes.
        seen: Start by process id of all who were seen: once its parent is gone, a child may be known by nothing else.
    """

    leader: int | None
    started: int | None
    token: str
    seen: dict[int, int] = field(default_factory=dict)

    def members(self) -> list[Member]:
        """Return who is alive, the leader first, then by process id; without ``/proc`` the leader's group stands for all."""
        if not has_proc():
            return [Member(self.leader, "", 0, self.leader, 0)] if self.leader and _group_lives(self.leader) else []
        everyone = {member.pid: member for member in _living()}
        leader = everyone.get(self.leader or 0)
        reused = leader is not None and self.started is not None and leader.started != self.started
        session = None if reused else self.leader
        ours = {
            pid
            for pid, member in everyone.items()
            if (session is not None and member.session == session)
            or self.seen.get(pid) == member.started
            or self._holds_token(member)
        }
        _add_descendants(ours, everyone)
        ours.discard(os.getpid())
        self.seen.update({pid: everyone[pid].started for pid in ours})
        return sorted((everyone[pid] for pid in ours), key=lambda member: (member.pid != self.leader, member.pid))

    def _holds_token(self, member: Member) -> bool:
        if self.started is not None and member.started < self.started:
            return False
        try:
            environment = (_PROC / str(member.pid) / "environ").read_bytes()
        except OSError:  # another user's, or gone
            return False
        return f"{TOKEN_NAME}={self.token}".encode() in environment.split(b"\0")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a family ended.

    Attributes:
        killed: Who had to be killed because TERM did not do.
        left: Who was still there after that; empty unless the kernel would not let go.
    """

    killed: tuple[Member, ...] = ()
    left: tuple[Member, ...] = ()


def has_proc() -> bool:
    """Return whether this system shows its processes as files."""
    return (_PROC / "self" / "stat").exists()


def start_of(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it is gone or the system does not tell."""
    member = _member(pid)
    return None if member is None else member.started


def end(family: Family, stop_s: float, reap: Callable[[], object] = lambda: None) -> Ending:
    """End a family: TERM to its leader, a wait, TERM to stragglers, KILL to all that is left.

    Args:
        family: Who.
        stop_s: How long the leader may take.
        reap: Called while waiting, so that a parent can collect its child.
    """
    if (members := _still_there(family, reap)) and members[0].pid == family.leader:
        _send([members[0]], signal.SIGTERM)
        members = _wait(family, stop_s, reap, lambda now: now[0].pid != family.leader)
    if members and members[0].pid != family.leader:
        _send(members, signal.SIGTERM)
        members = _wait(family, min(stop_s, _STRAGGLER_S), reap, lambda now: False)
    return kill(family, reap) if members else Ending()


def kill(family: Family, reap: Callable[[], object] = lambda: None) -> Ending:
    """Kill a family at once, again and again until nobody is left: a process may be born between two looks."""
    killed: dict[int, Member] = {}
    deadline = time.monotonic() + _KILL_S
    while members := _still_there(family, reap):
        if time.monotonic() > deadline:
            return Ending(tuple(killed.values()), tuple(members))
        killed |= {member.pid: member for member in members}
        _send(members, signal.SIGKILL)
        time.sleep(_STEP_S)
    return Ending(tuple(killed.values()))


def _wait(
    family: Family, limit_s: float, reap: Callable[[], object], enough: Callable[[list[Member]], bool]
) -> list[Member]:
    deadline = time.monotonic() + limit_s
    while (members := _still_there(family, reap)) and not enough(members) and time.monotonic() < deadline:
        time.sleep(_STEP_S)
    return members


def _still_there(family: Family, reap: Callable[[], object]) -> list[Member]:
    reap()
    return family.members()


def _send(members: list[Member], number: signal.Signals) -> None:
    for member in members:
        try:
            if has_proc():
                os.kill(member.pid, number)
            else:
                os.killpg(member.pid, number)
        except (ProcessLookupError, PermissionError):  # gone meanwhile, or set to another user: the next look tells
            pass


def _add_descendants(ours: set[int], everyone: dict[int, Member]) -> None:
    children: dict[int, list[int]] = {}
    for member in everyone.values():
        children.setdefault(member.parent, []).append(member.pid)
    waiting = list(ours)
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in ours:
                ours.add(child)
                waiting.append(child)


def _living() -> Iterator[Member]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and (member := _member(int(folder.name))) is not None:
            yield member


def _member(pid: int) -> Member | None:
    try:
        text = (_PROC / str(pid) / "stat").read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    head, _, rest = text.rpartition(")")  # a name may hold blanks and parentheses
    fields = rest.split()
    if len(fields) < 20 or fields[0] in "ZXx":  # a zombie only waits to be collected
        return None
    return Member(pid, head.partition("(")[2], int(fields[1]), int(fields[3]), int(fields[19]))


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
