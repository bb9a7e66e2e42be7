"""The folded structure of a rank: elements of each phase with their times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as Items
from collections.abc import Set as AbstractSet

import polars as pl

from moeprof.analyzers.layers.fold import Element, fold
from moeprof.analyzers.layers.results import Kernel, LayerRow, LayerVariant, NestedRepeat, Role
from moeprof.analyzers.layers.sequences import Sequence
from moeprof.analyzers.tables import EXPERTS

_LONGEST = 100_000  # launches of a phase that are folded
_TOLD = 1000  # launches of a part that stands there once, of which the first so many are told
_JOINT = 8  # one in so many launches of a body may join it to the next
_DENSE = ("dense_gemm",)
_ATTENTION = ("attention", "kv_cache")


def layer_rows(sequences: Items[Sequence]) -> tuple[LayerRow, ...]:
    """Fold the sequence of each phase; in order of phases, then of launches.

    Args:
        sequences: As `moeprof.analyzers.layers.sequences.sequences` makes them.
    """
    return tuple(row for sequence in sequences for row in _of_phase(sequence))


def _of_phase(sequence: Sequence) -> list[LayerRow]:
    if len(sequence.tokens) > _LONGEST:
        return []
    elements = fold(sequence.tokens, ordered=sequence.ordered)
    places = [_positions(element, sequence) for element in elements]
    times = _Times(sequence, elements, places)
    return [_row(sequence, element, index, places[index], times) for index, element in enumerate(elements)]


def _positions(element: Element, sequence: Sequence) -> list[list[int | None]]:
    """Return for each repetition the place in the body of each of its launches: the n-th of a kernel is the body's n-th."""
    return [_positions_of(element.body, sequence.tokens[one.start : one.stop]) for one in element.instances]


def _positions_of(body: Items[int], part: Items[int]) -> list[int | None]:
    places: dict[tuple[int, int], int] = {}
    seen: Counter[int] = Counter()
    for place, token in enumerate(body):
        places[token, seen[token]] = place
        seen[token] += 1
    seen.clear()
    found: list[int | None] = []
    for token in part:
        found.append(places.get((token, seen[token])))
        seen[token] += 1
    return found


class _Times:
    """Medians over iterations and repetitions."""

    def __init__(self, sequence: Sequence, elements: Items[Element], places: Items[list[list[int | None]]]) -> None:
        rows = [
            (sequence.tokens[at], sequence.occurrences[at], index, number, place)
            for index, (element, found) in enumerate(zip(elements, places, strict=True))
            for number, (one, positions) in enumerate(zip(element.instances, found, strict=True))
            for at, place in zip(range(one.start, one.stop), positions, strict=True)
        ]
        schema = {
            "token": pl.UInt32,
            "occurrence": pl.UInt32,
            "element": pl.UInt32,
            "repetition": pl.UInt32,
            "place": pl.UInt32,
        }
        table = pl.DataFrame(rows, schema=schema, orient="row")
        timed = sequence.timed.join(table, on=["token", "occurrence"], how="inner").sort("start_ns", "token")
        before = pl.col("end_ns").cum_max().shift(1).over("iteration", "element", "repetition")
        new = (pl.col("end_ns") - pl.max_horizontal("start_ns", before)).clip(lower_bound=0)
        each = (
            timed.with_columns(new.fill_null(pl.col("duration_ns")).alias("new_ns"))
            .group_by("iteration", "element", "repetition")
            .agg(pl.col("duration_ns").sum(), pl.col("new_ns").sum())
        )
        whole = each.group_by("element").agg(_median("duration_ns"), _median("new_ns")).sort("element")
        self.sums: dict[int, tuple[int, int]] = {row[0]: (row[1], row[2]) for row in whole.iter_rows()}
        single = timed.filter(pl.col("place").is_not_null()).group_by("element", "place").agg(_median("duration_ns"))
        self.launches: dict[tuple[int, int], int] = {(row[0], row[1]): row[2] for row in single.iter_rows()}
        total = int(timed["duration_ns"].sum())
        parts = timed.group_by("element").agg(pl.col("duration_ns").sum())
        self.shares: dict[int, float] = {row[0]: row[1] / total for row in parts.iter_rows()} if total else {}


def _median(column: str) -> pl.Expr:
    return pl.col(column).quantile(0.5, "lower").cast(pl.Int64)


