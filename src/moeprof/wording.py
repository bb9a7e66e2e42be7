"""Words for people: numbers with units, lists cut short, names of kernels made short and harmless. No data is never 0."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal

NAME_WIDTH = 60  # of a kernel's name in a sentence; demangled names reach thousands of characters

_APART_WIDTH = 48  # of names that share their function
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_HEAD_SHARE = 0.6
_WRAPPERS = ("cutlass::device_kernel<", "cutlass::Kernel2<", "flash::enable_sm90_or_later<")
_ANONYMOUS = "(anonymous namespace)::"
_CLOSING = {"<": ">", "(": ")", "{": "}"}


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun.

    >>> plural(1, "kernel"), plural(2, "kernel"), plural(2, "launch", "launches")
    ('1 kernel', '2 kernels', '2 launches')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def duration(ns: int | None) -> str:
    """Return ns with the unit that suits its size.

    >>> duration(12130000), duration(950), duration(2_500_000_000), duration(None)
    ('12.13 ms', '950 ns', '2.50 s', 'no data')
    """
    if ns is None:
        return "no data"
    for unit, power in (("s", 9), ("ms", 6), ("us", 3)):
        value = Decimal(ns).scaleb(-power).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
        if abs(value) >= 1:
            return f"{value} {unit}"
    return f"{ns} ns"


def rounded(value: float | None) -> str:
    """Return a figure with two decimals; one that lies exactly between two shows its third.

    >>> rounded(7040.49), rounded(13.875), rounded(6468.322038), rounded(None)
    ('7040.49', '13.875', '6468.32', '-')
    """
    if value is None:
        return "-"
    exact = Decimal(repr(value))
    is_tie = exact.normalize().as_tuple().exponent == -3 and abs(exact * 1000) % 10 == 5
    return str(exact.quantize(Decimal("0.001" if is_tie else "0.01"), ROUND_HALF_EVEN))


def signed(fraction: float | None) -> str:
    """Return a fraction as a signed change in percent.

    >>> signed(0.0671672), signed(-0.2), signed(None)
    ('+6.72 %', '-20.00 %', '-')
    """
    return "-" if fraction is None else f"{fraction * 100:+.2f} %"


def percent(fraction: float | None) -> str:
    """Return a fraction in percent; one that is small but not nothing says so.

    >>> percent(0.1234), percent(0.00001), percent(0.0), percent(None)
    ('12.34 %', '<0.01 %', '0.00 %', 'no data')
    """
    if fraction is None:
        return "no data"
    text = f"{fraction * 100:.2f} %"
    return "<0.01 %" if fraction > 0 and text == "0.00 %" else text


def listed(items: Iterable[object], most: int = 5) -> str:
    """Return items as a list, cut short where there are many.

    >>> listed(["a", "b"]), listed(range(4), 2)
    ('a, b', '0, 1 and 2 more')
    """
    texts = [str(item) for item in items]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def safe(text: str) -> str:
    r"""Return text with every character that could steer a terminal or hide written out as an escape.

    >>> safe("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in _HIDDEN else char
        for char in text
    )


def core(name: str) -> str:
    """Return a C++ signature without return type, parameter list and wrappers that say nothing; other names as they are.

    >>> core("void act<int>(int*, float)"), core("triton_poi_fused_4"), core("void cutlass::Kernel2<gemm>(gemm::Params)")
    ('act<int>', 'triton_poi_fused_4', 'gemm')
    """
    text = _without_parameters(name.removeprefix("void "))
    for wrapper in _WRAPPERS:
        if text.startswith(wrapper) and text.endswith(">"):
            text = text.removeprefix(wrapper).removesuffix(">").rstrip()
    return text


def shorten(name: str, width: int = NAME_WIDTH, *, ellipsis: str = "…") -> str:
    """Cut a name in the middle so that it fits a width.

    >>> shorten("abcdefghij", 6, ellipsis="~")
    'abc~ij'
    """
    if len(name) <= width:
        return name
    room = max(width - len(ellipsis), 1)
    tail = int(room * (1 - _HEAD_SHARE))
    head = room - tail
    return name[:head] + ellipsis + (name[-tail:] if tail else "")


