"""Make names from traces fit to be shown: harmless, short, and still told apart."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence

NO_RANK = "(no rank)"
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_HEAD_SHARE = 0.6
_WRAPPERS = ("cutlass::device_kernel<", "cutlass::Kernel2<", "flash::enable_sm90_or_later<")


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


def _without_parameters(text: str) -> str:
    if not text.endswith(")"):
        return text
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[position], 0)
        if depth == 0:
            return text[:position] or text
    return text


def shorten(name: str, width: int, *, ellipsis: str = "…") -> str:
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


def short_ranks(keys: Sequence[str | None]) -> list[str]:
    """Return rank keys by the first parts that tell them apart; the whole key for a single rank.

    >>> short_ranks(["dp0_pp0_ep0_rank0", "dp1_pp0_ep1_rank0"])
    ['dp0', 'dp1']
    """
    whole = [NO_RANK if key is None else safe(key) for key in keys]
    parts = [name.split("_") for name in whole]
    if len(keys) < 2 or len({len(part) for part in parts}) != 1:
        return whole
    labels = [""] * len(keys)
    for column in zip(*parts, strict=True):
        longer = [f"{label}_{part}" if label else part for label, part in zip(labels, column, strict=True)]
        if len(set(longer)) > len(set(labels)):
            labels = longer
    return labels if len(set(labels)) == len(keys) else whole