def _row(sequence: Sequence, element: Element, index: int, places: Items[list[int | None]], times: _Times) -> LayerRow:
    body = element.body if element.repeat > 1 else element.body[:_TOLD]
    kernels = [sequence.kernels[token] for token in body]
    classes = {kernel.class_ for kernel in kernels}
    sums = times.sums.get(index)
    variants = _variants(element, sequence.kernels)
    return LayerRow(
        phase=sequence.phase,
        repeat=element.repeat,
        sequence=tuple(kernel.class_ for kernel in kernels),
        role=_role(sequence.phase, element, classes),
        alike=element.repeat - sum(one.repeat for one in variants if not one.joint),
        families=tuple(kernel.family for kernel in kernels),
        names=_names(sequence, element, places, len(body)),
        nested=tuple(NestedRepeat(span.start, span.length, span.repeat) for span in element.nested),
        variants=variants,
        streams=_streams(sequence, element, places, len(body)),
        ordered=sequence.ordered,
        launches=sum(one.stop - one.start for one in element.instances),
        kernel_sum_ns=sums[0] if sums else None,
        kernel_busy_ns=sums[1] if sums else None,
        duration_ns=tuple(times.launches.get((index, place), 0) for place in range(len(body))),
        share=times.shares.get(index),
        iterations=sequence.iterations,
        iterations_counted=sequence.counted,
    )


def _role(phase: str, element: Element, classes: AbstractSet[str]) -> Role:
    experts = bool(classes & {"moe_gemm", "moe_fused"})
    attention = bool(classes & set(_ATTENTION))
    if phase == "draft" and (experts or attention):
        return "pass"
    if experts and (element.repeat > 1 or attention):
        return "moe_layer"
    return "dense_layer" if attention and classes & set(_DENSE) and not classes & set(EXPERTS) else "other"


def _variants(element: Element, kernels: Items[Kernel]) -> tuple[LayerVariant, ...]:
    groups: dict[tuple[tuple[Kernel, ...], tuple[Kernel, ...], bool], list[int]] = {}
    body = Counter(element.body)
    for number, one in enumerate(element.instances):
        if one.tokens is not None:
            own = Counter(one.tokens)
            joint = _is_joint(element, number)
            key = (_ordered(body - own, kernels), _ordered(own - body, kernels), joint)
            groups.setdefault(key, []).append(number)
    return tuple(
        LayerVariant(len(numbers), tuple(numbers), without, more, joint)
        for (without, more, joint), numbers in groups.items()
    )


def _is_joint(element: Element, number: int) -> bool:
    """Tell whether a repetition only lacks what joins two: the last one the end of the body, the first one its beginning."""
    tokens, body = element.instances[number].tokens or (), element.body
    gap = len(body) - len(tokens)
    if not 0 < gap <= max(1, len(body) // _JOINT):
        return False
    last = number == element.repeat - 1 and Counter(tokens) == Counter(body[: len(tokens)])
    return last or (number == 0 and Counter(tokens) == Counter(body[gap:]))


def _ordered(tokens: Counter[int], kernels: Items[Kernel]) -> tuple[Kernel, ...]:
    return tuple(sorted((kernels[token] for token in tokens.elements()), key=lambda one: (one.class_, one.family)))


def _names(sequence: Sequence, element: Element, places: Items[list[int | None]], told: int) -> tuple[str, ...]:
    """Return a name for each launch of a body: that of most repetitions."""
    votes: list[Counter[str]] = [Counter() for _ in element.body]
    for one, found in zip(element.instances, places, strict=True):
        for at, place in zip(range(one.start, one.stop), found, strict=True):
            if place is not None:
                votes[place][sequence.names[at]] += 1
    # A kernel that the body has more often than any repetition has no place in one; its name is that of the kernel elsewhere.
    elsewhere = dict(zip(sequence.tokens, sequence.names, strict=True))
    return tuple(
        min(vote, key=lambda name: (-vote[name], name)) if vote else elsewhere.get(token, "")
        for token, vote in zip(element.body[:told], votes, strict=False)
    )


def _streams(
    sequence: Sequence, element: Element, places: Items[list[int | None]], told: int
) -> tuple[int, ...] | None:
    """Return the stream of each launch of a body: that of most repetitions."""
    if sequence.streams is None:
        return None
    votes: list[Counter[int]] = [Counter() for _ in element.body]
    for one, found in zip(element.instances, places, strict=True):
        for at, place in zip(range(one.start, one.stop), found, strict=True):
            if place is not None:
                votes[place][sequence.streams[at]] += 1
    return tuple(min(vote, key=lambda stream: (-vote[stream], stream)) if vote else 0 for vote in votes[:told])
