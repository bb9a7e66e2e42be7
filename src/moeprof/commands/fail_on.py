"""``--fail-on``: which outcomes of a comparison make the exit code 1."""

from __future__ import annotations

from moeprof.analyzers.results import Diff
from moeprof.errors import UsageError
from moeprof.reports.look import Outcome

WORDS = ("regression", "structure", "missing", "gate", "inconclusive")
_NONE = "none"
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
        "regression": diff.verdict == "regressed",
        "structure": diff.verdict == "changed" or any(row.change in _MOVED for row in diff.structure),
        "missing": _missing(diff),
        "gate": "gate-failed" in slugs,
        "inconclusive": diff.verdict == "inconclusive",
    }
    return tuple(word for word in WORDS if true[word])


def _missing(diff: Diff) -> bool:
    pairs = (diff.pairs.ag_rs, diff.pairs.moe_gemm)
    figures = [
        *((row.base, row.candidate) for row in diff.structure),
        *((row.base, row.candidate) for row in pairs),
        *((row.base, row.candidate) for row in diff.time),
    ]
    lost = any(base is not None and candidate is None for base, candidate in figures)
    return lost or diff.candidate.ranks < diff.base.ranks


def outcome(diff: Diff, words: tuple[str, ...], *, same_path: bool) -> Outcome:
    """Return the exit code of a diff and why.

    Args:
        diff: The comparison.
        words: What is to fail, from `parse`.
        same_path: Whether both sides are the same path: then nothing comparable is no error.
    """
    if diff.verdict == "not_comparable":
        if same_path:
            return Outcome(0, "because both sides are the same path")
        return Outcome(2, "because nothing could be compared")
    failing = [word for word in happened(diff) if word in words]
    if failing:
        return Outcome(1, f"because --fail-on {','.join(failing)}")
    if not words:
        return Outcome(0, "because --fail-on none")
    return Outcome(0, f"because nothing of --fail-on {','.join(words)} happened")
