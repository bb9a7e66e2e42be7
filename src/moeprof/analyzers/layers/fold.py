"""Fold a sequence of kernels: what comes before, bodies that repeat, what comes after. `expand` gives the sequence back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from moeprof.analyzers.layers.borders import borders, first_of_its_own
from moeprof.analyzers.layers.cuts import Bags, cuts, distance, near
from moeprof.analyzers.layers.runs import Node, Run, fold_kinds

_SAMPLED = 64  # repetitions that say in which order a body's kernels stand
_SHORTEST = 6  # a sequence that is looked into
_RARE = 20  # one in so many repetitions is rare
_ENOUGH = 0.6  # share of a body that must be there for a repetition at the border of a sequence
_FEW = 6  # repetitions of which any may lack a part; of more only the last: the first may be a layer of another kind
_MEMBERS = 8  # of a group of kinds that are nearly the same, which a further one is compared with
_FOREIGN = 20  # one launch in so many may be foreign to a body of which much is missing
_SPARED = 10  # a structure spares at least so small a part of a sequence
_DEEPEST = 2  # parts of parts of parts that are looked into
_LEAST = 3  # launches of a body
_ASIDE = 12  # launches that a structure beside the main one spares at least
_EACH = 4  # what naming one more element costs, in launches


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a body that itself repeats: where it begins, its length, how often it stands there."""

    start: int
    length: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Instance:
    """One repetition: where it lies in the sequence, and its kernels where they are not the body's."""

    start: int
    stop: int
    tokens: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """A body and its repetitions, in order."""

    body: tuple[int, ...]
    instances: tuple[Instance, ...]
    nested: tuple[Span, ...] = ()

    @property
    def repeat(self) -> int:
        """Return how often the body stands there."""
        return len(self.instances)

    @property
    def start(self) -> int:
        """Return where the first repetition begins."""
        return self.instances[0].start

    @property
    def stop(self) -> int:
        """Return where the last repetition ends."""
        return self.instances[-1].stop

    def moved(self, by: int) -> Element:
        """Return the element further on in a sequence."""
        moved = tuple(Instance(one.start + by, one.stop + by, one.tokens) for one in self.instances)
        return replace(self, instances=moved)


def expand(elements: Sequence[Element]) -> list[int]:
    """Return the sequence that elements stand for.

    >>> expand(fold([9, 1, 2, 3, 1, 2, 3, 1, 2, 3]))
    [9, 1, 2, 3, 1, 2, 3, 1, 2, 3]
    """
    tokens: list[int] = []
    for element in elements:
        for instance in element.instances:
            tokens += element.body if instance.tokens is None else instance.tokens
    return tokens


def fold(tokens: Sequence[int], *, ordered: bool = True) -> tuple[Element, ...]:
    """Fold a sequence.

    Args:
        tokens: A number for each launch; equal numbers are the same kernel.
        ordered: The order is that of the launches. Otherwise kernels of several streams may have overtaken each other, and
            repetitions of the same kernels are the same body: its order is that of the mean positions.

    >>> [(element.repeat, element.body) for element in fold([9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8])]
    [(1, (9,)), (3, (1, 2, 3)), (1, (8,))]
    """
    return tuple(_fold(tuple(tokens), 0, ordered=ordered))


