"""The catalogue of errors: each has a slug, an exit code, what happened, where, and what to do.

Only ``moeprof.cli`` catches these, prints and exits. A test fails when a class here has no example.
"""

from __future__ import annotations

from typing import ClassVar


class MoeprofError(Exception):
    """Root of every error that a caller may catch.

    Args:
        message: One sentence that says what is wrong.
        path: The file or folder it is about, if any.
        line: Line in the (uncompressed) file, counted from 1.
        byte: Offset in the (uncompressed) file, counted from 0.
        hint: What the person can do about it.
    """

    slug: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 2

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        byte: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.byte = byte
        self.hint = hint

    @property
    def where(self) -> str | None:
        """Return ``FILE:LINE (byte N)`` as far as known, else None."""
        if self.path is None:
            return None
        text = self.path if self.line is None else f"{self.path}:{self.line}"
        return text if self.byte is None else f"{text} (byte {self.byte})"


class UsageError(MoeprofError):
    """An option or argument that makes no sense."""

    slug = "usage"


class InputNotFoundError(MoeprofError):
    """A path that does not exist or cannot be read."""

    slug = "input-not-found"


class TraceEmptyError(MoeprofError):
    """A file of 0 bytes, or a folder without a trace."""

    slug = "trace-empty"


class TraceTruncatedError(MoeprofError):
    """A file that ends before its document does (also a ``.tmp`` left by a killed writer)."""

    slug = "trace-truncated"


class TraceMalformedError(MoeprofError):
    """Bytes that are not what the format allows, at a known position."""

    slug = "trace-malformed"


class ManyDocumentsError(MoeprofError):
    """More than one JSON document in a file: several ranks wrote to one path."""

    slug = "trace-many-documents"


class NotATraceError(MoeprofError):
    """A readable file that is not a trace."""

    slug = "not-a-trace"


class UnsupportedFormatError(MoeprofError):
    """A known format that this version does not read."""

    slug = "format-unsupported"


class DuplicateRankError(MoeprofError):
    """Two files that claim to be the same rank."""

    slug = "rank-duplicate"


class RulesError(MoeprofError):
    """A rules file that cannot be used."""

    slug = "rules-invalid"


class NativeMissingError(MoeprofError):
    """The compiled reader is not installed, or does not load."""

    slug = "native-missing"


class NothingToCompareError(MoeprofError):
    """Two subjects without anything comparable."""

    slug = "nothing-to-compare"


class ResultError(MoeprofError):
    """An output of a load client or an evaluator that cannot be used."""

    slug = "result-invalid"


class ConflictError(MoeprofError):
    """Results that contradict each other, or one that was given twice."""

    slug = "result-conflict"


class MetricsError(MoeprofError):
    """A table of metrics that cannot be used; a metric without a direction is one."""

    slug = "metrics-invalid"


class ClaimError(MoeprofError):
    """A file of written claims that cannot be checked."""

    slug = "claim-invalid"


class ConfigError(MoeprofError):
    """A configuration file that cannot be used: unknown key, wrong type, unknown arm."""

    slug = "config-invalid"


class BaselineError(MoeprofError):
    """A baseline file that cannot be used: not JSON, another version, a key that is not what it must be."""

    slug = "baseline-invalid"


class StoreLockedError(MoeprofError):
    """Another moeprof writes to the store."""

    slug = "store-locked"


class ManifestError(MoeprofError):
    """A manifest of a stored run that is damaged, or that cannot be written."""

    slug = "manifest-invalid"


class CaptureError(MoeprofError):
    """A capture that failed; the kinds below say how."""

    slug = "capture-failed"
    exit_code = 3


class ServerDiedError(CaptureError):
    """The server ended by itself."""

    slug = "server-died"


class NotReadyError(CaptureError):
    """The server did not become ready in time."""

    slug = "server-not-ready"


class StalledError(CaptureError):
    """Requests run and no token comes."""

    slug = "server-stalled"


class PassFailedError(CaptureError):
    """A timed pass could not be finished."""

    slug = "pass-failed"


class WindowFailedError(CaptureError):
    """The profile window left no usable trace."""

    slug = "window-failed"


class GateFailedError(CaptureError):
    """The block ran, and a required gate failed."""

    slug = "capture-gate-failed"


class StoreWriteError(CaptureError):
    """The store cannot be written: disk full, no permission."""

    slug = "store-write-failed"
