"""Facts of runs, and the rows that a comparison of them makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moeprof.findings import JsonValue

#: What is held against each other: the two arms, or two blocks of one of them.
Between: TypeAlias = Literal["arms", "base blocks", "candidate blocks", "traces"]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one run says it ran on.

    Attributes:
        source: Name of the run.
        block: Its number in the plan.
        facts: Key with dots to value: ``versions.vllm``, ``flags.seed``, ``hardware.gpus`` ...; a key that is absent is not known, but for
            flags and variables, which are absent where they are not set.
        commanded: Whether flags and variables are known at all.
        own: Keys that the configuration gave to this arm and not to every other; None: not recorded.
        fingerprint: Digest over what blocks must share; None: not known.
    """

    source: str
    block: int
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    commanded: bool = False
    own: frozenset[str] | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    """One key that differs: a row of `environment[]`.

    Attributes:
        key: The key.
        base, candidate: Its values; between two blocks of an arm those of the earlier and the later one. None: not set, or not known.
        matters: Whether a figure may come from it, and it is not what the arms are meant to differ in.
        between: What was held against each other.
        blocks: Numbers of the two blocks.
        own: Whether it is the arm's own.
        allowed: Whether the caller lets it pass.
    """

    key: str
    base: JsonValue
    candidate: JsonValue
    matters: bool
    between: Between = "arms"
    blocks: tuple[int, int] | None = None
    own: bool = False
    allowed: bool = False
