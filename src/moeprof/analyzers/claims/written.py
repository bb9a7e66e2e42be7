"""A claim as somebody wrote it: what it is about, and the digits that it stands on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, TypeAlias, cast, get_args

from moeprof.analyzers.claims.digits import Range, printed
from moeprof.analyzers.serving.metrics import Metrics
from moeprof.errors import ClaimError

Quantity: TypeAlias = Literal["change", "ratio", "value"]
Statistic: TypeAlias = Literal["median", "mean", "each", "count"]
SideName: TypeAlias = Literal["base", "candidate"]

#: Counts of a pass that are exact, and the number of passes.
COUNTS = ("completed", "failed", "total_input_tokens", "total_output_tokens", "passes")

_KEYS = ("text", "metric", "value", "arm", "statistic", "workload", "block")
_VALUE = re.compile(r"(?P<sign>[-+\u2212]?)\s*(?P<digits>\d+(?:\.\d+)?)\s*(?P<unit>%|percent\b|per cent\b|x\b|\u00d7)?")
_GROUPED = re.compile(r"\d[,'\u2019\u00a0\u202f]\d")
_PERCENT = ("%", "percent", "per cent")
_MOST_DIGITS = 40
_WAYS = (
    ("+", re.compile(r"\b(rises?|rose|risen|higher|more|increas\w*|up|gain\w*|gr[eo]wn?|grows?|greater|longer|above)\b")),
    ("-", re.compile(r"\b(falls?|fell|fallen|lower\w*|less|fewer|decreas\w*|drop\w*|down|reduc\w*|cuts?|shorter|below|sank|sinks?)\b")),
)  # fmt: skip
_GOOD = re.compile(r"\b(improv\w*|better|faster|quicker)\b")
_BAD = re.compile(r"\b(worse\w*|slower|regress\w*|degrad\w*)\b")
_STATISTICS = {"p50": "median", "median": "median", "mean": "mean", "average": "mean", "avg": "mean"}
_MEASURE = re.compile(r"\b(ttft|tpot|itl|e2el)\b", re.IGNORECASE)
_PERCENTILE = re.compile(r"\b(p\d+(?:\.\d+)?|median|mean|average|avg)\b", re.IGNORECASE)
_PHRASES = (
    ("total token throughput", "total_token_throughput"),
    ("total throughput", "total_token_throughput"),
    ("request throughput", "request_throughput"),
    ("output token throughput", "output_throughput"),
    ("output throughput", "output_throughput"),
    ("failed", "failed"),
    ("completed", "completed"),
    ("output tokens", "total_output_tokens"),
    ("input tokens", "total_input_tokens"),
    ("timed runs", "passes"),
    ("passes", "passes"),
    ("duration", "duration"),
)
_LONG_MEASURES = {"time to first token": "ttft", "time per output token": "tpot", "end-to-end latency": "e2el"}


@dataclass(frozen=True, slots=True)
class WrittenClaim:
    """One claim.

    Attributes:
        text: The sentence, or what stands for it.
        metric: Name in the registry, or one of `COUNTS`.
        digits: The number as it was written, without sign of percent.
        quantity: A change in percent, a ratio, or a value of one arm.
        side: Arm of a value; None: a change, or a count of both arms.
        statistic: Over the passes; ``each``: every pass has it; ``count``: the number of passes.
        workload: Measuring point; None: the only one.
        block: Only this block of the arm; None: all.
        number: Place in its file, from 1.
    """

    text: str
    metric: str
    digits: str
    quantity: Quantity
    side: SideName | None
    statistic: Statistic
    workload: str | None
    block: int | None
    number: int

    @property
    def range(self) -> Range:
        """Return the values that the claim covers."""
        return printed(self.digits)


def claim_of(table: object, number: int, metrics: Metrics, source: str) -> WrittenClaim:
    """Return the claim of a TOML table.

    Args:
        table: With ``text`` that names figure and metric, or with ``value`` and ``metric``.
        number: Its place in the file, from 1.
        metrics: The registry.
        source: The file.

    Raises:
        ClaimError: It cannot be understood.

    >>> from moeprof.analyzers.serving.metrics import load_metrics
    >>> found = claim_of({"text": "TPOT p50 -18.16 %"}, 1, load_metrics(), "check.toml")
    >>> found.metric, found.digits, found.quantity
    ('median_tpot_ms', '-18.16', 'change')
    """

    def refuse(message: str, hint: str | None = None) -> ClaimError:
        return ClaimError(f"claim {number} {message}", path=source, hint=hint or _HINT)

    if not isinstance(table, Mapping):
        raise refuse("is no table")
    for key in table:
        if key not in _KEYS:
            raise refuse(f"has an unknown key {key!r}", f"the keys are {', '.join(_KEYS)}")
    for key in ("text", "metric", "arm", "statistic", "workload"):
        if key in table and not isinstance(table[key], str):
            raise refuse(f"has a {key} that is no text")
    words = str(table.get("text", ""))
    metric = table.get("metric") or metric_in(words)
    if metric is None:
        raise refuse("names no metric")
    if metric not in COUNTS and metrics.find(metric) is None:
        raise refuse(f"is about {metric!r}, which is no known metric", "--metrics FILE declares metrics of your own")
    digits, sign, unit = _figure(table.get("value"), words, refuse)
    side = table.get("arm")
    quantity: Quantity = "change" if unit == "%" and side is None else "ratio" if unit in ("x", "\u00d7") else "value"
    if quantity == "change" and not sign and metric not in COUNTS and Fraction(digits) != 0:
        found = metrics.find(metric)
        told = direction(words, higher_is_better=found is not None and found.better == "higher")
        if told is None:
            raise refuse(
                f"says no direction: {digits} %, up or down?", f"write +{digits} % or -{digits} %, or say rose or fell"
            )
        sign = told
    if quantity == "ratio" and (table.get("value") is None or words) and Fraction(digits) > 1:
        found = metrics.find(metric)
        if direction(words, higher_is_better=found is not None and found.better == "higher") == "-":
            raise refuse(
                f"may mean either ratio: {metric} falls, and {digits} is above one",
                "a ratio is candidate to base: write 0.91x, or a change in percent",
            )
    known = metrics.find(metric)
    if unit == "%" and side is not None and (known is None or known.unit != "%"):
        raise refuse("is a change, and names an arm", "a change is between the arms: leave arm out")
    digits = f"-{digits}" if sign == "-" else digits
    if side not in (None, *get_args(SideName)):
        raise refuse(f"is about arm {side!r}", "arm is base or candidate")
    if quantity == "value" and side is None and metric not in COUNTS:
        raise refuse("is a value, and names no arm", 'say arm = "base" or arm = "candidate"')
    block = table.get("block")
    if block is not None and (isinstance(block, bool) or not isinstance(block, int) or block < 0):
        raise refuse(f"has a block {block!r}", "a block is a number from 0")
    if block is not None and side is None:
        raise refuse("has a block, and names no arm", "a block is one of an arm: say arm as well, for a value")
    return WrittenClaim(
        text=words or f"{metric} {table.get('value')}",
        metric=str(metric),
        digits=digits,
        quantity=quantity,
        side=cast("SideName | None", side),
        statistic=_statistic(table.get("statistic"), str(metric), refuse),
        workload=table.get("workload"),
        block=block,
        number=number,
    )


def metric_in(text: str) -> str | None:
    """Return the metric that a sentence names; None where it names none.

    >>> metric_in("+6.72 % output throughput"), metric_in("TTFT p50 +26.81 %"), metric_in("faster")
    ('output_throughput', 'median_ttft_ms', None)
    """
    low = text.lower()
    for phrase, short in _LONG_MEASURES.items():
        low = low.replace(phrase, short)
    if (measure := _MEASURE.search(low)) is not None:
        statistic = _PERCENTILE.search(low)
        word = "median" if statistic is None else _STATISTICS.get(statistic[1], statistic[1])
        return f"{word}_{measure[1]}_ms"
    for phrase, name in _PHRASES:
        if phrase in low:
            return name
    found = re.search(r"\b[a-z0-9]+(?:_[a-z0-9.]+)+\b", low)
    return None if found is None else found[0]


_HINT = 'for example: text = "+6.72 % output throughput", or metric = "median_tpot_ms" with value = "-18.16 %"'


def direction(words: str, *, higher_is_better: bool) -> str | None:
    """Return ``+`` or ``-``, the way that the words of a sentence tell a change to go; None where they do not, or both.

    >>> direction("TPOT fell by 18.2 %", higher_is_better=False), direction("throughput: 6.7 % better", higher_is_better=True)
    ('-', '+')
    >>> direction("TPOT 18.2 %", higher_is_better=False) is None
    True
    """
    low = words.lower()
    signs = {sign for sign, pattern in _WAYS if pattern.search(low)}
    if _GOOD.search(low):
        signs.add("+" if higher_is_better else "-")
    if _BAD.search(low):
        signs.add("-" if higher_is_better else "+")
    return signs.pop() if len(signs) == 1 else None


def _figure(value: object, words: str, refuse: _Refuse) -> tuple[str, str, str | None]:
    """Return digits, sign (empty where none is written) and unit of the one figure of a claim."""
    if value is not None and not isinstance(value, str):
        raise refuse(
            f"has a value {value!r} that is no text", 'write it as it was printed, in quotes: value = "+6.72 %"'
        )
    # Names of percentiles are no figures: p50, p99.
    text = value if value is not None else re.sub(r"\b[pP]\d+(?:\.\d+)?\b", "", words)
    matches = list(_VALUE.finditer(text))
    if value is None and len(matches) > 1:
        matches = [match for match in matches if match["unit"] or match["sign"]] or matches
    if (grouped := _GROUPED.search(text)) is not None:
        raise refuse(
            f"has the figure {grouped[0]!r}", "write it with a decimal point, and without marks between thousands"
        )
    if len(matches) != 1:
        raise refuse("names no figure" if not matches else "names more than one figure")
    (match,) = matches
    if len(match["digits"]) > _MOST_DIGITS:
        raise refuse(f"has a figure of {len(match['digits'])} digits")
    sign = "-" if match["sign"] in ("-", "\u2212") else match["sign"]
    return match["digits"], sign, "%" if match["unit"] in _PERCENT else match["unit"]


def _statistic(value: object, metric: str, refuse: _Refuse) -> Statistic:
    if value is None:
        return "count" if metric == "passes" else "each" if metric in COUNTS else "median"
    if value in ("median", "mean"):
        return "median" if value == "median" else "mean"
    raise refuse(f"has a statistic {value!r}", "the statistics are median and mean, over passes")


class _Refuse(Protocol):
    """The type of what makes an error of a message and a hint."""

    def __call__(self, message: str, hint: str | None = None) -> ClaimError: ...
