"""The JSON of a load client: vLLM's Python and Rust clients and moeprof's own write the same keys."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from datetime import datetime

from moeprof.errors import ResultError
from moeprof.traces.benchmarks.labels import NEEDED, is_key
from moeprof.traces.benchmarks.results import BenchmarkPass, Client, Number, fault_of, plausible

_PERCENTILES = "percentiles_"
_RUST_ONLY = ("steady_state", "latencies", "max_model_len", "input_throughput")
_FORMS = ("%Y%m%d-%H%M%S", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z")


def is_json(value: Mapping[str, object]) -> bool:
    """Tell whether a JSON object is a client's result."""
    return all(name in value for name in NEEDED) and ("output_throughput" in value or "request_throughput" in value)


def from_json(value: Mapping[str, object], path: str) -> BenchmarkPass:
    """Return the pass of a JSON object.

    Raises:
        ResultError: A figure is not finite, or what makes a result is no number.
    """
    values = _numbers(value, path)
    for name in NEEDED:
        if name not in values:
            raise ResultError(f"{name} is {_short(value[name])}, not a number", path=path)
    if values["duration"] <= 0:
        raise ResultError(f"duration is {values['duration']} s", path=path)
    drafts = any(name.startswith("spec_decode_") for name in values)
    client = _client(value)
    return BenchmarkPass(
        form="json",
        client=client,
        values=values,
        steady_state=_steady(value.get("steady_state"), path),
        date=_date(value.get("date")),
        rate=_rate(value.get("request_rate"), path),
        # The Rust client's JSON says nothing of speculation, whether there was any or not.
        speculative=True if drafts else (False if client in ("vllm", "builtin") else None),
    )


def _numbers(value: Mapping[str, object], path: str) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for name, item in value.items():
        if name == "request_rate" or item is None:
            continue
        if isinstance(item, bool) or not isinstance(item, int | float):
            if is_key(name):
                raise ResultError(f"{name} is {_short(item)}, not a number", path=path)
            continue
        if not plausible(item):
            raise ResultError(
                f"{name} is {_short(item)}, not a finite number of a plausible size",
                path=path,
                hint="run the pass again",
            )
        if (fault := fault_of(name, item)) is not None:
            raise ResultError(f"{name} is {fault}", path=path, hint="the file is damaged: run the pass again")
        found[name] = item
    return found


def _steady(value: object, path: str) -> dict[str, Number]:
    if not isinstance(value, dict):
        return {}
    found = _numbers(value, path)
    for name, pairs in value.items():
        if name.startswith(_PERCENTILES) and isinstance(pairs, list):
            for pair in pairs:
                if isinstance(pair, list) and len(pair) == 2 and all(_is_figure(item) for item in pair):
                    found[f"p{pair[0]:g}_{name.removeprefix(_PERCENTILES)}"] = pair[1]
    return found


def _is_figure(item: object) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool) and plausible(item)


def _client(value: Mapping[str, object]) -> Client | None:
    date = value.get("date")
    if any(name in value for name in _RUST_ONLY):
        return "vllm-rs"
    if isinstance(date, str):
        return "vllm-rs" if date.endswith("Z") else "vllm"
    return "builtin" if "endpoint_type" not in value else None


def _rate(value: object, path: str) -> float | None:
    if value is None or isinstance(value, bool):
        return None
    if value == "inf":
        return math.inf
    if isinstance(value, int | float) and value > 0 and plausible(value):
        return float(value)
    if value == math.inf:
        return math.inf
    raise ResultError(f"request_rate is {_short(value)}, not a rate", path=path)


def _short(value: object) -> str:
    """Return a value for a message; an integer may have more digits than Python turns into text."""
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return "a number beyond all bounds"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _date(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    for form in _FORMS:
        try:
            return datetime.strptime(value, form).isoformat()
        except ValueError:
            continue
    return None
