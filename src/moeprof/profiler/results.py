"""The result of a timed pass, whichever client made it: vLLM's own keys, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moeprof.profiler.load import Load

_MEASURES = ("ttft", "tpot", "itl", "e2el")
_PERCENTILES = (50, 90, 99)
_NEEDED = (
    "duration",
    "completed",
    "failed",
    "total_input_tokens",
    "total_output_tokens",
    "request_throughput",
    "output_throughput",
    "total_token_throughput",
    "mean_ttft_ms",
    "median_ttft_ms",
    "mean_e2el_ms",
)


@dataclass(frozen=True, slots=True)
class PassResult:
    """One client run.

    Attributes:
        raw: vLLM's result keys; numbers, None for no data, and ``request_rate`` "inf" for a closed loop. No date, no lists per request.
        file: The client's own output, relative to the run folder.
        client: ``builtin``, ``vllm`` or ``vllm-rs``.
        failed: Requests that failed.
        problems: Why the figures cannot be relied on, one sentence each; empty when they can.
        date: When the client says it ran, as ISO 8601; None when it does not.
    """

    raw: Mapping[str, Any]
    file: str
    client: str
    failed: int
    problems: tuple[str, ...] = ()
    date: str | None = None


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return a percentile, linear between the two nearest values (numpy's default); None without values.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50), percentile([1.0, 2.0, 3.0, 4.0], 90)
    (2.5, 3.7)
    """
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = min(int(place), len(ordered) - 2) if len(ordered) > 1 else 0
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    share = place - below
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share)


def statistics(name: str, seconds: Sequence[float]) -> dict[str, float | None]:
    """Return mean, median, std (of the population) and percentiles of one measure, in ms under vLLM's keys.

    Args:
        name: ``ttft``, ``tpot``, ``itl`` or ``e2el``.
        seconds: The values; where there are none, everything is None.
    """
    values = [value * 1000 for value in seconds]
    mean = math.fsum(values) / len(values) if values else None
    std = None if mean is None else math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    found = {f"mean_{name}_ms": mean, f"median_{name}_ms": percentile(values, 50), f"std_{name}_ms": std}
    return found | {f"p{percent}_{name}_ms": percentile(values, percent) for percent in _PERCENTILES}


def problems(raw: Mapping[str, Any], load: Load, *, exact_input: bool = True) -> tuple[str, ...]:
    """Return what is wrong with a pass.

    With ``ignore_eos`` the output tokens must be exactly prompts x output_len. Input tokens must be prompts x input_len; a client that
    sends text (``vllm bench serve``: random ids are decoded and encoded again) may be off by 1 % of a prompt, and by two tokens at least.

    Args:
        raw: vLLM's result keys.
        load: What was asked of the client.
        exact_input: Whether the client sent token ids.
    """
    found = [f"{key} is missing" for key in _NEEDED if raw.get(key) is None]
    if load.output_len > 1 and raw.get("mean_tpot_ms") is None:
        found.append("mean_tpot_ms is missing")
    found += [f"{key} is {value}" for key, value in _numbers(raw) if not math.isfinite(value)]
    failed, duration = raw.get("failed"), raw.get("duration")
    if failed:
        found.append(f"{failed} of {load.prompts} requests failed")
    if isinstance(duration, (int, float)) and duration <= 0:
        found.append(f"duration is {duration} s")
    completed = raw.get("completed")
    if completed is not None and completed + (failed or 0) != load.prompts:
        found.append(f"{completed} requests completed and {failed or 0} failed, of {load.prompts}")
    wanted = load.prompts * load.output_len
    output = raw.get("total_output_tokens")
    if load.ignore_eos and output is not None and output != wanted:
        found.append(f"{output} output tokens instead of {wanted} ({load.prompts} x {load.output_len})")
    wanted = load.prompts * load.input_len
    slack = 0 if exact_input else load.prompts * max(2, load.input_len // 100)
    given = raw.get("total_input_tokens")
    if given is not None and abs(given - wanted) > slack:
        bound = f", give or take {slack}" if slack else ""
        found.append(f"{given} input tokens instead of {wanted} ({load.prompts} x {load.input_len}{bound})")
    return tuple(found)


def measures() -> tuple[str, ...]:
    """Return the names of what is measured per request."""
    return _MEASURES


def _numbers(raw: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    for key, value in sorted(raw.items()):
        if isinstance(value, list):
            yield from ((key, item) for item in value if isinstance(item, float))
        elif isinstance(value, float) and key != "request_rate":  # a closed loop's rate is infinite
            yield key, value
