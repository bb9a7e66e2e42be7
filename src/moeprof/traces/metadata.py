"""Read what a Kineto file says about itself outside its events."""

from __future__ import annotations

import re
from collections.abc import Mapping

from moeprof.findings import JsonValue
from moeprof.traces.trace import TraceMetadata

_VERSION = re.compile(r"_version$|^schemaVersion$")


_LATEST_NS = 2**62


def metadata(raw: Mapping[str, JsonValue]) -> TraceMetadata:
    """Return the typed metadata; what is absent or of an unexpected type is None."""
    distributed = raw.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    base = _integer(raw.get("baseTimeNanoseconds"))
    if base is not None and not 0 <= base < _LATEST_NS:  # no time of this world, and sums with it would wrap
        base = None
    backend, name = distributed.get("backend"), raw.get("traceName")
    return TraceMetadata(
        base_time_ns=0 if base is None else base,
        base_time_known=base is not None,
        distributed_rank=_integer(distributed.get("rank")),
        world_size=_integer(distributed.get("world_size")),
        backend=backend if isinstance(backend, str) else None,
        devices=_devices(raw.get("deviceProperties")),
        versions={key: str(value) for key, value in raw.items() if _VERSION.search(key) and _is_scalar(value)},
        trace_name=name if isinstance(name, str) else None,
        raw=raw,
    )


def _devices(properties: JsonValue) -> dict[int, str]:
    found: dict[int, str] = {}
    for entry in properties if isinstance(properties, list) else []:
        if isinstance(entry, dict) and isinstance(name := entry.get("name"), str):
            number = _integer(entry.get("id"))
            if number is not None:
                found[number] = name
    return found


def _integer(value: JsonValue) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
        return int(value)
    return None


def _is_scalar(value: JsonValue) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
