"""Tell which rank a file, or a process inside a merged file, belongs to."""

from __future__ import annotations

import re

_PART = r"(?:dp|pp|tp|pcp|dcp|ep)\d+"
# dp0_pp0_tp0_dcp0_ep0_rank0, or an older form with fewer parts; one part alone only as the whole stem.
_VLLM = re.compile(rf"(?<![A-Za-z0-9])((?:{_PART}_)+(?:{_PART}|rank\d+))(?![A-Za-z0-9])")
_VLLM_ALONE = re.compile(rf"({_PART})(?=\.|$)")
_SGLANG = re.compile(r"(?<![A-Za-z0-9])((?:TP|DP|PP|EP)-\d+(?:-(?:TP|DP|PP|EP)-\d+)*)(?![A-Za-z0-9])")
_RANK = re.compile(r"(?<![A-Za-z0-9])rank[-_]?(\d+)(?![A-Za-z0-9])", re.IGNORECASE)
_MERGED = re.compile(r"\[((?:TP|DP|PP|EP|CP|DCP|PCP)\d+(?:-(?:TP|DP|PP|EP|CP|DCP|PCP)\d+)*)\]")


def key_of_name(name: str) -> str | None:
    """Return the rank key that a file's name gives, or None.

    Example:
        >>> key_of_name("dp1_pp0_tp0_dcp0_ep1_rank0.1796074479206590682.pt.trace.json.gz")
        'dp1_pp0_tp0_dcp0_ep1_rank0'
        >>> key_of_name("1782843274.77-TP-0-DP-1-DECODE.trace.json.gz")
        'tp0_dp1'
        >>> key_of_name("worker0.json") is None
        True
    """
    if found := _VLLM.search(name) or _VLLM_ALONE.match(name):
        return found[1]
    if found := _SGLANG.search(name):
        return "_".join(f"{part.lower()}{int(number)}" for part, number in re.findall(r"([A-Z]+)-(\d+)", found[1]))
    found = _RANK.search(name)
    return f"rank{int(found[1])}" if found else None


def key_of(name: str, distributed_rank: int | None) -> str | None:
    """Return the key of a file: its name decides, since vLLM's metadata may say rank 0 for each engine."""
    key = key_of_name(name)
    if key is None and distributed_rank is not None:
        return f"rank{distributed_rank}"
    return key


def key_of_process(process: str) -> str | None:
    """Return the rank that the process of a merged file names: ``[TP00-EP01] 1234`` gives ``tp0_ep1``."""
    found = _MERGED.match(process)
    if not found:
        return None
    return "_".join(f"{part.lower()}{int(number)}" for part, number in re.findall(r"([A-Z]+)(\d{1,9})", found[1]))


def natural(key: str | None) -> tuple[tuple[int, int, str], ...]:
    """Return the sort key that puts 2 before 10, and an unknown rank first."""
    parts = re.split(r"(\d+)", key or "")
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)
