"""The section of a diff that explains the difference of wall times."""

from __future__ import annotations

from moeprof.analyzers.timeline.results import Waterfall, WaterfallPart
from moeprof.reports.document import Column, Section, Table
from moeprof.reports.units import milliseconds
from moeprof.wording import duration

_SHOWN = 14
_LEAST_SHARE = 0.002  # of the wall time; smaller differences are added up in one row


def waterfall_section(found: Waterfall | None, *, wide: bool) -> tuple[Section, ...]:
    """Return the waterfall; none where it was not asked for or nothing could be compared."""
    if found is None:
        return ()
    shown = [part for part in found.parts if wide or abs(part.difference_ns) >= _LEAST_SHARE * found.base_ns]
    shown = shown if wide else shown[:_SHOWN]
    others = found.parts[len(shown) :] if not wide else ()
    rows: list[tuple[str, ...]] = [("wall, base", "", milliseconds(found.base_ns), "", "")]
    rows += [_row(part) for part in shown]
    if others:
        sums = [sum(getattr(part, name) for part in others) for name in ("base_ns", "candidate_ns", "difference_ns")]
        rows.append((f"{len(others)} smaller parts", "", *(milliseconds(ns) for ns in sums[:2]), _signed(sums[2])))
    rows.append(("rest", "", "", "", _signed(found.rest_ns)))
    rows.append(("wall, candidate", "", "", milliseconds(found.candidate_ns), _signed(found.difference_ns)))
    columns = (Column("part"), Column("phase"), *(Column(title, "number") for title in ("base", "candidate", "by")))
    numbers = f"{found.base_iterations} and {found.candidate_iterations} iterations"
    notes = (
        f"medians of wall times, {_batch(found)} ({numbers}); parts: means over the middle half of them, each instant once;"
        f" parts and rest add up to {_signed_duration(found.difference_ns)} exactly",
    )
    return (Section("From base to candidate: wall time of an iteration (ms)", (Table(columns, tuple(rows), notes),)),)


def _row(part: WaterfallPart) -> tuple[str, ...]:
    state = part.state.replace("_", " ")
    name = state if part.class_ is None else f"{state}: {part.class_}"
    values = (milliseconds(part.base_ns), milliseconds(part.candidate_ns), _signed(part.difference_ns))
    return (name, part.phase or "", *values)


def _batch(found: Waterfall) -> str:
    kind = f"{found.kind} iterations" if found.kind else "iterations"
    if found.requests is None:
        return kind
    return f"{kind} of {found.requests} requests" + ("" if found.tokens is None else f" and {found.tokens} tokens")


def _signed(ns: int) -> str:
    text = milliseconds(ns)
    return f"+{text}" if ns > 0 and not text.startswith("<") else text


def _signed_duration(ns: int) -> str:
    return f"+{duration(ns)}" if ns > 0 else duration(ns)
