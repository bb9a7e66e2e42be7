"""What a name on the command line, or in Python, stands for: a path, or a run of the store."""

from __future__ import annotations

import os
import re
from pathlib import Path

from moeprof.config.source import nearest_source
from moeprof.errors import InputNotFoundError
from moeprof.store.folder import Store
from moeprof.store.run import Run

VARIABLE = "MOEPROF_STORE"
DEFAULT = ".moeprof"
# An arm, or a run's identity; what ends like a trace is a path, there or not.
_NAME = re.compile(r"(?P<arm>[A-Za-z0-9][A-Za-z0-9._-]*)(?:/\d{8}T\d{6}Z-\d+(?:-\d+)?)?")
_TRACE = (".json", ".gz")


def store_root(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the store's folder: as given, else MOEPROF_STORE, else the nearest configuration's, else ``.moeprof``.

    Raises:
        ConfigError: The nearest configuration is not TOML.
    """
    if given is not None:
        return Path(given)
    if named := os.environ.get(VARIABLE):
        return Path(named)
    source = nearest_source(Path.cwd())
    table = None if source is None else source.data.get("store", {})
    if source is None or not isinstance(table, dict):
        return Path(DEFAULT)
    return source.path.parent / Path(str(table.get("path", DEFAULT))).expanduser()


def find_run(name: str, store: str | os.PathLike[str] | None = None) -> Run | None:
    """Return the run that a name stands for; None where it is to be taken as a path.

    What exists as a path is a path (``./base`` always is); else an arm stands for its newest complete run, and ``arm/time-block`` for that one.

    Args:
        name: A path, an arm or a run's identity.
        store: The store's folder; None: as `store_root` finds it.

    Raises:
        InputNotFoundError: It looks like a name and is neither.
        ConfigError: The nearest configuration, which may name the store, is not TOML.
        UnsupportedFormatError, ManifestError: The run's manifest cannot be read.

    >>> find_run("./base") is None
    True
    """
    match = _NAME.fullmatch(name)
    if match is None or name.endswith(_TRACE) or _exists(name):
        return None
    root = store_root(store)
    kept = Store(root)
    if match["arm"] not in kept.arms():
        raise InputNotFoundError(
            f"no such file or folder, and no such arm in the store {root}",
            path=name,
            hint="give a trace file, a folder that holds one trace file per rank, or an arm that was captured",
        )
    return kept.find(name)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:
        return True  # whoever opens it says why it cannot be read
