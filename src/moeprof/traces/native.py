"""The compiled module, loaded late, and its errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from moeprof.errors import (
    InputNotFoundError,
    MoeprofError,
    NativeMissingError,
    NotATraceError,
    TraceMalformedError,
    TraceTruncatedError,
    UnsupportedFormatError,
)

_ERRORS: dict[str, type[MoeprofError]] = {
    cls.slug: cls for cls in (TraceTruncatedError, TraceMalformedError, NotATraceError, UnsupportedFormatError)
}
_HINTS = {
    "trace-truncated": "the export did not finish, or its copy is cut: export the report again",
    "trace-malformed": "the file is damaged: export the report again",
    "format-unsupported": "export the report again: nsys export --type sqlite REPORT.nsys-rep",
    "not-a-trace": "give an export of Nsight Systems: nsys export --type sqlite REPORT.nsys-rep",
}


def module() -> ModuleType:
    """Return the compiled module.

    Raises:
        NativeMissingError: It is not installed, or does not load.
    """
    try:
        from moeprof import _native  # late: importing moeprof must not load the native module
    except ImportError as error:
        raise NativeMissingError(
            f"the native reader does not load: {error}", hint="make build, or install a built package of moeprof"
        ) from error
    return _native


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    """Turn the errors of the native reader of nsys exports into ours."""
    try:
        yield
    except module().TraceFormatError as error:
        raise _ERRORS.get(error.slug, TraceMalformedError)(
            error.message, path=str(path), byte=error.byte, hint=_HINTS.get(error.slug)
        ) from error
    except OSError as error:
        raise InputNotFoundError(
            f"cannot read the file: {error.strerror or error}",
            path=str(path),
            hint="check the path and its permissions",
        ) from error
