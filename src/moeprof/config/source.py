"""Find the configuration, read its text, and tell in which line a key stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moeprof.config.places import lines_of
from moeprof.errors import ConfigError, InputNotFoundError

FILE_NAME = "moeprof.toml"
_PYPROJECT = "pyproject.toml"
_TOOL = ("tool", "moeprof")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_INIT = "moeprof init writes one"


@dataclass(frozen=True, slots=True)
class Source:
    """A configuration's tables and where they were written.

    Attributes:
        path: Absolute path of the file.
        data: What the file holds below `prefix`.
        prefix: ``("tool", "moeprof")`` in a pyproject.toml, else empty.
        lines: Line of each key and table header, by full path.
    """

    path: Path
    data: dict[str, object]
    prefix: tuple[str, ...]
    lines: dict[tuple[str, ...], int]

    def line(self, keys: tuple[str, ...]) -> int | None:
        """Return the line of a key; of the nearest enclosing one where it has no line of its own."""
        full = self.prefix + keys
        return next((self.lines[full[:end]] for end in range(len(full), 0, -1) if full[:end] in self.lines), None)

    def table(self, keys: tuple[str, ...]) -> str:
        """Return how a table is called in the file."""
        full = self.prefix + keys
        return f"[{'.'.join(_shown(key) for key in full)}]" if full else "the file"

    def error(self, message: str, keys: tuple[str, ...], hint: str | None = None) -> ConfigError:
        """Return an error that points to a key."""
        return ConfigError(message, path=str(self.path), line=self.line(keys), hint=hint)


def find_source(path: Path | None, start: Path) -> Source:
    """Read the configuration of a path, or the one that holds for a folder.

    Args:
        path: A file, or a folder that holds one; None: search.
        start: Folder in which the search begins; it goes up to the root of the git repository.

    Raises:
        InputNotFoundError: There is no such file.
        ConfigError: None was found, or the file is not TOML.
    """
    if path is not None:
        return _named(path.absolute())
    found = nearest_source(start)
    if found is None:
        raise ConfigError(
            f"no {FILE_NAME} and no [tool.moeprof] in a {_PYPROJECT}, here or above",
            path=str(start.absolute()),
            hint=_INIT,
        )
    return found


def nearest_source(start: Path) -> Source | None:
    """Read the configuration that holds for a folder; None where there is none.

    Args:
        start: Folder in which the search begins; it goes up to the root of the git repository.

    Raises:
        ConfigError: The file is not TOML.
    """
    for folder in _upwards(start.absolute()):
        if (folder / FILE_NAME).is_file():
            return _read(folder / FILE_NAME)
        found = _in_pyproject(folder / _PYPROJECT)
        if found is not None:
            return found
    return None


def _named(path: Path) -> Source:
    file = path / FILE_NAME if path.is_dir() else path
    if file.name != _PYPROJECT:
        return _read(file)
    found = _in_pyproject(file, asked_for=True)
    if found is None:
        raise ConfigError("the file has no table [tool.moeprof]", path=str(file), hint=_INIT)
    return found


def _upwards(start: Path) -> Iterator[Path]:
    for folder in (start, *start.parents):
        yield folder
        if (folder / ".git").exists():
            return


def _in_pyproject(file: Path, *, asked_for: bool = False) -> Source | None:
    if not asked_for and not file.is_file():
        return None
    text = _text(file)
    if "moeprof" not in text:  # somebody else's file, which may even be broken
        return None
    data: object = _parse(text, file)
    for key in _TOOL:
        data = data.get(key) if isinstance(data, dict) else None
    if not isinstance(data, dict):
        return None
    return Source(file, data, _TOOL, lines_of(text))


def _read(file: Path) -> Source:
    text = _text(file)
    return Source(file, _parse(text, file), (), lines_of(text))


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputNotFoundError(f"cannot read the configuration: {reason}", path=str(file), hint=_INIT) from error
    except UnicodeDecodeError as error:
        raise ConfigError("the configuration is not UTF-8 text", path=str(file), byte=error.start) from error


def _parse(text: str, file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said = str(error)
        place = _AT_LINE.search(said)
        line = int(place[1]) if place else None
        reason = _AT_LINE.sub("", said).strip()
        raise ConfigError(f"the configuration is not valid TOML: {reason}", path=str(file), line=line) from error


def _shown(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'
