"""What a key means where it differs: rules from TOML."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

from moeprof.findings import JsonValue

Weight: TypeAlias = Literal["matters", "listed", "ignored"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of keys and what holds for them."""

    pattern: re.Pattern[str]
    weight: Weight
    tolerance: float = 0.0

    def equal(self, one: JsonValue, other: JsonValue) -> bool:
        """Tell whether two values count as equal."""
        if one == other:
            return True
        if not self.tolerance or not isinstance(one, int | float) or not isinstance(other, int | float):
            return False
        return abs(one - other) <= self.tolerance * max(abs(one), abs(other))


def rule_of(key: str) -> Rule:
    """Return the rule of a key; one that no rule knows matters.

    >>> rule_of("versions.vllm").weight, rule_of("flags.port").weight, rule_of("hardware.host").weight
    ('matters', 'ignored', 'listed')
    """
    return next((rule for rule in _rules() if rule.pattern.fullmatch(key)), Rule(re.compile(""), "matters"))


@cache
def _rules() -> tuple[Rule, ...]:
    text = files("moeprof.analyzers.environment").joinpath("environment.toml").read_text(encoding="utf-8")
    return tuple(
        Rule(re.compile(entry["pattern"]), entry["weight"], entry.get("tolerance", 0.0))
        for entry in tomllib.loads(text)["rule"]
    )
