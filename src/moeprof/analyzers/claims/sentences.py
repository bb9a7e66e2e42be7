"""The sentences that a comparison carries, each with its label and figures, and those that it does not."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.claims.results import ClaimRow
from moeprof.analyzers.serving.results import LABELS, ArmValues, ServingRow
from moeprof.wording import rounded, signed

NEVER = "never"
_LEAST_P = 0.05
_TAIL_NOTE = "tail not resolved"
_SAME_NOTE = "the same measurement as"


def sentences(rows: Sequence[ServingRow]) -> tuple[ClaimRow, ...]:
    """Return the claims of a comparison: what may be said first, strongest label first, then what may not.

    Args:
        rows: Of the serving metrics.
    """
    gating = [row for row in rows if row.gates]
    said = [claim for row in gating if (claim := _said(row)) is not None]
    said.sort(key=lambda claim: [*LABELS].index(claim.label))  # type: ignore[arg-type]  # a sentence carries its row's label
    unsaid = [claim for row in gating if (claim := _unsaid(row)) is not None]
    return (*said, *unsaid, *_general(rows))


def _said(row: ServingRow) -> ClaimRow | None:
    if row.verdict == "unchanged" and row.interval is not None:
        text = f"{_what(row)} stayed within {_share(row.threshold)} of base, as the whole interval does"
        return _claim(row, text, _figures(row))
    if row.verdict not in ("improved", "regressed") or row.change is None:
        return None
    rose = "rose" if row.change > 0 else "fell"
    if row.label == "A/B/A, drifted" and row.drift is not None:
        ends = sorted(change for change in (row.drift.change_vs_a0, row.drift.change_vs_a2) if change is not None)
        size = f"by {signed(ends[0])} to {signed(ends[-1])}, against the base block before and after"
        return _claim(row, f"{_what(row)} {rose}, {size}", _figures(row))
    if row.label == "A/B only":
        text = f"preliminary: {_what(row)} {rose} by {_size(row)} in an A/B comparison without a return to base"
        return _claim(row, text, f"{_figures(row)}; {row.label_because}")
    return _claim(row, f"{_what(row)} {rose} by {_size(row)}", _figures(row))


def _unsaid(row: ServingRow) -> ClaimRow | None:
    what = _what(row)
    if row.label == "A/B/A, drifted" and row.change is not None:
        text = f"that {what} changed by {signed(row.change)}"
        return _claim(row, text, f"{row.label_because}: only the span may be given", never=True)
    if row.verdict == "not_comparable":
        return _claim(row, f"anything about {what}", f"not comparable: {row.label_because}", never=True)
    if row.verdict == "missing":
        return _claim(row, f"anything about {what}", row.label_because, never=True)
    if row.verdict != "inconclusive":
        return None
    open_ = "" if not row.worst_not_excluded else f"; {signed(row.worst_not_excluded)} is not excluded"
    because = f"{row.reason.replace('_', ' ')}{open_} ({_figures(row)})"
    return _claim(row, f"that {what} changed, or that it did not", because, never=True)


def _general(rows: Sequence[ServingRow]) -> list[ClaimRow]:
    found = []
    weak = sorted({row.p_floor for row in rows if row.gates and row.p_floor is not None and row.p_floor > _LEAST_P})
    if weak:
        found.append(
            ClaimRow(
                "significance at 5 %", NEVER, f"with so few passes p cannot be below {weak[0]:.3g}", kind="not-said"
            )
        )
    same = sorted({row.metric for row in rows if any(note.startswith(_SAME_NOTE) for note in row.notes)})
    if same:
        because = f"{', '.join(same)} are output_throughput in other units"
        found.append(ClaimRow("several throughputs as confirmations of each other", NEVER, because, kind="not-said"))
    tails = sorted({row.metric for row in rows if any(note.startswith(_TAIL_NOTE) for note in row.notes)})
    if tails:
        because = f"too few requests in a pass for {', '.join(tails)}"
        found.append(ClaimRow("a change of a tail", NEVER, because, kind="not-said"))
    return found


def _claim(row: ServingRow, text: str, because: str, *, never: bool = False) -> ClaimRow:
    return ClaimRow(
        text=text,
        label=NEVER if never else row.label,
        because=because,
        kind="not-said" if never else "sentence",
        metric=row.metric,
        workload=row.workload,
    )


def _what(row: ServingRow) -> str:
    return row.metric if row.workload == "all" else f"{row.metric} at {row.workload}"


def _figures(row: ServingRow) -> str:
    parts = [f"median {_arm(row.candidate, row.unit)} against {_arm(row.base, row.unit)}"]
    if row.interval is not None and row.confidence is not None:
        low, high = row.interval
        parts.append(f"{_share(row.confidence)} interval {signed(low)} .. {signed(high)}")
    if row.p is not None and row.p_floor is not None:
        parts.append(f"p = {row.p:.3f} (floor {row.p_floor:.3f}, {row.base.n} v {row.candidate.n} passes)")
    return "; ".join(parts)


def _arm(values: ArmValues, unit: str) -> str:
    if values.median is None:
        return "no data"
    return f"{rounded(values.median)} {unit} [{rounded(values.min)}, {rounded(values.max)}] n={values.n}"


def _size(row: ServingRow) -> str:
    return _share(abs(row.change or 0.0), decimals=2)


def _share(fraction: float, *, decimals: int = 1) -> str:
    text = f"{fraction * 100:.{decimals}f}"
    return f"{text} %"
