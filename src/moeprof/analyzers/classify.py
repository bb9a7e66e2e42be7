"""Tell what a launch is for from its name, by ordered rules in TOML; NCCL metadata beats the name."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import polars as pl

from moeprof.analyzers.tables import CLASS, CLASSES
from moeprof.errors import InputNotFoundError, RulesError
from moeprof.traces.schema import Schema

_RULE_KEYS = frozenset(
    ("id", "class", "backend", "pattern", "ignore_case", "gemms", "only", "otherwise", "role", "note")
)
_COLLECTIVE_KEYS = frozenset(("class", "pattern", "note"))
_ONLY = ("in-moe-block", "moe-trace", "between-gemms")
_ROLES = ("align", "draft-start")

#: One row per distinct name: class, backend and the refinements of its rule.
NAME_CLASSES: Schema = {
    "name": pl.String,
    "class": CLASS,
    "backend": pl.String,
    "gemms": pl.Int32,
    "only": pl.String,
    "otherwise": CLASS,
    "role": pl.String,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a rules file; see the head of ``rules/kernels.toml``."""

    id: str
    class_: str
    pattern: re.Pattern[str]
    backend: str | None
    gemms: int
    only: str | None
    otherwise: str | None
    role: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which rule took a name; without one, the class is ``other`` and the rest None."""

    name: str
    class_: str
    rule: str | None
    pattern: str | None
    backend: str | None
    source: str | None


@dataclass(frozen=True, slots=True)
class Classifier:
    """Ordered rules for names, and for the collective names of NCCL metadata."""

    rules: tuple[Rule, ...]
    collectives: tuple[tuple[re.Pattern[str], str], ...]

    def match(self, name: str) -> Rule | None:
        """Return the first rule whose pattern is found in `name`."""
        return next((rule for rule in self.rules if rule.pattern.search(name)), None)

    def explain(self, name: str) -> Explanation:
        """Say which rule takes a kernel or operator name."""
        rule = self.match(name)
        if rule is None:
            return Explanation(name, "other", None, None, None, None)
        return Explanation(name, rule.class_, rule.id, rule.pattern.pattern, rule.backend, rule.source)

    def names(self, names: Iterable[str]) -> pl.DataFrame:
        """Return `NAME_CLASSES` for distinct names."""
        rows: list[tuple[str, str, str | None, int, str | None, str | None, str | None]] = []
        for name in names:
            rule = self.match(name)
            if rule is None:
                rows.append((name, "other", None, 0, None, None, None))
            else:
                rows.append((name, rule.class_, rule.backend, rule.gemms, rule.only, rule.otherwise, rule.role))
        return pl.DataFrame(rows, schema=NAME_CLASSES, orient="row")

    def collective(self, name: str) -> str:
        """Return the class of a collective name as NCCL metadata writes it; an unknown one is ``comm_other``."""
        return next((class_ for pattern, class_ in self.collectives if pattern.search(name)), "comm_other")


def load_classifier(path: str | os.PathLike[str] | None = None) -> Classifier:
    """Return the package's rules, preceded by those of a user's file.

    Args:
        path: A TOML file of ``[[rule]]`` and ``[[collective]]`` tables, or None.

    Raises:
        InputNotFoundError: The file cannot be read.
        RulesError: The file is not TOML, or a rule in it cannot be used.
    """
    own = _package_rules()
    if path is None:
        return own
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputNotFoundError(
            f"cannot read the rules file: {error.strerror or error}", path=os.fspath(path)
        ) from error
    except UnicodeDecodeError as error:
        raise RulesError("the rules file is not UTF-8 text", path=os.fspath(path), byte=error.start) from error
    user = _parse(text, os.fspath(path))
    return Classifier(user.rules + own.rules, user.collectives + own.collectives)


@cache
def _package_rules() -> Classifier:
    file = resources.files("moeprof.analyzers") / "rules" / "kernels.toml"
    return _parse(file.read_text(encoding="utf-8"), "kernels.toml")


def _parse(text: str, source: str) -> Classifier:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RulesError(f"the rules file is not valid TOML: {error}", path=source) from error
    unknown = set(data) - {"version", "rule", "collective"}
    if unknown:
        raise RulesError(f"unknown key {sorted(unknown)[0]!r} in the rules file", path=source)
    if data.get("version", 1) != 1:
        raise RulesError(f"rules file version {data['version']!r} is not known; this release reads 1", path=source)
    rules = data.get("rule", [])
    collectives = data.get("collective", [])
    if not isinstance(rules, list) or not isinstance(collectives, list):
        raise RulesError("rules are tables: write [[rule]] and [[collective]]", path=source)
    parsed = tuple(_rule(entry, number, source) for number, entry in enumerate(rules, 1))
    return Classifier(parsed, tuple(_collective(entry, number, source) for number, entry in enumerate(collectives, 1)))


def _collective(entry: object, number: int, source: str) -> tuple[re.Pattern[str], str]:
    label = f"collective {number}"
    table = _table(entry, label, _COLLECTIVE_KEYS, source)
    return _pattern(table, label, source, ignore_case=True), _class(table, label, source)


def _table(entry: object, label: str, keys: frozenset[str], source: str) -> dict[str, object]:
    if not isinstance(entry, dict):
        raise RulesError(f"{label} is not a table", path=source)
    unknown = set(entry) - keys
    if unknown:
        raise RulesError(f"unknown key {sorted(unknown)[0]!r} in {label}", path=source)
    return entry


def _rule(raw: object, number: int, source: str) -> Rule:
    label = f"rule {raw.get('id', number)!r}" if isinstance(raw, dict) else f"rule {number}"
    entry = _table(raw, label, _RULE_KEYS, source)
    class_ = _class(entry, label, source)
    only, otherwise, role = entry.get("only"), entry.get("otherwise"), entry.get("role")
    if (only, otherwise) != (None, None) and (only not in _ONLY or otherwise not in CLASSES):
        raise RulesError(f"{label}: `only` is one of {', '.join(_ONLY)} and needs a class in `otherwise`", path=source)
    if role is not None and role not in _ROLES:
        raise RulesError(f"{label}: `role` is one of {', '.join(_ROLES)}", path=source)
    gemms = entry.get("gemms", 1)
    if not isinstance(gemms, int) or isinstance(gemms, bool) or gemms not in (1, 2):
        raise RulesError(f"{label}: `gemms` is 1 or 2", path=source)
    ignore_case = entry.get("ignore_case", False)
    if not isinstance(ignore_case, bool):
        raise RulesError(f"{label}: `ignore_case` is true or false", path=source)
    backend = entry.get("backend")
    if backend is not None and not isinstance(backend, str):
        raise RulesError(f"{label}: `backend` is a name", path=source)
    return Rule(
        id=str(entry.get("id", f"rule-{number}")),
        class_=class_,
        pattern=_pattern(entry, label, source, ignore_case=ignore_case),
        backend=backend,
        gemms=gemms if class_ == "moe_gemm" else 0,
        only=None if only is None else str(only),
        otherwise=None if otherwise is None else str(otherwise),
        role=None if role is None else str(role),
        source=source,
    )


def _class(entry: dict[str, object], label: str, source: str) -> str:
    class_ = entry.get("class")
    if not isinstance(class_, str) or class_ not in CLASSES:
        raise RulesError(f"{label}: `class` is one of {', '.join(CLASSES)}", path=source)
    return class_


def _pattern(entry: dict[str, object], label: str, source: str, *, ignore_case: bool) -> re.Pattern[str]:
    pattern = entry.get("pattern")
    if not isinstance(pattern, str):
        raise RulesError(f"{label} has no `pattern`", path=source)
    try:
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise RulesError(f"{label}: the pattern is not a regular expression: {error}", path=source) from error
