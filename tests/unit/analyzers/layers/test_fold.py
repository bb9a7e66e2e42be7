"""Folding: prologue, bodies, epilogue; imperfect repetitions; where a body begins."""

from __future__ import annotations

from moeprof.analyzers.layers.fold import Element, expand, fold

BODY = tuple(range(10, 22))


def shape(elements: tuple[Element, ...]) -> list[tuple[int, int]]:
    return [(element.repeat, len(element.body)) for element in elements]


def test_prologue_body_and_epilogue() -> None:
    # GIVEN 5 launches, 42 layers of 12 and 3 launches WHEN folded
    tokens = [0, 1, 2, 3, 4, *BODY * 42, 5, 6, 7]
    elements = fold(tokens)
    # THEN the layers are one element, cut where they begin
    assert shape(elements) == [(1, 5), (42, 12), (1, 3)]
    assert elements[1].body == BODY
    assert expand(elements) == tokens


def test_a_dense_layer_before_the_others_is_a_part_of_its_own() -> None:
    # GIVEN a layer that begins like the 42 others and then differs
    dense = (*BODY[:6], 90, 91, 92)
    # WHEN folded THEN it stands beside them
    assert shape(fold([0, 1, 2, *dense, *BODY * 42, 3])) == [(1, 3), (1, 9), (42, 12), (1, 1)]


def test_three_dense_layers_repeat_too() -> None:
    dense = (*BODY[:6], 90, 91, 92)
    assert shape(fold([0, 1, 2, *dense * 3, *BODY * 42, 3])) == [(1, 3), (3, 9), (42, 12), (1, 1)]


def test_a_missing_launch_is_told() -> None:
    # GIVEN one layer of 42 without its fifth launch WHEN folded
    short = (*BODY[:4], *BODY[5:])
    tokens = [0, 1, *BODY * 17, *short, *BODY * 24, 2, 3]
    elements = fold(tokens)
    # THEN there are 42, of which one is not like the rest
    assert shape(elements) == [(1, 2), (42, 12), (1, 2)]
    odd = [(number, one.tokens) for number, one in enumerate(elements[1].instances) if one.tokens is not None]
    assert odd == [(17, short)]
    assert expand(elements) == tokens


def test_a_layer_of_another_kind_in_between_stands_alone() -> None:
    # GIVEN a layer that shares only its first half with the others
    other = (*BODY[:6], *range(60, 74))
    # WHEN folded THEN it is a part between them
    assert shape(fold([0, 1, *BODY * 20, *other, *BODY * 21, 2])) == [(1, 2), (20, 12), (1, 20), (21, 12), (1, 1)]


def test_every_fourth_layer_different() -> None:
    # GIVEN three layers of one kind and one of another, ten times WHEN folded
    other = (*BODY[:3], *range(70, 82))
    elements = fold([0, 1, *(BODY * 3 + other) * 10, 2])
    # THEN the group repeats, and says what repeats in it
    assert shape(elements) == [(1, 2), (10, 51), (1, 1)]
    assert [(span.start, span.length, span.repeat) for span in elements[1].nested] == [(0, 12, 3), (36, 15, 1)]


def test_layers_that_differ_in_one_launch_are_one_kind() -> None:
    # GIVEN layers that alternate between two attention kernels, one with a second launch
    two = (*BODY[:3], 99, *BODY[3:])
    elements = fold([0, 1, *(BODY + two) * 12, 2])
    # WHEN folded THEN there are 24 of them
    assert [element.repeat for element in elements] == [1, 24, 1]


def test_streams_that_overtake_each_other_do_not_break_a_body() -> None:
    # GIVEN two launches of another stream, at another place in each layer
    tokens = [0, 1]
    for layer in range(42):
        part = list(BODY)
        part.insert(4 + layer % 4, 50)
        part.insert(6 + layer % 5, 51)
        tokens += part
    # WHEN the order is not known THEN the layers are alike; where it is, they are not
    assert shape(fold([*tokens, 2], ordered=False)) == [(1, 2), (42, 14), (1, 1)]
    assert sum(one.tokens is None for one in fold([*tokens, 2], ordered=False)[1].instances) == 42


def test_a_sequence_without_repetition_is_one_part() -> None:
    assert shape(fold(list(range(200)))) == [(1, 200)]
    assert fold([]) == ()
    assert shape(fold([1, 1, 1])) == [(1, 3)]


def test_equal_beginnings_are_cut_at_the_same_launch() -> None:
    # GIVEN two arms that differ inside the body only
    fused = (*BODY[:5], 80, *BODY[9:])
    first, second = fold([0, 1, *BODY * 42, 2, 3]), fold([0, 1, *fused * 42, 2, 3])
    # WHEN folded THEN both begin a layer with the same kernel
    assert first[1].body[0] == second[1].body[0] == BODY[0]
    assert (first[1].start, second[1].start) == (2, 2)
