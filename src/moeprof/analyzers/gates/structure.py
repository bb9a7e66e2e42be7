"""Rules on structure: counts per iteration equal the baseline's, or lie in a stated set. A difference either way is a change."""

from __future__ import annotations

from collections.abc import Iterator

from moeprof.analyzers.comparison.differences import class_order
from moeprof.analyzers.comparison.steadiness import VARYING
from moeprof.analyzers.gates.observation import ABSENT, Count, Observation, Structure
from moeprof.analyzers.gates.results import GateRow, GateVerdict, Word
from moeprof.analyzers.gates.rules import GateRules
from moeprof.findings import JsonValue
from moeprof.wording import listed, plural

_PAIR_NAMES = {"ag_rs": "AG/RS pairs", "moe_gemm": "MoE GEMM pairs"}


def structure_rows(base: Observation, candidate: Observation, rules: GateRules) -> list[GateRow]:
    """Return the outcome of every rule on structure; none where neither side has a structure.

    Args:
        base: The baseline.
        candidate: What is gated.
        rules: Stated sets, and whether the rest must be equal.
    """
    before, after = base.structure, candidate.structure
    if before is None:
        if after is None:
            return []
        return [_row("structure", "skipped", "the baseline has no structure: nothing is asked of it", "no_data_base")]
    if after is None:
        why = "its trace has no iterations to count" if candidate.traced else "there is no trace"
        return [_row("structure", "missing", f"the run has no counts per iteration: {why}", "no_data_candidate")]
    unlike = _unlike(before, after)
    if unlike is not None:
        return [_row("structure", "missing", f"the counts cannot be held against the baseline's: {unlike}", "unlike")]
    return [
        _ranks(before, after),
        *(
            _pair(key, before, after, rules)
            for key in [*before.pairs, *(k for k in after.pairs if k not in before.pairs)]
        ),
        *(_launches(key, before, after, rules) for key in _keys(before, after)),
        *_backends(before, after, rules),
    ]


def _unlike(base: Structure, candidate: Structure) -> str | None:
    if base.counts_over != candidate.counts_over:
        return f"they are over {candidate.counts_over} iterations, those of the baseline over {base.counts_over}"
    units = (base.launch_unit, candidate.launch_unit)
    if None not in units and units[0] != units[1]:
        return f"they are of {units[1]}s, those of the baseline of {units[0]}s"
    return None


def _keys(base: Structure, candidate: Structure) -> list[str]:
    def place(key: str) -> tuple[int, str, int, str]:
        class_, _, phase = key.partition("/")
        return class_order((class_, phase))

    return sorted({*base.launches, *candidate.launches}, key=place)


def _ranks(base: Structure, candidate: Structure) -> GateRow:
    gone = [rank for rank in base.ranks if rank not in candidate.ranks]
    before, after = len(base.ranks), len(candidate.ranks)
    if after < before:
        return _row(
            "structure/ranks",
            "missing",
            f"{after} of {plural(before, 'rank')} of the baseline have counts: {listed(gone)} missing",
            "rank_missing",
            before,
            after,
        )
    if after > before:
        return _row("structure/ranks", "fail", f"ranks {before} -> {after}", "more", before, after)
    return _row("structure/ranks", "pass", f"{plural(after, 'rank')}, as in the baseline", "equal", before, after)


def _launches(key: str, base: Structure, candidate: Structure, rules: GateRules) -> GateRow:
    class_, _, phase = key.partition("/")
    before, after = base.launches.get(key, ABSENT), candidate.launches.get(key, ABSENT)
    return _held(
        f"structure/{key}", f"{class_} launches in {phase}", key, before, after, rules, varies=class_ in VARYING
    )


def _pair(key: str, base: Structure, candidate: Structure, rules: GateRules) -> GateRow:
    kind, _, figure = key.partition("/")
    what = (
        f"{_PAIR_NAMES.get(kind, kind)} per iteration"
        if figure == "per_iteration"
        else f"{_PAIR_NAMES.get(kind, kind)} ({figure})"
    )
    before, after = base.pairs.get(key, ABSENT), candidate.pairs.get(key, ABSENT)
    return _held(f"pairs/{key}", what, f"pairs/{key}", before, after, rules, varies=False)