def _fold(tokens: tuple[int, ...], offset: int, *, ordered: bool, depth: int = 0) -> list[Element]:
    """Return the elements of a part of a sequence that begins at `offset`; one where folding spares too little."""
    if not tokens:
        return []
    best = [Element(tokens, (Instance(0, len(tokens)),))]
    gain = _ASIDE if depth else 1
    if len(tokens) < _SHORTEST or depth > _DEEPEST:
        return [best[0].moved(offset)]
    least = len(tokens) - max(gain, len(tokens) // _SPARED)
    bags = Bags(tokens)
    for cut in cuts(tokens, bags):
        limits = borders(tokens, cut, bags)
        elements = _inside(_elements(_bodies(tokens, limits, bags, ordered=ordered), limits), tokens)
        around = len(tokens) - elements[-1].stop + elements[0].start if elements else 0
        told = _told(elements) + around
        if elements and told < least:
            best, least = elements, told
    if best[0].repeat == len(best) == 1:
        return [best[0].moved(offset)]
    start, stop = best[0].start, best[-1].stop
    before = _before(tokens[:start], best[0].body, offset, ordered=ordered, depth=depth)
    inside = [replace(one, nested=one.nested or _inner(one)).moved(offset) for one in best]
    after = _fold(tokens[stop:], offset + stop, ordered=ordered, depth=depth + 1)
    return [*before, *inside, *after]


def _inside(elements: Sequence[Element], tokens: tuple[int, ...]) -> list[Element]:
    """Return the elements from the first to the last that repeat; what stands between them once is put together."""
    repeated = [index for index, element in enumerate(elements) if _is_structure(element)]
    if not repeated:
        return []
    inside: list[Element] = []
    for element in elements[repeated[0] : repeated[-1] + 1]:
        if _is_structure(element):
            inside.append(element)
            continue
        start = inside.pop().start if inside and inside[-1].repeat == 1 else element.start
        inside.append(Element(tokens[start : element.stop], (Instance(start, element.stop),)))
    return inside


def _is_structure(element: Element) -> bool:
    """Tell whether a repetition is more than a kernel or two that stand there a few times."""
    return element.repeat > 1 and len(element.body) >= _LEAST and element.repeat * len(element.body) >= _SHORTEST


def _before(tokens: tuple[int, ...], body: Sequence[int], offset: int, *, ordered: bool, depth: int) -> list[Element]:
    """Fold what precedes the repetitions; where its end begins like the body, that is a layer of its own, such as a dense one."""
    split = first_of_its_own(tokens, body)
    own = [Element(tokens[split:], (Instance(offset + split, offset + len(tokens)),))] if split < len(tokens) else []
    return [*_fold(tokens[:split], offset, ordered=ordered, depth=depth + 1), *own]


def _told(elements: Sequence[Element]) -> int:
    """Return how much must be told of elements: their bodies, and what is different in a repetition."""
    told = 0
    for element in elements:
        told += len(element.body) + _EACH
        told += sum(distance(element.body, own) + 1 for own in {one.tokens for one in element.instances} if own)
    return told


def _bodies(tokens: tuple[int, ...], limits: Sequence[int], bags: Bags, *, ordered: bool) -> list[tuple[int, ...]]:
    """Return the body of each part; parts of the same kernels have the same where their order is not known."""
    if ordered:
        return [tokens[start:stop] for start, stop in pairwise(limits)]
    parts: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    keys = [bags.key(start, stop) for start, stop in pairwise(limits)]
    for key, (start, stop) in zip(keys, pairwise(limits), strict=True):
        parts[key].append(tokens[start:stop])
    settled = {key: _settled(found) for key, found in parts.items()}
    return [settled[key] for key in keys]


def _settled(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common order of parts that hold the same kernels: by mean position of each one's n-th occurrence."""
    if len(set(parts)) == 1:
        return parts[0]
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for part in parts[:: -(-len(parts) // _SAMPLED)]:
        seen: Counter[int] = Counter()
        for place, token in enumerate(part):
            places[token, seen[token]].append(place)
            seen[token] += 1
    return tuple(token for token, _ in sorted(places, key=lambda item: (sum(places[item]), item)))


def _elements(bodies: Sequence[tuple[int, ...]], limits: Sequence[int]) -> list[Element]:
    kinds = list(dict.fromkeys(bodies))
    number = {body: index for index, body in enumerate(kinds)}
    listed = [number[body] for body in bodies]
    runs = _simplest(listed, kinds)
    elements: list[Element] = []
    at = 0
    for run in runs:
        group = _kinds_of(run.members)
        body = tuple(token for kind in group for token in kinds[kind])
        nested = _spans(run.members, kinds) if len(group) > 1 else ()
        instances = []
        for _ in range(run.repeat):
            own = tuple(token for part in bodies[at : at + len(group)] for token in part)
            instances.append(Instance(limits[at], limits[at + len(group)], None if own == body else own))
            at += len(group)
        elements.append(Element(body, tuple(instances), nested))
    return elements


def _simplest(listed: Sequence[int], kinds: Sequence[tuple[int, ...]]) -> list[Run]:
    """Fold the kinds as they are, or rare or all kinds that are nearly a commoner one as that one: the shortest wins."""
    times = Counter(listed)
    rare = max(1, len(listed) // _RARE)
    tries: list[Callable[[int], bool]] = [lambda _: False, lambda kind: times[kind] <= rare, lambda _: True]
    best: list[Run] | None = None
    for may_join in tries:
        runs = fold_kinds(_joined(listed, kinds, times, may_join))
        if best is None or _size(runs) < _size(best):
            best = runs
    return best or []


def _size(runs: Sequence[Run]) -> tuple[int, int]:
    """Return how many parts are told of runs: themselves, then the kinds in one repetition of each."""
    return len(runs), sum(len(_kinds_of(run.members)) for run in runs)


def _joined(
    listed: Sequence[int], kinds: Sequence[tuple[int, ...]], times: Counter[int], may_join: Callable[[int], bool]
) -> list[int]:
    groups: dict[int, list[int]] = {}
    stands_for: dict[int, int] = {}
    for kind in sorted(times, key=lambda kind: (-times[kind], kind)):
        few = kind == listed[-1] or len(listed) <= _FEW
        chosen = _closest(kind, groups, kinds, lacking=few) if may_join(kind) else None
        if chosen is None:
            chosen = kind
            groups[kind] = []
        groups[chosen].append(kind)
        stands_for[kind] = chosen
    return [stands_for[kind] for kind in listed]


def _closest(kind: int, groups: dict[int, list[int]], kinds: Sequence[tuple[int, ...]], *, lacking: bool) -> int | None:
    """Return the group with a member that a kind nearly is, or is without some of it; None where there is none."""
    part = kinds[kind]
    for same in (near, _lacking) if lacking else (near,):
        close = [key for key, group in groups.items() if any(same(part, kinds[one]) for one in group[:_MEMBERS])]
        if close:
            return min(close, key=lambda key: (distance(part, kinds[key]), key))
    return None


def _lacking(part: Sequence[int], body: Sequence[int]) -> bool:
    """Tell whether of two parts one is the other without some of it, such as what joins a repetition to the next."""
    shorter, longer = sorted((part, body), key=len)
    if _ENOUGH * len(longer) > len(shorter):
        return False
    return (Counter(shorter) - Counter(longer)).total() <= len(shorter) // _FOREIGN


def _kinds_of(members: Sequence[Node]) -> list[int]:
    kinds: list[int] = []
    for member in members:
        kinds += _kinds_of(member.members) * member.repeat if isinstance(member, Run) else [member]
    return kinds


def _spans(members: Sequence[Node], kinds: Sequence[tuple[int, ...]]) -> tuple[Span, ...]:
    """Return the parts of a body that is put together from several."""
    spans: list[Span] = []
    start = 0
    for member in members:
        repeat = member.repeat if isinstance(member, Run) else 1
        inner = _kinds_of(member.members) if isinstance(member, Run) else [member]
        length = sum(len(kinds[kind]) for kind in inner)
        spans.append(Span(start, length, repeat))
        start += length * repeat
    return tuple(spans)


def _inner(element: Element) -> tuple[Span, ...]:
    """Return what repeats exactly inside a body; nothing where it does not."""
    body = element.body
    if element.repeat < 2 or len(body) < 2 * _SHORTEST:
        return ()
    parts = _fold(body, 0, ordered=True, depth=1)
    if all(part.repeat < 2 or any(one.tokens is not None for one in part.instances) for part in parts):
        return ()
    spans: list[Span] = []
    for part in parts:
        exact = all(one.tokens is None for one in part.instances)
        if exact:
            spans.append(Span(part.instances[0].start, len(part.body), part.repeat))
        else:
            spans += [Span(one.start, one.stop - one.start, 1) for one in part.instances]
    return tuple(spans)
