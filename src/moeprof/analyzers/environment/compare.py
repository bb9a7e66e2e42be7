"""Hold the environments of two arms against each other, and of the blocks of one arm: a return block must differ in nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from moeprof.analyzers.environment.results import Between, EnvironmentRow, RunRecord
from moeprof.analyzers.environment.rules import rule_of
from moeprof.findings import Finding, JsonValue
from moeprof.wording import listed, plural, safe

_SETTINGS = ("flags.", "env.")  # absent means not set, where the command is known
_NAMED = 4
_WIDTH = 40


@dataclass(frozen=True, slots=True)
class EnvironmentComparison:
    """What differs.

    Attributes:
        rows: By what was compared, then key.
        findings: About them.
        obstacle: Why the arms are not comparable, in a clause; None where nothing is against it.
    """

    rows: tuple[EnvironmentRow, ...]
    findings: tuple[Finding, ...]
    obstacle: str | None


def compare_environment(
    base: Sequence[RunRecord], candidate: Sequence[RunRecord], *, allowed: Collection[str] = ()
) -> EnvironmentComparison:
    """Compare what the runs of two arms ran on.

    Args:
        base: Runs of the base arm, in order of block.
        candidate: Of the other arm.
        allowed: Keys that may differ; one stands for all that begin with it and a dot.

    Example:
        >>> one, other = (RunRecord(name, 0, {"versions.vllm": name}) for name in ("0.26.0", "0.27.0"))
        >>> found = compare_environment([one], [other])
        >>> found.rows[0].matters, found.obstacle
        (True, 'the arms differ in versions.vllm (0.26.0 against 0.27.0)')
    """
    rows: list[EnvironmentRow] = []
    for later in base[1:]:
        rows += _blocks(base[0], later, "base blocks", allowed)
    for later in candidate[1:]:
        rows += _blocks(candidate[0], later, "candidate blocks", allowed)
    if base and candidate:
        rows += _arms(base[0], candidate[0], allowed)
    standing = [row for row in rows if row.matters and not row.allowed]
    obstacle = _clause(standing) if standing else None
    return EnvironmentComparison(tuple(rows), tuple(_findings(base, candidate, rows, standing)), obstacle)


def _arms(base: RunRecord, candidate: RunRecord, allowed: Collection[str]) -> Iterator[EnvironmentRow]:
    for key, before, after in _differing(base, candidate):
        own = _is_own(key, base, candidate)
        matters = rule_of(key).weight == "matters" and not own
        yield EnvironmentRow(
            key, before, after, matters, "arms", (base.block, candidate.block), own, _is_allowed(key, allowed)
        )


def _blocks(first: RunRecord, later: RunRecord, between: Between, allowed: Collection[str]) -> Iterator[EnvironmentRow]:
    for key, before, after in _differing(first, later):
        matters = rule_of(key).weight == "matters"
        blocks = (first.block, later.block)
        yield EnvironmentRow(key, before, after, matters, between, blocks, False, _is_allowed(key, allowed))


def _differing(one: RunRecord, other: RunRecord) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Yield the keys that both runs tell and that differ, by key; a flag or variable may be absent from one."""
    for key in sorted(one.facts.keys() | other.facts.keys()):
        rule = rule_of(key)
        if rule.weight == "ignored":
            continue
        before, after = one.facts.get(key), other.facts.get(key)
        if key.startswith(_SETTINGS):
            told = one.commanded and other.commanded
        else:
            told = before is not None and after is not None
        if told and not rule.equal(before, after):
            yield key, before, after


def _is_own(key: str, base: RunRecord, candidate: RunRecord) -> bool:
    """Tell whether a flag or variable is what makes the arm: as recorded, else as equal fingerprints, which cover the shared flags, imply."""
    if not key.startswith(_SETTINGS):
        return False
    if base.own is None and candidate.own is None:
        return base.fingerprint is not None and base.fingerprint == candidate.fingerprint
    return key in (base.own or ()) or key in (candidate.own or ())


def _is_allowed(key: str, allowed: Collection[str]) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in allowed)


def _findings(
    base: Sequence[RunRecord],
    candidate: Sequence[RunRecord],
    rows: Sequence[EnvironmentRow],
    standing: Sequence[EnvironmentRow],
) -> Iterator[Finding]:
    if standing:
        keys = list(dict.fromkeys(row.key for row in standing))
        yield Finding("environment-differs", "error", _clause(standing), evidence={"keys": list[JsonValue](keys)})
    passed = sorted({row.key for row in rows if row.matters and row.allowed})
    if passed:
        message = f"compared although {listed(passed)} {'differs' if len(passed) == 1 else 'differ'}, as allowed"
        yield Finding("environment-allowed", "warning", message, evidence={"keys": list[JsonValue](passed)})
    silent = [
        name for name, runs in (("base", base), ("candidate", candidate)) if runs and not any(run.facts for run in runs)
    ]
    if silent:
        message = f"{' and '.join(silent)} {'does' if len(silent) == 1 else 'do'} not tell what the runs ran on: whether the arms ran alike is not known"
        yield Finding("environment-unknown", "note", message, evidence={"sides": list[JsonValue](silent)})


def _clause(rows: Sequence[EnvironmentRow]) -> str:
    """Say what differs between what: the arms first, since a difference of theirs explains everything else."""
    parts = []
    for between, words in (
        ("arms", "the arms differ in"),
        ("base blocks", "the blocks of base differ in"),
        ("candidate blocks", "the blocks of candidate differ in"),
    ):
        told = [
            f"{row.key} ({_shown(row.base)} against {_shown(row.candidate)})" for row in rows if row.between == between
        ]
        if told:
            parts.append(f"{words} {listed(told, _NAMED)}")
    return "; ".join(parts) or f"{plural(len(rows), 'key')} differ"


def _shown(value: JsonValue) -> str:
    if value is None:
        return "not set"
    text = safe(str(value))
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
