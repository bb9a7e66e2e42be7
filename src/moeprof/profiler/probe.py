"""One small request with log probabilities: does the server compute finite numbers?"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from moeprof.findings import JsonValue
from moeprof.profiler.fetch import fetch
from moeprof.profiler.load import Load

_TOKENS = 8
_SAID = 200


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

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object of the manifest."""
        return {"seen": self.seen, "tokens": len(self.logprobs), "finite": self.finite}


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
        said = _said(answer.body)
        return Probe((), f"{answer.seen}: {said}" if said else answer.seen)
    return parse(answer.body)


def parse(body: str) -> Probe:
    """Return what a completion's answer tells.

    >>> parse('{"choices": [{"logprobs": {"token_logprobs": [-0.5, null]}}]}').finite
    False
    >>> parse('{"choices": [{"logprobs": null}]}').seen
    'answered without log probabilities'
    """
    try:
        choice = json.loads(body)["choices"][0]
        values = (choice.get("logprobs") or {}).get("token_logprobs") or []
        numbers = tuple(_number(value) for value in values)
    except (ValueError, LookupError, TypeError, AttributeError):
        return Probe((), "answered without a completion")
    if not numbers:
        return Probe((), "answered without log probabilities")
    return Probe(numbers, f"gave {len(numbers)} log probabilities")


def _number(value: object) -> float:
    """Return a log probability; what is none is not finite either."""
    return float(value) if isinstance(value, int | float) else math.nan


def _said(body: str) -> str:
    """Return the server's own words of a refusal, in short."""
    try:
        content = json.loads(body)
        error = content.get("error", content)
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError):
        text = body
    return " ".join(text.split())[:_SAID]
