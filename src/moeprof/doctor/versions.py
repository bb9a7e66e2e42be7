"""Versions: as numbers, as text, and of installed packages."""

from __future__ import annotations

import importlib.metadata
import re

_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def numbers(text: str) -> tuple[int, ...]:
    """Return the first version number in a text; empty without one.

    >>> numbers("NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0")
    (2025, 3, 1)
    """
    match = _NUMBERS.search(text)
    return () if match is None else tuple(int(part) for part in match.groups() if part is not None)


def version_of(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def dotted(version: tuple[int, ...]) -> str:
    """Return a version as text."""
    return ".".join(map(str, version))
