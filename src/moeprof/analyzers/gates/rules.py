"""What a gate asks for. The defaults hold without any configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from moeprof.analyzers.serving.metrics import Metrics, load_metrics
from moeprof.analyzers.serving.results import Label

#: Findings that say that counts of a run cannot be relied on. The same finding in the baseline is known, and passes.
FORBIDDEN = (
    "graph-replay-differs",
    "launches-without-kernels",
    "ranks-differ",
    "ranks-missing",
    "report-inconsistent",
    "unmatched-pairs",
)


@dataclass(frozen=True, slots=True)
class GateRules:
    """The rules.

    Attributes:
        metrics: Registry of metrics, with thresholds and which of them gate.
        min_label: A weaker label carries neither an improvement nor a regression.
        labels: The same for single metrics.
        optional: Metrics that may vanish.
        structure: Key or pattern (``all_gather/target``, ``ag_rs/*``) to the values allowed; None: any value.
        exact: Whether what `structure` does not name must equal the baseline.
        accuracy_margin: Largest drop of accuracy that is acceptable, as a difference of shares; None: none stated.
        forbid: Slugs of findings that must not occur.
        strict: Whether a forbidden finding fails also where the baseline carries it.
        allow_environment: Keys of the environment that may differ.
    """

    metrics: Metrics = field(default_factory=load_metrics)
    min_label: Label = "A/B only"
    labels: Mapping[str, Label] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    structure: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    exact: bool = True
    accuracy_margin: float | None = None
    forbid: tuple[str, ...] = FORBIDDEN
    strict: bool = False
    allow_environment: tuple[str, ...] = ()

    def stated(self, key: str) -> tuple[bool, tuple[int, ...] | None]:
        """Return whether a rule names a structure key, and the values that it allows (None: any).

        The key itself comes before patterns, a longer pattern before a shorter one. A pattern of launches is none of pairs or backends.

        >>> GateRules(structure={"*/sample": None}).stated("copy/sample")
        (True, None)
        """
        if key in self.structure:
            return True, self.structure[key]
        matching = sorted(
            (p for p in self.structure if _room(p) == _room(key) and fnmatchcase(key, p)), key=lambda p: (-len(p), p)
        )
        return (True, self.structure[matching[0]]) if matching else (False, None)


def _room(key: str) -> str:
    first = key.partition("/")[0]
    return first if first in ("pairs", "backend") else ""
