"""``--fail-on``: which outcomes of a comparison make the exit code 1."""

from __future__ import annotations

from moeprof.analyzers.results import Diff
from moeprof.errors import UsageError
from moeprof.reports.outcome import Outcome

WORDS = ("regression", "structure", "missing", "gate", "inconclusive")
_NONE = "none"
#: Words about what a server did, which launches and times of a trace do not tell.
_NEED_METRICS = ("regression", "gate", "inconclusive")
_MOVED = ("added", "removed", "more", "fewer")


def parse(text: str) -> tuple[str, ...]:
    """Return the words of a list, in the order of `WORDS`; empty for ``none``.

    Raises:
        UsageError: For an unknown word, an empty list, or ``none`` beside others.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in (*WORDS, _NONE)]
    known = f"the words are {', '.join((*WORDS, _NONE))}"
    if unknown:
        raise UsageError(f"--fail-on: no such word: {', '.join(unknown)}", hint=known)
    if not words:
        raise UsageError("--fail-on needs a word", hint=known)
    if _NONE in words and len(set(words)) > 1:
        raise UsageError("--fail-on: none stands alone", hint=known)
    return tuple(word for word in WORDS if word in words)


def happened(diff: Diff) -> tuple[str, ...]:
    """Return the words that are true of a diff."""
    slugs = {finding.slug for finding in diff.findings}
    true = {
        "regression": diff.verdict == "regressed" or _metric(diff, "regressed") or _said(diff, "drop shown"),
        "structure": diff.verdict == "changed" or any(row.change in _MOVED for row in diff.structure),
        "missing": _missing(diff),
        "gate": not slugs.isdisjoint(("gate-failed", "pass-excluded")),
        "inconclusive": diff.verdict == "inconclusive" or _metric(diff, "inconclusive") or _said(diff, "cannot tell"),
    }
    return tuple(word for word in WORDS if true[word])


def _metric(diff: Diff, verdict: str) -> bool:
    """Tell whether a metric that gates has a verdict."""
    return any(row.gates and row.verdict == verdict for row in diff.serving)


def _said(diff: Diff, label: str) -> bool:
    """Tell whether a task of an evaluation has a label."""
    return any(row.label == label for row in diff.accuracy)


def _not_evaluated(diff: Diff) -> bool:
    """Tell whether the candidate lacks an evaluation that the base has."""
    return any(row.reason == "no_data_candidate" for row in diff.accuracy)


def _missing(diff: Diff) -> bool:
    pairs = (diff.pairs.ag_rs, diff.pairs.moe_gemm)
    figures = [
        *((row.base, row.candidate) for row in diff.structure),
        *((row.base, row.candidate) for row in pairs),
        *((row.base, row.candidate) for row in diff.time),
    ]
    lost = any(base is not None and candidate is None for base, candidate in figures)
    return lost or diff.candidate.ranks < diff.base.ranks or _metric(diff, "missing") or _not_evaluated(diff)


def not_judged(diff: Diff, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that a diff without serving and accuracy metrics gives no answer to."""
    if diff.serving or diff.accuracy:
        return ()
    return tuple(word for word in words if word in _NEED_METRICS and word not in happened(diff))


def outcome(diff: Diff, words: tuple[str, ...]) -> Outcome:
    """Return the exit code of a diff and why.

    Args:
        diff: The comparison.
        words: What is to fail, from `parse`.
    """
    if diff.verdict == "not_comparable":
        return Outcome(2, "because nothing could be compared")
    unknown = not_judged(diff, words)
    caveat = f"{' and '.join(unknown)} could not be judged: neither side carries serving metrics" if unknown else None
    failing = [word for word in happened(diff) if word in words]
    if failing:
        return Outcome(1, f"because --fail-on {','.join(failing)}", caveat)
    if not words:
        return Outcome(0, "because --fail-on none")
    judged = [word for word in words if word not in unknown]
    return Outcome(0, f"because nothing of --fail-on {','.join(judged)} happened" if judged else None, caveat)
