"""Find the same collective on all ranks: by sequence number where there is one, else by iteration and order.

Windows of ranks may begin at different iterations. The shift between them is the one under which the collectives of
the iterations end at one time, up to a constant (the distance of the clocks).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from moeprof.analyzers.tables import COMMUNICATION, Attribution
from moeprof.traces.trace import RankTrace

_MATCHED = tuple(name for name in COMMUNICATION if name not in ("send_recv", "comm_other"))
_MOST_SHIFT = 64
_LEAST_COMMON = 2  # iterations that two ranks must share
_SAME_NS = 2_000  # spreads of end differences closer than this tell nothing

#: Device collectives of all ranks in absolute time.
_KEYS = ("group", "class", "iteration", "order")


@dataclass(frozen=True, slots=True)
class Matched:
    """Matched collectives: ``rank``, ``collective``, ``event``, ``class``, ``start_ns``, ``end_ns``; and what was left out."""

    rows: pl.DataFrame
    unequal: pl.DataFrame
    shifts: dict[str, int]
    by: str | None


def match(ranks: Mapping[str, tuple[RankTrace, Attribution]]) -> Matched:
    """Match the collectives of ranks.

    Args:
        ranks: Per label, the rank and its attribution.
    """
    frames = {label: _collectives(label, rank, found) for label, (rank, found) in ranks.items()}
    reference = next(iter(frames))
    by_iteration = all(found.iterations.height for _, found in ranks.values())
    shifts = {label: _shift(frames[reference], frame, by_iteration=by_iteration) for label, frame in frames.items()}
    rows = pl.concat([frame.with_columns(pl.col("iteration") + shifts[label]) for label, frame in frames.items()])
    if not by_iteration:
        rows = _shifted_order(rows, shifts)
    else:
        order = pl.int_range(pl.len(), dtype=pl.Int64).over("rank", "group", "class", "iteration")
        rows = rows.with_columns(order.alias("order"))
    numbered = pl.col("sequence").is_not_null()
    rows = rows.with_columns(
        pl.when(numbered).then(pl.lit(None, pl.Int64)).otherwise(pl.col("iteration")).alias("iteration"),
        pl.when(numbered).then(pl.col("sequence").cast(pl.Int64)).otherwise(pl.col("order")).alias("order"),
        numbered.alias("numbered"),
    )
    equal, unequal = _equal(rows, len(ranks))
    keys = [*_KEYS, "numbered"]
    places = equal.select(keys).unique().sort(keys, nulls_last=True).with_row_index("collective")
    keyed = equal.join(places, on=keys, how="left", nulls_equal=True, maintain_order="left")
    by = (
        None
        if keyed.is_empty()
        else "sequence"
        if keyed["numbered"].all()
        else "iteration"
        if by_iteration
        else "order"
    )
    columns = ("rank", "collective", "event", "class", "start_ns", "end_ns")
    return Matched(keyed.select(columns), unequal, shifts, by)


def _collectives(label: str, rank: RankTrace, found: Attribution) -> pl.DataFrame:
    """Return the device collectives of a rank by start, in absolute time."""
    known = rank.collectives.select(
        "event", "sequence", pl.concat_str("group_name", "group_ranks", separator=" ", ignore_nulls=True).alias("group")
    ).unique("event", keep="first", maintain_order=True)
    base = rank.metadata.base_time_ns
    return (
        found.launches.filter(pl.col("activity") == "kernel", pl.col("class").is_in(_MATCHED))
        .sort("start_ns", "event")
        .join(known, on="event", how="left", maintain_order="left")
        .select(
            pl.lit(label).alias("rank"),
            "event",
            pl.col("class").cast(pl.String),
            pl.col("group").fill_null(""),
            "sequence",
            pl.col("iteration").cast(pl.Int64),
            pl.col("start_ns") + base,
            pl.col("end_ns") + base,
        )
    )


def _shift(reference: pl.DataFrame, frame: pl.DataFrame, *, by_iteration: bool) -> int:
    """Return what to add to the iterations (or places in order) of a rank so that they are those of the reference."""
    if reference is frame:
        return 0
    ends = [_ends(table, by_iteration=by_iteration) for table in (reference, frame)]
    return best_shift(*ends)


def _ends(frame: pl.DataFrame, *, by_iteration: bool) -> dict[int, int]:
    if by_iteration:
        ends = frame.filter(pl.col("iteration").is_not_null()).group_by("iteration").agg(pl.col("end_ns").max())
        return dict(ends.iter_rows())
    return dict(enumerate(frame["end_ns"].to_list()))


def best_shift(reference: Mapping[int, int], other: Mapping[int, int]) -> int:
    """Return the shift of places under which two sequences of ends differ by a constant.

    Args:
        reference: Ends in ns by place.
        other: Likewise.

    Returns:
        What to add to the places of `other`. Of shifts that fit equally well, that with the nearest clocks, then the smallest.

    Example:
        >>> best_shift({0: 0, 1: 100_000, 2: 250_000, 3: 300_000}, {0: 250_007, 1: 300_007})
        2
    """
    fits: list[tuple[float, float, int]] = []
    for shift in sorted(range(-_MOST_SHIFT, _MOST_SHIFT + 1), key=abs):
        apart = [end - reference[place + shift] for place, end in other.items() if place + shift in reference]
        if len(apart) < min(_LEAST_COMMON, len(other), len(reference)) or not apart:
            continue
        middle = median(apart)
        fits.append((median(abs(value - middle) for value in apart), abs(middle), shift))
    if not fits:
        return 0
    best = min(spread for spread, _, _ in fits)
    alike = [fit for fit in fits if fit[0] <= 2 * best + _SAME_NS]
    return min(alike, key=lambda fit: (fit[1], abs(fit[2]), fit[2]))[2]


def _shifted_order(rows: pl.DataFrame, shifts: Mapping[str, int]) -> pl.DataFrame:
    """Number collectives over the whole window; where windows begin at different ones, from the first that all hold."""
    by_rank = pl.DataFrame(
        {"rank": list(shifts), "shift": list(shifts.values())}, schema={"rank": pl.String, "shift": pl.Int64}
    )
    first = max(shifts.values())
    places = pl.int_range(pl.len(), dtype=pl.Int64).over("rank") + pl.col("shift")
    kept = rows.join(by_rank, on="rank", maintain_order="left").filter(places >= first)
    order = pl.int_range(pl.len(), dtype=pl.Int64).over("rank", "group", "class")
    return kept.with_columns(pl.lit(None, pl.Int64).alias("iteration"), order.alias("order")).drop("shift")


def _equal(rows: pl.DataFrame, ranks: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part the collectives that all members of a group hold in equal number from those that they do not."""
    within = ["group", "class", "iteration", "numbered"]
    numbered = rows.filter("numbered").with_columns(pl.len().over("group", "class", "order").alias("held"))
    numbered = numbered.filter(
        pl.col("held") > 1, pl.col("rank").n_unique().over("group", "class", "order") == pl.col("held")
    )
    plain = rows.filter(~pl.col("numbered"))
    counts = plain.group_by(*within, "rank").len(name="count")
    members = plain.group_by("group", "class").agg(pl.col("rank").n_unique().alias("members"))
    judged = (
        counts.group_by(within)
        .agg(pl.len().alias("present"), (pl.col("count").n_unique() == 1).alias("alike"))
        .join(members, on=["group", "class"])
        .with_columns(
            pl.when(pl.col("group") == "").then(pl.lit(ranks, pl.UInt32)).otherwise("members").alias("members")
        )
    )
    good = judged.filter(pl.col("present") == pl.col("members"), pl.col("alike"), pl.col("members") > 1)
    matched = plain.join(good.select(within), on=within, how="semi", nulls_equal=True, maintain_order="left")
    unequal = counts.join(
        judged.filter(pl.col("present") == pl.col("members"), ~pl.col("alike")).select(within),
        on=within,
        how="semi",
        nulls_equal=True,
    )
    return pl.concat([matched, numbered.drop("held")]), unequal.select("iteration", "class", "rank", "count")


def by_rank(values: pl.DataFrame, ranks: Sequence[str], column: str) -> dict[str, int]:
    """Return a figure of each rank, 0 for those without a row."""
    known = dict(values.select("rank", column).iter_rows())
    return {rank: int(known.get(rank, 0)) for rank in ranks}
