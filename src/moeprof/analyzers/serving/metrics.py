"""The registry of metrics: unit, direction and threshold of each, from TOML. A metric without a direction is an error."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from moeprof.analyzers.serving.results import Better
from moeprof.errors import InputNotFoundError, MetricsError

_KEYS = ("unit", "better", "gates", "threshold", "abs", "same_as", "counts_chunks", "aliases", "description")
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_TAIL = re.compile(r"(?:.*\.)?p(\d+(?:\.\d+)?)_.*")
DEFAULT_THRESHOLD = 0.05


@dataclass(frozen=True, slots=True)
class Metric:
    """What is known about a metric; attributes as the keys of ``metrics.toml``, the threshold as a fraction of base."""

    name: str
    unit: str
    better: Better
    gates: bool = False
    threshold: float = DEFAULT_THRESHOLD
    abs: float | None = None
    same_as: str | None = None
    counts_chunks: bool = False
    aliases: tuple[str, ...] = ()
    description: str = ""

    @property
    def tail(self) -> float | None:
        """Return the share of requests beyond a percentile; None where it is none.

        >>> Metric("p99_ttft_ms", "ms", "lower").tail
        0.01
        """
        match = _TAIL.fullmatch(self.name)
        return None if match is None else round(1 - float(match[1]) / 100, 12)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The registry.

    Attributes:
        named: Metric of each name, in order.
        families: Patterns of names and what holds for them, in order.
        ignored: Patterns of numbers that are no metrics.
    """

    named: Mapping[str, Metric]
    families: tuple[tuple[re.Pattern[str], Metric], ...]
    ignored: tuple[re.Pattern[str], ...]

    def find(self, name: str) -> Metric | None:
        """Return the metric of a name or an alias; None where it is not known.

        >>> load_metrics().find("p90_tpot_ms").better
        'lower'
        """
        if name in self.named:
            return self.named[name]
        for metric in self.named.values():
            if name in metric.aliases:
                return metric
        for pattern, metric in self.families:
            if pattern.fullmatch(name):
                return replace(metric, name=name)
        return None

    def is_ignored(self, name: str) -> bool:
        """Tell whether a number is known to be no metric."""
        declared = name in self.named or any(name in metric.aliases for metric in self.named.values())
        return not declared and any(pattern.fullmatch(name) for pattern in self.ignored)

    def order(self, name: str) -> tuple[int, int, str]:
        """Return the sort key of a metric: those that gate first, then in the order of the tables, then by name."""
        metric = self.find(name)
        gates = metric is not None and metric.gates
        places = list(self.named)
        return 0 if gates else 1, places.index(name) if name in self.named else len(places), name

    def value(self, metric: Metric, values: Mapping[str, int | float]) -> int | float | None:
        """Return the value of a metric among the values of a pass; None where there is none."""
        for name in (metric.name, *metric.aliases):
            if name in values:
                return values[name]
        return None

    def overlaid(self, tables: Mapping[str, object], source: str) -> Metrics:
        """Return the registry with tables of a user on top.

        Args:
            tables: Metric name to its keys, as under ``[metrics]`` of a file.
            source: The file, for errors.

        Raises:
            MetricsError: An unknown key, a wrong value, a metric without unit or direction.
        """
        named = dict(self.named)
        for name, table in tables.items():
            known = self.find(name)
            named[known.name if known is not None else name] = _metric(name, table, known, source)
        _refuse_shared_names(named, source)
        for name in tables:
            other = named[known.name if (known := self.find(name)) is not None else name]
            if other.same_as is not None and (other.same_as == other.name or other.same_as not in named):
                raise MetricsError(
                    f"same_as of metric {other.name!r} is {other.same_as!r}, no other metric", path=source
                )
        return replace(self, named=named)


def load_metrics(path: str | os.PathLike[str] | None = None) -> Metrics:
    """Return the package's registry, with a file of the user on top.

    Args:
        path: TOML with a table ``[metrics.NAME]`` for each metric; other tables of the file are not looked at.

    Raises:
        InputNotFoundError: The file cannot be read.
        MetricsError: It cannot be used.

    >>> load_metrics().find("output_throughput").unit
    'tok/s'
    """
    metrics = _built_in()
    if path is None:
        return metrics
    source = os.fspath(path)
    try:
        content = Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise InputNotFoundError(f"cannot read the metrics: {error.strerror}", path=source) from error
    except UnicodeDecodeError as error:
        raise MetricsError("the file is not UTF-8", path=source, byte=error.start) from error
    try:
        tables = tomllib.loads(content).get("metrics", {})
    except tomllib.TOMLDecodeError as error:
        raise MetricsError(f"the file is not TOML: {error}", path=source) from error
    if not isinstance(tables, dict) or not tables:
        raise MetricsError("the file has no table [metrics.NAME]", path=source, hint=_HINT)
    return metrics.overlaid(tables, source)


