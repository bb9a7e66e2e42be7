"""Take out of an nsys SQLite export what it tells about the machine and its users beside the recording.

nsys stores the environment of the recorded processes in three places, and names of other processes. A text table is rewritten,
the file is vacuumed, so that freed pages hold nothing either.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from moeprof.errors import WindowFailedError
from moeprof.store import redact

REDACTED = "<redacted>"

#: Table, column with the value, condition on the name of the value.
_VALUES = (
    (
        "META_DATA_CAPTURE",
        "value",
        "name LIKE '%ENVIRONMENT%' OR name LIKE '%:COMMAND%' OR name LIKE '%:ARGUMENT%' OR name LIKE '%WORKING_DIR%' "
        "OR name LIKE '%USER_NAME%' OR name LIKE '%DISPLAY_NAME%'",
    ),
    ("META_DATA_EXPORT", "value", "name LIKE '%HOST%' OR name LIKE '%USER%' OR name LIKE '%_PATH%'"),
    ("TARGET_INFO_SYSTEM_ENV", "value", "name LIKE '%Environment%' OR name LIKE '%Hostname%' OR name LIKE '%User%'"),
)


def scrub(file: Path, known: Collection[str] = ()) -> int:
    """Redact an export in place and return how many values were taken out.

    Args:
        file: A SQLite export.
        known: Values of secrets, taken out of every text wherever they stand.

    Raises:
        WindowFailedError: It is no SQLite file that can be rewritten.
    """
    try:
        with closing(sqlite3.connect(file)) as base:
            base.text_factory = lambda raw: raw.decode("utf-8", errors="surrogateescape")
            with base:
                there = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
                taken = sum(_values(base, *entry) for entry in _VALUES if entry[0] in there)
                taken += _strings(base, known) if "StringIds" in there else 0
            base.execute("VACUUM")
    except sqlite3.Error as error:
        raise WindowFailedError(f"nsys' export cannot be redacted: {error}", path=str(file)) from error
    return taken


def _values(base: sqlite3.Connection, table: str, column: str, condition: str) -> int:
    columns = {row[1] for row in base.execute(f"PRAGMA table_info({table})")}
    if not {"name", column} <= columns:
        return 0
    wanted = f"({condition}) AND {column} IS NOT NULL AND {column} != ''"
    return base.execute(f"UPDATE {table} SET {column} = ? WHERE {wanted}", (REDACTED,)).rowcount


def _strings(base: sqlite3.Connection, known: Collection[str]) -> int:
    """Redact whole environments, which nsys keeps as one string with NUL between the variables, and texts that hold a secret."""
    taken = base.execute(
        "UPDATE StringIds SET value = ? WHERE instr(CAST(value AS BLOB), X'00') > 0", (REDACTED,)
    ).rowcount
    changed = [
        (clean, number)
        for number, value in base.execute("SELECT id, value FROM StringIds")
        if isinstance(value, str) and (clean := redact.text(value, known=known)) != value
    ]
    base.executemany("UPDATE StringIds SET value = ? WHERE id = ?", changed)
    return taken + len(changed)
