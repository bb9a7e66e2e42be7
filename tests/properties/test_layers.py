"""Folding and comparing structures whose truth is known, because they were made from it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moeprof.analyzers.layers.changes import layer_changes
from moeprof.analyzers.layers.fold import expand, fold
from moeprof.analyzers.layers.results import LayerRow

CLASSES = ("moe_gemm", "dense_gemm", "norm", "quant", "all_gather", "elementwise")
tokens = st.lists(st.integers(0, 12), max_size=120)
names = st.tuples(st.sampled_from(CLASSES), st.sampled_from("abcd"))
bodies = st.lists(names, min_size=1, max_size=30)


def row(body: list[tuple[str, str]], repeat: int) -> LayerRow:
    return LayerRow(
        phase="target", repeat=repeat, sequence=tuple(class_ for class_, _ in body), role="other", alike=repeat,
        families=tuple(family for _, family in body), names=tuple(family for _, family in body), nested=(), variants=(),
        streams=None, ordered=True, launches=repeat * len(body), kernel_sum_ns=len(body), kernel_busy_ns=len(body),
        duration_ns=(1,) * len(body), share=None, iterations=1, iterations_counted=1,
    )  # fmt: skip


@given(tokens)
def test_expanding_gives_the_sequence_back(sequence: list[int]) -> None:
    elements = fold(sequence)
    assert expand(elements) == sequence
    assert [element.start for element in elements[1:]] == [element.stop for element in elements[:-1]]


@given(tokens)
def test_without_order_each_part_keeps_its_launches(sequence: list[int]) -> None:
    for element in fold(sequence, ordered=False):
        for one in element.instances:
            told = element.body if one.tokens is None else one.tokens
            assert sorted(told) == sorted(sequence[one.start : one.stop])


@given(
    layers=st.integers(3, 60),
    length=st.integers(4, 40),
    before=st.integers(0, 20),
    after=st.integers(0, 20),
    twice=st.booleans(),
)
def test_layers_made_of_distinct_kernels_are_found(
    layers: int, length: int, before: int, after: int, twice: bool
) -> None:
    # GIVEN a body of distinct kernels, or with one of them twice
    body = list(range(100, 100 + length))
    if twice:
        body.insert(length // 2, 100 + length // 4)
    sequence = [*range(before), *body * layers, *range(50, 50 + after)]
    # WHEN folded THEN the layers are one element of the right place and number
    elements = fold(sequence)
    found = next(element for element in elements if element.repeat > 1)
    assert (found.repeat, found.start, len(found.body)) == (layers, before, len(body))


@given(layers=st.integers(5, 60), length=st.integers(8, 40), data=st.data())
def test_one_missing_kernel_does_not_break_the_layers(layers: int, length: int, data: st.DataObject) -> None:
    # GIVEN layers of which one in the middle lacks a launch
    which, gap = data.draw(st.integers(1, layers - 2)), data.draw(st.integers(0, length - 1))
    parts = [list(range(100, 100 + length)) for _ in range(layers)]
    del parts[which][gap]
    sequence = [0, 1, 2, *(token for part in parts for token in part), 3, 4]
    # WHEN folded THEN all are there, and that one is told
    found = [element for element in fold(sequence) if element.repeat > 1]
    assert [(element.repeat, len(element.body)) for element in found] == [(layers, length)]
    assert [number for number, one in enumerate(found[0].instances) if one.tokens is not None] == [which]


@given(bodies, st.integers(1, 5))
def test_nothing_changed_against_itself(body: list[tuple[str, str]], repeat: int) -> None:
    rows = [row(body, repeat)]
    assert [(one.change, one.sentence) for one in layer_changes(rows, rows)] == [("same", None)]


@settings(max_examples=200)
@given(
    st.lists(st.tuples(bodies, st.integers(1, 5)), max_size=4),
    st.lists(st.tuples(bodies, st.integers(1, 5)), max_size=4),
)
def test_swapping_the_sides_swaps_the_answer(
    first: list[tuple[list[tuple[str, str]], int]], second: list[tuple[list[tuple[str, str]], int]]
) -> None:
    base, candidate = [row(*one) for one in first], [row(*one) for one in second]
    swap = {"added": "removed", "removed": "added"}
    there = layer_changes(base, candidate)
    back = layer_changes(candidate, base)
    mirrored = [
        (one.phase, one.repeat, one.candidate, one.base, swap.get(one.change, one.change), len(one.edits))
        for one in back
    ]
    straight = [(one.phase, one.repeat, one.base, one.candidate, one.change, len(one.edits)) for one in there]
    assert sorted(mirrored) == sorted(straight)


@given(
    st.lists(st.tuples(bodies, st.integers(1, 5)), max_size=4),
    st.lists(st.tuples(bodies, st.integers(1, 5)), max_size=4),
)
def test_every_launch_of_both_sides_is_accounted_for(
    first: list[tuple[list[tuple[str, str]], int]], second: list[tuple[list[tuple[str, str]], int]]
) -> None:
    base, candidate = [row(*one) for one in first], [row(*one) for one in second]
    changes = layer_changes(base, candidate)
    assert sum(one.repeat * len(one.base) for one in changes) == sum(one.launches for one in base)
    assert sum(one.repeat * len(one.candidate) for one in changes) == sum(one.launches for one in candidate)
    for one in changes:
        assert all(set(edit.base) <= set(range(len(one.base))) for edit in one.edits)
