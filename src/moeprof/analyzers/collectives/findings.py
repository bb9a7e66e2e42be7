"""What the comparison of ranks tells beside its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moeprof.analyzers.collectives.results import Collectives
from moeprof.analyzers.tables import Attribution
from moeprof.findings import Finding, JsonValue
from moeprof.wording import duration, listed, plural

_SLOWER = 1.05  # GEMM time over that of the other ranks
_EVEN = 1.02  # up to here the other kind of GEMM counts as equal
_STRAGGLES = 0.5  # of the collectives, and of all waiting
_MATTERS = 0.01  # waiting as a share of the windows
_APART_NS = 100_000


def collective_findings(compared: Collectives, ranks: Mapping[str, Attribution]) -> list[Finding]:
    """Return the findings of a comparison.

    Args:
        compared: The comparison.
        ranks: The attribution by label.
    """
    return [
        *_untrusted(compared),
        *_unmatched(compared),
        *_clocks(compared),
        *_stragglers(compared, ranks),
        *_slow(compared),
    ]


def _untrusted(compared: Collectives) -> Iterator[Finding]:
    if compared.matched and not compared.trusted:
        message = (
            f"the ends of {plural(compared.matched, 'matched collective')} lie further apart than the collectives last: ranks"
            " cannot be held against each other, and no waits are given"
        )
        worst = max(rank.residual_ns for rank in compared.ranks)
        yield Finding("collectives-apart", "warning", message, None, {"residual_ns": worst})


def _unmatched(compared: Collectives) -> Iterator[Finding]:
    if not compared.unmatched:
        return
    first = compared.unmatched[0]
    counts = ", ".join(f"{rank} {count}" for rank, count in first.counts.items())
    where = "" if first.iteration is None else f" in iteration {first.iteration}"
    message = (
        f"ranks hold different numbers of collectives in {plural(len(compared.unmatched), 'place')}; these are not matched"
        f" ({first.class_}{where}: {counts})"
    )
    places: list[JsonValue] = [
        {"iteration": one.iteration, "class": one.class_, "counts": dict(one.counts)} for one in compared.unmatched
    ]
    yield Finding("collectives-unequal", "warning", message, None, {"places": places})


def _clocks(compared: Collectives) -> Iterator[Finding]:
    if not compared.trusted:
        return
    far = [rank for rank in compared.ranks if abs(rank.offset_ns) > _APART_NS]
    if far:
        worst = max(far, key=lambda rank: abs(rank.offset_ns))
        message = (
            f"the clocks of {plural(len(far), 'rank')} are off by up to {duration(abs(worst.offset_ns))} ({worst.rank}); arrivals"
            " are corrected for it"
        )
        evidence: dict[str, JsonValue] = {rank.rank: rank.offset_ns for rank in compared.ranks}
        yield Finding("clocks-corrected", "note", message, None, {"offsets_ns": evidence})


def _stragglers(compared: Collectives, ranks: Mapping[str, Attribution]) -> Iterator[Finding]:
    if not compared.trusted or not compared.matched:
        return
    windows = sum(_window(found) for found in ranks.values())
    waited = sum(rank.waited_ns for rank in compared.ranks)
    for rank in compared.ranks:
        often, much = rank.last / compared.matched, rank.caused_ns / waited if waited else 0.0
        if often < _STRAGGLES or much < _STRAGGLES or rank.caused_ns < _MATTERS * windows:
            continue
        message = (
            f"{rank.rank} comes last to {rank.last} of {compared.matched} collectives; the others wait"
            f" {duration(rank.caused_ns)} for it, {much * 100:.0f} % of all waiting"
        )
        evidence: dict[str, JsonValue] = {
            "last": rank.last,
            "matched": compared.matched,
            "caused_ns": rank.caused_ns,
            "waited_ns": waited,
        }
        yield Finding("straggler", "warning", message, None if rank.rank == "unknown" else rank.rank, evidence)


def _window(found: Attribution) -> int:
    launches = found.launches
    if launches.is_empty():
        return 0
    first, last = launches["start_ns"].min(), launches["end_ns"].max()
    return last - first if isinstance(first, int) and isinstance(last, int) else 0


def _slow(compared: Collectives) -> Iterator[Finding]:
    for work in compared.work:
        expert, dense = work.expert_against_others, work.dense_against_others
        both = work.against_others
        key = None if work.rank == "unknown" else work.rank
        evidence: dict[str, JsonValue] = {
            "expert_ns": work.expert_ns,
            "dense_ns": work.dense_ns,
            "expert_against_others": expert,
            "dense_against_others": dense,
            "launches": work.launches,
        }
        if (
            both is not None
            and both > _SLOWER
            and (expert or _SLOWER + 1) > _SLOWER
            and (dense or _SLOWER + 1) > _SLOWER
        ):
            message = (
                f"{work.rank} takes {(both - 1) * 100:.1f} % longer for the same {work.launches} GEMMs per iteration than the"
                " other ranks (median): the device is slower, or it does more work in each"
            )
            yield Finding("slow-rank", "warning", message, key, evidence)
        elif expert is not None and expert > _SLOWER:
            rest = " while its dense GEMMs take as long as theirs" if dense is not None and dense < _EVEN else ""
            message = (
                f"{work.rank} takes {(expert - 1) * 100:.1f} % longer in expert GEMMs than the other ranks (median){rest}:"
                " its experts get more tokens"
            )
            yield Finding("experts-uneven", "warning", message, key, evidence)
    absent = [work.rank for work in compared.work if work.against_others is None and len(compared.work) > 1]
    if absent and any(work.launches for work in compared.work):
        message = f"the GEMM times of {listed(absent)} are not held against other ranks: none launches as many GEMMs"
        yield Finding("work-not-compared", "note", message, None, {"ranks": [*absent]})
