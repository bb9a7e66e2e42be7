"""What a client sends in one pass: how many requests, how long, when, and the prompts' token ids."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

from moeprof.config.schema import Workload
from moeprof.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Load:
    """One pass' requests.

    Attributes:
        prompts: Number of requests.
        input_len: Tokens of each prompt.
        output_len: Tokens asked for.
        concurrency: Most requests at a time; None: no bound.
        rate: Mean arrivals per second, Poisson; None: as fast as ``concurrency`` lets them.
        seed: Fixes prompts and arrivals.
        vocabulary: Ids are below it; only the built-in client needs it.
        temperature: Sampling temperature.
        ignore_eos: Whether each request runs to its full length.
    """

    prompts: int
    input_len: int
    output_len: int
    concurrency: int | None = None
    rate: float | None = None
    seed: int = 0
    vocabulary: int | None = None
    temperature: float = 0.0
    ignore_eos: bool = True

    def prompt(self, index: int) -> list[int]:
        """Return the token ids of a prompt.

        >>> Load(1, 4, 8, vocabulary=100).prompt(0) == Load(1, 4, 8, vocabulary=100).prompt(0)
        True
        """
        if self.vocabulary is None:
            raise ValueError("a load without a vocabulary has no prompts")
        source = random.Random(f"{self.seed}/{index}")
        return source.choices(range(self.vocabulary), k=self.input_len)

    def arrivals(self) -> list[float]:
        """Return when each request is sent, in seconds from the start; the last one is at ``prompts / rate``, so that the rate is exact."""
        if self.rate is None:
            return [0.0] * self.prompts
        source = random.Random(f"{self.seed}/arrivals")
        times: list[float] = []
        now = 0.0
        for _ in range(self.prompts):
            now += source.expovariate(1.0)
            times.append(now)
        scale = self.prompts / self.rate / now if now else 0.0
        return [time * scale for time in times]


def loads(workload: Workload, *, vocabulary: int | None = None) -> list[Load]:
    """Return the loads of a workload: one per concurrency (decode) or rate (prefill), in its order.

    Args:
        workload: From the configuration.
        vocabulary: Used where the workload does not name one.

    Raises:
        ConfigError: A prefill workload without a number of prompts.
    """
    known = workload.vocabulary if workload.vocabulary is not None else vocabulary
    points: list[tuple[int, int | None, float | None]]
    if workload.kind == "decode":
        points = [(count * workload.prompts_per_concurrency, count, None) for count in workload.concurrency]
    else:
        if workload.num_prompts is None:
            raise ConfigError(
                f"workload {workload.name} does not say how many prompts it sends",
                hint=f"set workloads.{workload.name}.num_prompts",
            )
        points = [(workload.num_prompts, None, rate) for rate in workload.rate]
    return [
        Load(
            prompts=prompts,
            input_len=workload.input_len,
            output_len=workload.output_len,
            concurrency=concurrency,
            rate=rate,
            seed=workload.seed,
            vocabulary=known,
            temperature=workload.temperature,
            ignore_eos=workload.ignore_eos,
        )
        for prompts, concurrency, rate in points
    ]


def find_vocabulary(workload: Workload, model: str | None) -> int:
    """Return the number of token ids that the built-in client draws from.

    Args:
        workload: Its own figure comes first.
        model: The server's model; where it is a folder, its ``config.json`` is read.

    Raises:
        ConfigError: Neither says it.
    """
    if workload.vocabulary is not None:
        return workload.vocabulary
    config = Path(model or "") / "config.json"
    try:
        content = json.loads(config.read_text(encoding="utf-8")) if model else {}
    except (OSError, ValueError):
        content = {}
    for part in (content, content.get("text_config")) if isinstance(content, dict) else ():
        size = part.get("vocab_size") if isinstance(part, dict) else None
        if isinstance(size, int) and size > 0:
            return size
    if model and Path(model).is_absolute() and not Path(model).exists():
        raise ConfigError(
            "the model is not there",
            path=model,
            hint=f"set server.model to its folder, or workloads.{workload.name}.vocabulary",
        )
    raise ConfigError(
        f"workload {workload.name} needs the size of the model's vocabulary for its random token ids",
        hint=f"set workloads.{workload.name}.vocabulary",
    )
