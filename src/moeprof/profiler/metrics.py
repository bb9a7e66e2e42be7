"""What a server's Prometheus text says about its progress, summed over engines. A name that is absent is None, never 0."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_SAMPLE = re.compile(r'([A-Za-z_:][\w:]*)\s*(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?\s+(\S+)(?:\s+-?\d+)?\s*$')
_RUNNING = ("vllm:num_requests_running",)
_WAITING = ("vllm:num_requests_waiting",)
_TOKENS = ("vllm:generation_tokens_total", "vllm:generation_tokens")
_STEPS = ("vllm:iteration_tokens_total_count",)  # a histogram of tokens per step: its count is the number of steps


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a server is, over all its engines; None where its text does not say.

    Attributes:
        running: Requests being worked on.
        waiting: Requests in the queue.
        generated_tokens: Output tokens since the start.
        engine_steps: Steps of all engines since the start.
    """

    running: int | None
    waiting: int | None
    generated_tokens: int | None
    engine_steps: int | None

    @property
    def busy(self) -> bool:
        """Whether a request is there to be worked on."""
        return bool(self.running) or bool(self.waiting)


def progress(text: str) -> Progress:
    """Read the Prometheus text of ``/metrics``.

    Args:
        text: What the server answered; lines that cannot be read are passed over.

    >>> progress('vllm:num_requests_running{engine="0"} 3.0')
    Progress(running=3, waiting=None, generated_tokens=None, engine_steps=None)
    """
    sums = _sums(text, {*_RUNNING, *_WAITING, *_TOKENS, *_STEPS})
    return Progress(_first(sums, _RUNNING), _first(sums, _WAITING), _first(sums, _TOKENS), _first(sums, _STEPS))


def _sums(text: str, wanted: set[str]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for line in text.splitlines():
        match = _SAMPLE.match(line.strip())
        if match is None or match[1] not in wanted:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            sums[match[1]] = sums.get(match[1], 0.0) + value
    return sums


def _first(sums: dict[str, float], names: tuple[str, ...]) -> int | None:
    return next((round(sums[name]) for name in names if name in sums), None)
