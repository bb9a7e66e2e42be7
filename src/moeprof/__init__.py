"""Profile and compare Mixture-of-Experts LLM serving: read traces, count per iteration, diff two arms.

Importing this package loads nothing heavy; each public name is resolved on first use (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moeprof.analyzers.results import Diff, Report
    from moeprof.api import diff, report
    from moeprof.errors import MoeprofError
    from moeprof.findings import Finding
    from moeprof.traces.open import open_trace
    from moeprof.traces.trace import RankTrace, Trace

__version__ = "0.1.0"

__all__ = [
    "Diff",
    "Finding",
    "MoeprofError",
    "RankTrace",
    "Report",
    "Trace",
    "__version__",
    "diff",
    "open_trace",
    "report",
]

_HOME = {
    "Diff": "moeprof.analyzers.results",
    "Finding": "moeprof.findings",
    "MoeprofError": "moeprof.errors",
    "RankTrace": "moeprof.traces.trace",
    "Report": "moeprof.analyzers.results",
    "Trace": "moeprof.traces.trace",
    "diff": "moeprof.api",
    "open_trace": "moeprof.traces.open",
    "report": "moeprof.api",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
