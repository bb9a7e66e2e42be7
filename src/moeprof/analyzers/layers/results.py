"""The rows of `layers[]`: what a reader of a report is told of the folded structure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["moe_layer", "dense_layer", "pass", "other"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a launch is: its class and the family of its name."""

    class_: str
    family: str


@dataclass(frozen=True, slots=True)
class NestedRepeat:
    """A part of a sequence that itself repeats: its first launch, its length, how often it stands there."""

    start: int
    length: int
    repeat: int


@dataclass(frozen=True, slots=True)
class LayerVariant:
    """Repetitions that are not quite the sequence: `at` counts from 0; `without` and `with_` are families by class.

    Both are empty where only the order differs. `joint`: the first or last one, which only lacks what joins two of them.
    """

    repeat: int
    at: tuple[int, ...]
    without: tuple[Kernel, ...]
    with_: tuple[Kernel, ...]
    joint: bool


@dataclass(frozen=True, slots=True)
class LayerRow:
    """An element of the folded structure of a phase: a sequence of launches that stands there `repeat` times.

    Attributes:
        phase: target, draft or sample.
        repeat: How often the sequence stands there, `alike` of these exactly so, but for the order of
            different streams and for what joins two repetitions.
        sequence: The class of each launch; of a part that stands there once the first thousand.
        role: What the launches make it: a layer with experts, one without, a pass of the drafts, something else.
        families: The family of each launch's name, beside `sequence`.
        names: A full name for each launch, that of most repetitions.
        nested: Parts of the sequence that repeat in it.
        variants: The repetitions that differ.
        streams: Stream of each launch by its place among the streams of the phase; None where a graph spreads
            its launches over streams of its own, or the trace tells no streams.
        ordered: Whether the order of launches is known; else kernels of different streams may stand in another.
        launches: Launches of all repetitions together, in one iteration.
        kernel_sum_ns: Sum of the launches' durations in one repetition, median.
        kernel_busy_ns: Union of their intervals in one repetition, median.
        duration_ns: Median duration of each launch, beside `sequence`.
        share: Share of the phase's sum of durations that all repetitions together take.
        iterations: Iterations with these launches in the phase, of `iterations_counted`.
    """

    phase: str
    repeat: int
    sequence: tuple[str, ...]
    role: Role
    alike: int
    families: tuple[str, ...]
    names: tuple[str, ...] = field(metadata={"json": False})
    nested: tuple[NestedRepeat, ...]
    variants: tuple[LayerVariant, ...]
    streams: tuple[int, ...] | None
    ordered: bool
    launches: int
    kernel_sum_ns: int | None
    kernel_busy_ns: int | None
    duration_ns: tuple[int, ...]
    share: float | None
    iterations: int
    iterations_counted: int

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Return what each launch is."""
        return tuple(map(Kernel, self.sequence, self.families))


#: What became of a launch of a sequence. "moved": to another stream. "overtaken": it stands in another place, which means nothing
#: where the order of launches is not known; no change.
Edit: TypeAlias = Literal["replaced", "removed", "added", "reordered", "moved", "overtaken"]


@dataclass(frozen=True, slots=True)
class LayerEdit:
    """A difference of two sequences: the launches of either side, by their places in `base` and `candidate`."""

    edit: Edit
    base: tuple[int, ...]
    candidate: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SequenceChange:
    """A sequence of the base and the one that stands for it in the candidate, `repeat` times in an iteration.

    Attributes:
        phase: target, draft or sample.
        repeat: How often the one stands for the other.
        base: The class of each launch; empty where the base has nothing.
        candidate: Likewise.
        change: same, changed, added or removed.
        role: As in the report, of the base where it has one.
        base_repeat: How often the sequence stands in an iteration of the base, whatever it became.
        candidate_repeat: Likewise.
        base_families: The family of each launch's name.
        candidate_families: Likewise.
        base_names: A full name for each launch.
        candidate_names: Likewise.
        edits: What differs.
        base_duration_ns: Median duration of each launch.
        candidate_duration_ns: Likewise.
        base_kernel_busy_ns: Union of the launches' intervals in one repetition, median.
        candidate_kernel_busy_ns: Likewise.
        base_kernel_sum_ns: Sum of durations in one repetition, median.
        candidate_kernel_sum_ns: Likewise.
        sentence: What changed, in a sentence; None where nothing did.
    """

    phase: str
    repeat: int
    base: tuple[str, ...]
    candidate: tuple[str, ...]
    change: Literal["same", "changed", "added", "removed"]
    role: Role
    base_repeat: int
    candidate_repeat: int
    base_families: tuple[str, ...]
    candidate_families: tuple[str, ...]
    base_names: tuple[str, ...] = field(metadata={"json": False})
    candidate_names: tuple[str, ...] = field(metadata={"json": False})
    edits: tuple[LayerEdit, ...]
    base_duration_ns: tuple[int, ...]
    candidate_duration_ns: tuple[int, ...]
    base_kernel_busy_ns: int | None
    candidate_kernel_busy_ns: int | None
    base_kernel_sum_ns: int | None
    candidate_kernel_sum_ns: int | None
    sentence: str | None
