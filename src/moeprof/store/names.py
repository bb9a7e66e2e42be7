"""Names in the store: arms, runs and the temporary folders of writers. A name never leads out of the store."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from moeprof.errors import UsageError

_ARM = re.compile(r"[A-Za-z0-9._-]+")
_RUN = re.compile(r"(?P<time>\d{8}T\d{6}Z)-(?P<block>\d+)(?:-(?P<again>\d+))?")
_TEMPORARY = re.compile(r"\.tmp-(?P<time>\d{8}T\d{6}Z)-(?P<block>\d+)-(?P<pid>\d+)(?:-\d+)?")
_TIME = "%Y%m%dT%H%M%SZ"
_LONGEST = 100


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """What the name of a run folder says; keys sort by time, block, and the suffix of a clash."""

    time: str
    block: int
    again: int


def check_arm(arm: str) -> str:
    """Return the name of an arm if it can be the name of a folder.

    Raises:
        UsageError: When it cannot.

    >>> check_arm("mega.v2")
    'mega.v2'
    """
    if not _ARM.fullmatch(arm) or arm.startswith(".") or len(arm) > _LONGEST:
        raise UsageError(
            f"{arm!r} cannot be the name of an arm",
            hint=f"letters, digits, dot, hyphen and underscore; at most {_LONGEST}; no dot at the start",
        )
    return arm


def stamp(moment: datetime) -> str:
    """Return a moment as it stands in names, in UTC.

    >>> stamp(datetime(2026, 11, 30, 20, 37, 30, tzinfo=UTC))
    '20261130T203730Z'
    """
    return moment.astimezone(UTC).strftime(_TIME)


def moment(text: str) -> datetime | None:
    """Return the moment that a name's time stands for; None where it is no time."""
    try:
        return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def run_key(name: str) -> RunKey | None:
    """Return what the name of a run folder says; None where it is no run's name.

    >>> run_key("20261130T203730Z-1-2")
    RunKey(time='20261130T203730Z', block=1, again=2)
    """
    match = _RUN.fullmatch(name)
    if match is None or moment(match["time"]) is None:
        return None
    return RunKey(match["time"], int(match["block"]), int(match["again"] or 1))


def temporary_name(time: str, block: int) -> str:
    """Return the name of the folder that this process writes a run to."""
    return f".tmp-{time}-{block}-{os.getpid()}"


def writer_pid(name: str) -> int | None:
    """Return the process that a temporary folder belongs to; None where the name is not one of those."""
    match = _TEMPORARY.fullmatch(name)
    return None if match is None else int(match["pid"])


def with_suffix(name: str, number: int) -> str:
    """Return a name for the n-th try: the plain one first."""
    return name if number == 1 else f"{name}-{number}"
