"""One sentence for each change of structure. A difference of kernel sums is never called a saving of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from moeprof.analyzers.layers.results import Kernel, LayerEdit, LayerRow, LayerVariant, Role
from moeprof.wording import duration, listed, plural, safe

_NOUNS: dict[Role, str] = {"moe_layer": "MoE layer", "dense_layer": "dense layer", "pass": "pass", "other": "part"}
_SHORT = {
    "all_gather": "AG",
    "reduce_scatter": "RS",
    "all_reduce": "all-reduce",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "send_recv": "send/receive",
    "comm_other": "communication",
    "moe_gemm": "GEMM",
    "moe_fused": "fused launch",
}
_LISTED = 6


def noun(row: LayerRow, repeat: int) -> str:
    """Return what so many repetitions are called: "42 target MoE layers"."""
    if row.role == "other" and repeat == 1 and row.repeat == 1:
        return f"{row.phase}, {plural(len(row.sequence), 'launch', 'launches')} that {'stands' if len(row.sequence) == 1 else 'stand'} there once"
    name = _NOUNS[row.role]
    return f"{repeat} {row.phase} {name if repeat == 1 else name + ('es' if name.endswith('s') else 's')}"


def sentence(
    base: LayerRow, candidate: LayerRow, edits: Sequence[LayerEdit], repeat: int, base_total: int, candidate_total: int
) -> str:
    """Say what the edits do to `repeat` repetitions of a body."""
    more = max(base_total, candidate_total)
    who = noun(base, repeat)
    if repeat < more:
        who = f"{repeat} of {noun(base, more)}"
    said = _exchanged(base, candidate, edits)
    return f"{who}: {'; '.join(said)}{_busy(base, candidate)}"


def repeat_sentence(row: LayerRow, repeat: int, other: int, *, gone: bool) -> str:
    """Say that a body stands there more or less often, or only on one side."""
    before, after = (repeat + other, other) if gone else (other, repeat + other)
    what = f"{composition(row.kernels)}"
    if row.repeat == 1 and other == 0 and row.role == "other":
        return f"{noun(row, 1)} {'removed' if gone else 'added'}: {what}"
    name = noun(row, 2).split(" ", 1)[1]
    return f"{name}: {before} -> {after} per iteration (each {what})"


def variant_sentence(row: LayerRow, variant: LayerVariant, *, now: bool) -> str:
    """Say which repetitions are not like the rest."""
    difference = variant_words(variant)
    numbers = listed((number + 1 for number in variant.at), _LISTED)
    verb = "is" if variant.repeat == 1 else "are"
    side = "" if now else "in the base only: "
    return f"{side}{variant.repeat} of {noun(row, row.repeat)} (number {numbers}) {verb} {difference}"


def variant_words(variant: LayerVariant) -> str:
    """Say how a repetition differs from the rest."""
    said = []
    if variant.without:
        said.append(f"without {composition(variant.without)}")
    if variant.with_:
        said.append(f"with {composition(variant.with_)} in addition")
    return " and ".join(said) or "in another order"


def composition(kernels: Sequence[Kernel]) -> str:
    """Say what launches are: communication and expert kernels by name, the rest as helpers.

    >>> composition([Kernel("moe_route", "r"), Kernel("all_gather", "a"), Kernel("moe_gemm", "g"), Kernel("moe_gemm", "g")])
    'AG + 2 GEMM and 1 helper'
    >>> composition([Kernel("quant", "q"), Kernel("quant", "q")])
    '2 quant'
    """
    named = Counter(_SHORT[one.class_] for one in kernels if one.class_ in _SHORT)
    helpers = Counter(one.class_ for one in kernels if one.class_ not in _SHORT)
    first = " + ".join(_counted(name, count) for name, count in named.items())
    if not named:
        return ", ".join(f"{count} {name}" for name, count in helpers.items())
    return f"{first} and {plural(helpers.total(), 'helper')}" if helpers else first


def _counted(name: str, count: int) -> str:
    if count == 1 and name in ("AG", "RS"):
        return name
    return f"{count} {name}{'es' if count > 1 and name == 'fused launch' else ''}"


def _exchanged(base: LayerRow, candidate: LayerRow, edits: Sequence[LayerEdit]) -> list[str]:
    first, second = base.kernels, candidate.kernels
    removed = [first[i] for one in edits if one.edit == "removed" for i in one.base]
    added = [second[j] for one in edits if one.edit == "added" for j in one.candidate]
    said = []
    if removed and added:
        said.append(f"{composition(removed)} replaced by {composition(added)}")
    elif removed:
        said.append(f"{composition(removed)} removed")
    elif added:
        said.append(f"{composition(added)} added")
    swaps = Counter(
        (first[i].class_, first[i].family, second[j].family)
        for one in edits
        if one.edit == "replaced"
        for i, j in zip(one.base, one.candidate, strict=True)
    )
    said += [f"{count} {class_}: {safe(old)} -> {safe(new)}" for (class_, old, new), count in swaps.items()]
    for edit, words in (("reordered", "in another order"), ("moved", "on another stream")):
        found = [first[i] for one in edits if one.edit == edit for i in one.base]
        if found:
            said.append(f"{composition(found)} {words}")
    return said


def _busy(base: LayerRow, candidate: LayerRow) -> str:
    before, after = base.kernel_busy_ns, candidate.kernel_busy_ns
    if before is None or after is None:
        return ""
    sign = "+" if after >= before else "-"
    each = "each" if base.repeat > 1 else "in all"
    return (
        f"; kernel busy {duration(before)} -> {duration(after)} {each} ({sign}{duration(abs(after - before))}; "
        f"kernels may wait and overlap: not a saving of time)"
    )