@cache
def _built_in() -> Metrics:
    source = "metrics.toml"
    data = tomllib.loads(files(__package__).joinpath(source).read_text(encoding="utf-8"))
    empty = Metrics({}, (), tuple(re.compile(pattern) for pattern in data["ignored"]["patterns"]))
    families = []
    for number, table in enumerate(data["families"]):
        keys = {key: value for key, value in table.items() if key != "pattern"}
        families.append((re.compile(table["pattern"]), _metric(f"families[{number}]", keys, None, source)))
    return replace(empty, families=tuple(families)).overlaid(data["metrics"], source)


_HINT = '[metrics.cache_hit_rate] with unit = "%" and better = "higher", for example'


def _metric(name: str, table: object, known: Metric | None, source: str) -> Metric:
    if not isinstance(table, dict):
        raise MetricsError(f"metrics.{name} is no table", path=source, hint=_HINT)
    for key in table:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(_KEYS)}"
            raise MetricsError(f"unknown key {key!r} in metrics.{name}", path=source, hint=hint)
    better = table.get("better", None if known is None else known.better)
    if better is None:
        raise MetricsError(
            f"metric {name!r} has no direction", path=source, hint='say better = "higher" or better = "lower"'
        )
    if better not in ("higher", "lower"):
        raise MetricsError(f"better of metric {name!r} is {better!r}, not 'higher' or 'lower'", path=source)
    unit = table.get("unit", None if known is None else known.unit)
    if not isinstance(unit, str):
        raise MetricsError(f"metric {name!r} has no unit", path=source, hint='say unit = "ms", or "" where it has none')
    start = known if known is not None else Metric(name, unit, better)
    return replace(
        start,
        unit=unit,
        better=better,
        gates=_flag(table, "gates", start.gates, name, source),
        counts_chunks=_flag(table, "counts_chunks", start.counts_chunks, name, source),
        threshold=_threshold(table, start.threshold, name, source),
        abs=_positive(table, "abs", start.abs, name, source),
        same_as=_text(table, "same_as", start.same_as, name, source),
        description=_text(table, "description", start.description, name, source) or "",
        aliases=_aliases(table, start.aliases, name, source),
    )


def _flag(table: Mapping[str, object], key: str, default: bool, name: str, source: str) -> bool:
    value = table.get(key, default)
    if isinstance(value, bool):
        return value
    raise MetricsError(f"{key} of metric {name!r} is {value!r}, not true or false", path=source)


def _text(table: Mapping[str, object], key: str, default: str | None, name: str, source: str) -> str | None:
    value = table.get(key, default)
    if value is None or isinstance(value, str):
        return value
    raise MetricsError(f"{key} of metric {name!r} is {value!r}, not a text", path=source)


def _threshold(table: Mapping[str, object], default: float, name: str, source: str) -> float:
    if "threshold" not in table:
        return default
    value = table["threshold"]
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise MetricsError(
            f"threshold of metric {name!r} is {value!r}", path=source, hint='write it in percent: threshold = "5%"'
        )
    return float(match[1]) / 100


def _positive(table: Mapping[str, object], key: str, default: float | None, name: str, source: str) -> float | None:
    value = table.get(key, default)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise MetricsError(f"{key} of metric {name!r} is {value!r}, not a number from 0", path=source)
    return float(value)


def _aliases(table: Mapping[str, object], default: Sequence[str], name: str, source: str) -> tuple[str, ...]:
    value = table.get("aliases", list(default))
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise MetricsError(f"aliases of metric {name!r} are {value!r}, not a list of texts", path=source)
    return tuple(value)


def _refuse_shared_names(named: Mapping[str, Metric], source: str) -> None:
    owners: dict[str, str] = {}
    for metric in named.values():
        for name in (metric.name, *metric.aliases):
            other = owners.setdefault(name, metric.name)
            if other != metric.name:
                raise MetricsError(f"{name!r} is a name of both {other!r} and {metric.name!r}", path=source)