def _held(rule: str, what: str, key: str, base: Count, candidate: Count, rules: GateRules, *, varies: bool) -> GateRow:
    stated, allowed = rules.stated(key)
    figures = (base.value, candidate.value)
    if (stated and allowed is None) or (not stated and not rules.exact):
        return _row(rule, "skipped", f"{what}: any value is allowed", "any", *figures)
    if candidate.value is None:
        if base.value is None and not stated:
            return _row(rule, "skipped", f"{what}: no data on either side", "no_data", *figures)
        return _row(rule, "missing", f"{what}: no data", "no_data_candidate", *figures)
    if stated and allowed is not None:
        return _in_set(rule, what, base, candidate, allowed, varies=varies)
    if base.value is None:
        return _row(
            rule, "skipped", f"{what}: {candidate.value}, and the baseline has no data", "no_data_base", *figures
        )
    if varies and not (base.constant and candidate.constant):
        return _overlapping(rule, what, base, candidate)
    if candidate.value != base.value and candidate.value not in base.seen:
        change = (
            "added"
            if base.value == 0
            else "removed"
            if candidate.value == 0
            else "more"
            if candidate.value > base.value
            else "fewer"
        )
        return _row(rule, "fail", f"{what} {base.value} -> {candidate.value}", change, *figures)
    new = sorted(set(candidate.seen) - set(base.seen))
    if new and not varies:
        message = f"{what}: {candidate.value} as in the baseline, but {listed(new)} in some iterations or on some ranks"
        return _row(rule, "fail", message, "minority", *figures)
    return _row(rule, "pass", f"{what}: {candidate.value}", "equal", *figures)


def _in_set(rule: str, what: str, base: Count, candidate: Count, allowed: tuple[int, ...], *, varies: bool) -> GateRow:
    figures = (base.value, candidate.value)
    words = " or ".join(str(value) for value in allowed)
    values = {candidate.value} if varies else {candidate.value, *candidate.seen}
    outside = sorted(value for value in values if value is not None and value not in allowed)
    if outside:
        return _row(rule, "fail", f"{what}: {listed(outside)}, and the rules allow {words}", "outside_set", *figures)
    return _row(rule, "pass", f"{what}: {candidate.value}, as the rules allow", "in_set", *figures)


def _overlapping(rule: str, what: str, base: Count, candidate: Count) -> GateRow:
    """Counts of small operators vary with what is sampled: they have changed where their ranges lie apart."""
    low, high = min(base.seen, default=0), max(base.seen, default=0)
    least, most = min(candidate.seen, default=0), max(candidate.seen, default=0)
    message = f"{what}: {_range(least, most)}, baseline {_range(low, high)} (they vary within a capture)"
    apart = most < low or high < least
    return _row(
        rule, "fail" if apart else "pass", message, "apart" if apart else "overlap", base.value, candidate.value
    )


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _backends(base: Structure, candidate: Structure, rules: GateRules) -> Iterator[GateRow]:
    for key, before in base.backends.items():
        after = candidate.backends.get(key, ())
        class_, _, phase = key.partition("/")
        rule = f"backend/{key}"
        stated, allowed = rules.stated(rule)
        if (stated and allowed is None) or not rules.exact:
            yield _row(rule, "skipped", f"backend of {class_} in {phase}: any is allowed", "any", [*before], [*after])
        elif candidate.launches.get(key, ABSENT).value == 0:
            yield _row(rule, "skipped", f"backend of {class_} in {phase}: nothing is launched", "none", [*before], [])
        elif before != after:
            shown = listed(after) or "none that the rules know"
            message = f"backend of {class_} in {phase} {listed(before)} -> {shown}"
            yield _row(rule, "fail", message, "backend", [*before], [*after])
        else:
            yield _row(rule, "pass", f"backend of {class_} in {phase}: {listed(after)}", "equal", [*before], [*after])


def _row(
    rule: str, verdict: GateVerdict, message: str, reason: str, base: JsonValue = None, candidate: JsonValue = None
) -> GateRow:
    word: Word | None = "structure" if verdict == "fail" else "missing" if verdict == "missing" else None
    return GateRow(rule, "structure", verdict, message, reason, word, base, candidate)
