"""What a client or an evaluator reported. None is "no data", never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moeprof.traces.benchmarks.labels import COUNTS, is_key

Client: TypeAlias = Literal["vllm", "vllm-rs", "builtin"]
Form: TypeAlias = Literal["text", "json"]
Number: TypeAlias = int | float

_MOST = 1e100


def plausible(value: Number) -> bool:
    """Tell whether a figure is finite, and neither so large nor so small that a ratio of two is not.

    >>> plausible(0), plausible(7040.49), plausible(float("nan")), plausible(10**400), plausible(5e-324)
    (True, True, False, False, False)
    """
    return value == 0 or 1 / _MOST <= abs(value) <= _MOST


def fault_of(name: str, value: Number) -> str | None:
    """Return what is wrong with a figure that a client writes itself, in a clause; None where nothing is.

    >>> fault_of("completed", 12.5), fault_of("median_ttft_ms", -1.0), fault_of("completed", 12.0), fault_of("lead", -1)
    ('12.5, not a whole number', '-1.0, below zero', None, None)
    """
    if is_key(name) and value < 0:
        return f"{value}, below zero"
    return f"{value}, not a whole number" if name in COUNTS and value != int(value) else None


@dataclass(frozen=True, slots=True)
class BenchmarkPass:
    """One report of a load client.

    Attributes:
        form: Text or JSON; only JSON carries full precision.
        client: Who wrote it; None where the output does not tell.
        values: vLLM's result key to its value. What the client printed under a label of its own stands under that label.
        printed: The same names to the digits as they stood in a text; empty for JSON.
        steady_state: Values of the steady-state part, under the same names; never to be mixed with `values`.
        date: As the client wrote it, in ISO 8601; without a zone it is local time.
        rate: Requests per second asked for; ``inf`` for as fast as possible, None where it is not told.
        speculative: Whether the server decoded speculatively; None: not told.
        repeat: Number of the run in its file, from 0.
        line: Where the report begins in its file, from 1; None for JSON.
    """

    form: Form
    client: Client | None
    values: Mapping[str, Number]
    printed: Mapping[str, str] = field(default_factory=dict)
    steady_state: Mapping[str, Number] = field(default_factory=dict)
    date: str | None = None
    rate: float | None = None
    speculative: bool | None = None
    repeat: int = 0
    line: int | None = None

    def count(self, name: str) -> int | None:
        """Return a value that is a count; None where it is not told."""
        value = self.values.get(name)
        return int(value) if value is not None and value == int(value) else None


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Counts of an evaluation. A share that was printed rounded fits several counts: all of them are kept.

    Attributes:
        task: What was asked, such as ``gsm8k``.
        total: Number of questions.
        correct: Every number of right answers that agrees with what was written, ascending; one where it is exact.
        invalid: The same for answers that could not be read (a failed request is one of those); None: not told.
        accuracy: The share as it was written.
        shots: Examples before each question; None: not told.
        form: Text or JSON.
        outcomes: Whether each question was answered rightly, where the evaluator says so.
        output_tokens: Total of generated tokens; None: not told.
    """

    task: str
    total: int
    correct: tuple[int, ...]
    invalid: tuple[int, ...] | None
    accuracy: str
    shots: int | None = None
    form: Form = "text"
    outcomes: tuple[bool, ...] | None = None
    output_tokens: int | None = None

    @property
    def exact(self) -> bool:
        """Tell whether the number of right answers is known."""
        return len(self.correct) == 1


@dataclass(frozen=True, slots=True)
class ResultFile:
    """What a file held: passes of a load client, evaluations, or both where one log holds them."""

    passes: tuple[BenchmarkPass, ...] = ()
    evaluations: tuple[EvaluationResult, ...] = ()
