"""Hold the folded structures of two arms against each other: body to body, then launch to launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from moeprof.analyzers.layers.align import edits, similarity
from moeprof.analyzers.layers.results import LayerRow, LayerVariant, SequenceChange
from moeprof.analyzers.layers.sentences import repeat_sentence, sentence, variant_sentence
from moeprof.analyzers.tables import PHASES

_ALIKE = 0.3  # least similarity of two bodies of which one became the other


@dataclass(slots=True)
class _Body:
    """A sequence of a side, with how often it stands there in all, and how many of these are not accounted for yet."""

    row: LayerRow
    total: int
    left: int


def representative(ranks: Sequence[tuple[LayerRow, ...]]) -> tuple[LayerRow, ...]:
    """Return the structure that most ranks have, of equally common ones the first; nothing of no rank."""
    shapes = [tuple((row.phase, row.repeat, row.sequence, row.families) for row in rows) for rows in ranks]
    times = Counter(shapes)
    best = max(shapes, key=lambda shape: times[shape], default=None)
    return ranks[shapes.index(best)] if best is not None else ()


def layer_changes(base: Sequence[LayerRow], candidate: Sequence[LayerRow]) -> tuple[SequenceChange, ...]:
    """Return for each body of two structures what became of it, by phase.

    Args:
        base: The structure of one side.
        candidate: That of the other; swapping them swaps the answer.
    """
    changes: list[SequenceChange] = []
    for phase in PHASES:
        before = _bodies([row for row in base if row.phase == phase])
        after = _bodies([row for row in candidate if row.phase == phase])
        changes += _paired(before, after)
    return tuple(changes)


def variant_changes(base: Sequence[LayerRow], candidate: Sequence[LayerRow]) -> tuple[str, ...]:
    """Say which repetitions differ from the rest on one side only, where the bodies are the same on both."""
    known = {(row.phase, row.sequence, row.families): row for row in base}
    said: list[str] = []
    for row in candidate:
        other = known.get((row.phase, row.sequence, row.families))
        if other is None or row.repeat < 2:
            continue
        said += [variant_sentence(row, one, now=True) for one in row.variants if not _has(other, one)]
        said += [variant_sentence(other, one, now=False) for one in other.variants if not _has(row, one)]
    return tuple(said)


def _has(row: LayerRow, variant: LayerVariant) -> bool:
    return any(
        (one.repeat, one.without, one.with_) == (variant.repeat, variant.without, variant.with_) for one in row.variants
    )


def _bodies(rows: Sequence[LayerRow]) -> list[_Body]:
    bodies: dict[object, _Body] = {}
    for row in rows:
        body = bodies.setdefault((row.sequence, row.families), _Body(row, 0, 0))
        if row.repeat > body.row.repeat:
            body.row = row
        body.total += row.repeat
        body.left += row.repeat
    return list(bodies.values())


def _paired(before: Sequence[_Body], after: Sequence[_Body]) -> list[SequenceChange]:
    """Pair the same bodies first, then those most alike; what is left came or went."""
    found: list[tuple[int, int, SequenceChange]] = []
    for i, one in enumerate(before):
        for j, other in enumerate(after):
            if one.row.kernels == other.row.kernels:
                found.append((i, j, _change(one, other, min(one.left, other.left))))
    ranked = sorted(
        (
            (
                -similarity(one.row.kernels, other.row.kernels),
                one.row.role != other.row.role,
                abs(i - j),
                min(i, j),
                i,
                j,
            )
            for i, one in enumerate(before)
            for j, other in enumerate(after)
        )
    )
    for negative, _, _, _, i, j in ranked:
        one, other = before[i], after[j]
        alone = len(before) == len(after) == 1  # the one became the other, whatever they share
        if (alone or -negative >= _ALIKE) and one.left and other.left:
            found.append((i, j, _change(one, other, min(one.left, other.left))))
    end = len(before) + len(after)
    found += [(i, end, _alone(one, gone=True)) for i, one in enumerate(before) if one.left]
    found += [(end, j, _alone(other, gone=False)) for j, other in enumerate(after) if other.left]
    return [change for _, _, change in sorted(found, key=lambda item: (min(item[:2]), item[0] + item[1], item[0]))]


def _change(base: _Body, candidate: _Body, repeat: int) -> SequenceChange:
    base.left -= repeat
    candidate.left -= repeat
    row, other = base.row, candidate.row
    found = edits(row, other)
    changed = any(one.edit != "overtaken" for one in found)
    return SequenceChange(
        phase=row.phase,
        repeat=repeat,
        base=row.sequence,
        candidate=other.sequence,
        change="changed" if changed else "same",
        role=row.role,
        base_repeat=base.total,
        candidate_repeat=candidate.total,
        base_families=row.families,
        candidate_families=other.families,
        base_names=row.names,
        candidate_names=other.names,
        edits=found,
        base_duration_ns=row.duration_ns,
        candidate_duration_ns=other.duration_ns,
        base_kernel_busy_ns=row.kernel_busy_ns,
        candidate_kernel_busy_ns=other.kernel_busy_ns,
        base_kernel_sum_ns=row.kernel_sum_ns,
        candidate_kernel_sum_ns=other.kernel_sum_ns,
        sentence=sentence(row, other, found, repeat, base.total, candidate.total) if changed else None,
    )


def _alone(body: _Body, *, gone: bool) -> SequenceChange:
    """Return the change of a body of which one side has more, or that only one side has."""
    row, repeat = body.row, body.left
    here = (row.sequence, row.families, row.names, row.duration_ns, row.kernel_busy_ns, row.kernel_sum_ns)
    none: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[int, ...], None, None] = (
        (),
        (),
        (),
        (),
        None,
        None,
    )
    base, candidate = (here, none) if gone else (none, here)
    other = body.total - repeat
    return SequenceChange(
        phase=row.phase,
        repeat=repeat,
        base=base[0],
        candidate=candidate[0],
        change="removed" if gone else "added",
        role=row.role,
        base_repeat=body.total if gone else other,
        candidate_repeat=other if gone else body.total,
        base_families=base[1],
        candidate_families=candidate[1],
        base_names=base[2],
        candidate_names=candidate[2],
        edits=(),
        base_duration_ns=base[3],
        candidate_duration_ns=candidate[3],
        base_kernel_busy_ns=base[4],
        candidate_kernel_busy_ns=candidate[4],
        base_kernel_sum_ns=base[5],
        candidate_kernel_sum_ns=candidate[5],
        sentence=repeat_sentence(row, repeat, other, gone=gone),
    )
