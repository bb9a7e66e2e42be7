"""One small request with log probabilities: does the server compute finite numbers?"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from moeprof.profiler.fetch import fetch
from moeprof.profiler.load import Load

_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Probe:
    """What a probe saw.

    Attributes:
        logprobs: Of the tokens it got; empty where the server gave none.
        seen: What happened, as the end of a sentence.
    """

    logprobs: tuple[float, ...]
    seen: str

    @property
    def finite(self) -> bool | None:
        """Whether all are finite; None without any."""
        return all(math.isfinite(value) for value in self.logprobs) if self.logprobs else None


def probe(address: str, model: str, load: Load, limit_s: float) -> Probe:
    """Ask for a few tokens with log probabilities, at temperature 0.

    Args:
        address: Base address of the server.
        model: Its name in requests.
        load: Its vocabulary and seed make the prompt; without a vocabulary the prompt is a word.
        limit_s: Limit of the answer.
    """
    prompt: object = load.prompt(0)[: min(load.input_len, 16)] if load.vocabulary else "moeprof"
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": _TOKENS,
        "temperature": 0,
        "logprobs": 1,
        "ignore_eos": True,
    }
    answer = fetch(f"{address}/v1/completions", limit_s, post=json.dumps(body).encode(), kind="application/json")
    if not answer.ok:
        return Probe((), answer.seen)
    try:
        choice = json.loads(answer.body)["choices"][0]
        values = (choice.get("logprobs") or {}).get("token_logprobs") or []
    except (ValueError, LookupError, TypeError, AttributeError):
        return Probe((), "answered without a completion")
    numbers = tuple(math.nan if value is None else float(value) for value in values)
    return Probe(numbers, f"gave {len(numbers)} log probabilities")