def shorten_all(names: Iterable[str], width: int, *, ellipsis: str = "…") -> dict[str, str]:
    """Return each name with its short form. Different names that would look the same show where they differ.

    >>> shorten_all(["gemm<bf16, 1024, false>(int)", "gemm<bf16, 512, false>(int)"], 16, ellipsis="~")
    {'gemm<bf16, 1024, false>(int)': 'gemm<bf~, 1024,~', 'gemm<bf16, 512, false>(int)': 'gemm<bf~, 512, ~'}
    """
    distinct = list(dict.fromkeys(names))
    cores = {name: core(safe(name)) for name in distinct}
    for group in _alike(cores):
        cores.update((name, safe(name)) for name in group)
    short = {name: shorten(cores[name], width, ellipsis=ellipsis) for name in distinct}
    for group in _alike(short):
        start = _first_difference([cores[name] for name in group])
        short.update((name, _around(cores[name], start, width, ellipsis)) for name in group)
    return short


def functions(names: Iterable[str], width: int = NAME_WIDTH) -> dict[str, str]:
    """Return each name with the function that it names; where several name the same one, with what tells them apart.

    >>> functions(["void gemm<bf16, 1024>(int*)", "void gemm<bf16, 512>(int*)", "void a::sum<float>(int)"])
    {'void gemm<bf16, 1024>(int*)': 'gemm<bf16, 1024>', 'void gemm<bf16, 512>(int*)': 'gemm<bf16, 512>', 'void a::sum<float>(int)': 'a::sum'}
    """
    short = {name: function(name, width) for name in names}
    for group in _alike(short):
        short.update(shorten_all(group, min(width, _APART_WIDTH)))
    return short


def function(name: str, width: int = NAME_WIDTH) -> str:
    """Return the function that a demangled kernel name names, without template arguments.

    >>> function("void vllm::moe::moe_sum<float, 4>(float*, int)")
    'vllm::moe::moe_sum'
    >>> function("Memcpy HtoD (Pinned -> Device)")
    'Memcpy HtoD (Pinned -> Device)'
    """
    if name.startswith(("Memcpy ", "Memset ")):
        return shorten(safe(name), width)
    plain = safe(name).replace(_ANONYMOUS, "").replace("->", "").removeprefix("void ").strip()
    bare, was_call = _without_brackets(plain)
    # What stands before a blank is a return type; a name without brackets may be words of its own.
    short = bare.split()[-1] if was_call and bare.split() else bare
    return shorten(short or safe(name), width)


def _without_parameters(text: str) -> str:
    if not text.endswith(")"):
        return text
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[position], 0)
        if depth == 0:
            return text[:position] or text
    return text


def _without_brackets(name: str) -> tuple[str, bool]:
    kept: list[str] = []
    open_brackets: list[str] = []
    seen = False
    for character in name:
        if open_brackets:
            if character == open_brackets[-1]:
                open_brackets.pop()
            elif character in _CLOSING:
                open_brackets.append(_CLOSING[character])
        elif character == "(":  # the parameters, with which the name ends
            return "".join(kept).strip(), True
        elif character in _CLOSING:
            open_brackets.append(_CLOSING[character])
            seen = True
        else:
            kept.append(character)
    return "".join(kept).strip(), seen


def _alike(shown: dict[str, str]) -> list[list[str]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in shown.items():
        groups[text].append(name)
    return [group for group in groups.values() if len(group) > 1]


def _first_difference(texts: Sequence[str]) -> int:
    low, high = min(texts), max(texts)
    same = 0
    while same < min(len(low), len(high)) and low[same] == high[same]:
        same += 1
    return same


def _around(text: str, position: int, width: int, ellipsis: str) -> str:
    head = max((width - 2 * len(ellipsis)) // 2, 1)
    rest = width - head - 2 * len(ellipsis)
    start = max(head, position - rest // 3)
    end = start + rest
    if start <= head:
        return text[: width - len(ellipsis)] + ellipsis
    if end + len(ellipsis) >= len(text):
        return text[:head] + ellipsis + text[start : start + rest + len(ellipsis)]
    return text[:head] + ellipsis + text[start:end] + ellipsis
