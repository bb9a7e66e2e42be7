"""Accept what a run did: all of it, one metric or one count; what was there before stays as history."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from statistics import median
from typing import cast

from moeprof.baselines.document import Object
from moeprof.errors import ConflictError, UsageError
from moeprof.findings import JsonValue

_PASSES = "passes"


def accept_everything(old: Object | None, new: Object) -> Object:
    """Return the arm of a baseline with all that is new; its history keeps what changed.

    Args:
        old: The arm as it was; None where it is new.
        new: As `moeprof.baselines.arms.object_of` gives it.
    """
    if old is None:
        return new
    told = _changes(old, new)
    history: JsonValue = [*_history(old), _entry("everything", new, *told)]
    return {**new, "history": history}


def accept_parts(old: Object, new: Object, metrics: Sequence[str], structure: Sequence[str], *, path: str) -> Object:
    """Return the arm of a baseline with some metrics and counts of a new run, and all else as it was.

    Args:
        old: The arm as it was.
        new: What the run did.
        metrics: Names of metrics.
        structure: ``class/phase``, ``pairs/KIND/FIGURE`` or ``backend/class/phase``.
        path: Baseline file, for errors.

    Raises:
        UsageError: Neither side has what is named.
        ConflictError: The passes of the run are not like those of the baseline.
    """
    result = deepcopy(old)
    history = _history(old)
    for name in metrics:
        before, after = _medians(old, name), _medians(new, name)
        _take_metric(result, new, name, path)
        history.append(_entry(f"metric {name}", new, before, after))
    for key in structure:
        counts = _take_count(result, new, key)
        history.append(_entry(f"structure {key}", new, *counts))
    return {**result, "history": history}


def _history(arm: Object) -> list[JsonValue]:
    found = arm.get("history")
    return [*found] if isinstance(found, list) else []


def _entry(what: str, new: Object, before: JsonValue, after: JsonValue) -> Object:
    accepted = cast("Object", new["accepted"])
    return {"what": what, "before": before, "after": after, **accepted}


def _part(value: JsonValue | Object, *keys: str) -> Object:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _medians(arm: Object, name: str | None = None) -> Object:
    """Return ``point metric`` to the median of its passes, of one metric or all."""
    found: Object = {}
    for point in sorted(_part(arm, "serving")):
        for metric, entry in sorted(_part(arm, "serving", point, "metrics").items()):
            values = _part(entry).get("values")
            if metric == (name or metric) and isinstance(values, list) and values:
                found[f"{point} {metric}"] = median(cast("list[float]", values))
    return found


def _changes(old: Object, new: Object) -> tuple[Object, Object]:
    """Return what differs between two arms, before and after: medians of metrics, counts and backends."""
    before, after = _figures(old), _figures(new)
    keys = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    return {key: before.get(key) for key in keys}, {key: after.get(key) for key in keys}


def _figures(arm: Object) -> Object:
    found = _medians(arm)
    for prefix, room in (("", "launches"), ("pairs/", "pairs"), ("backend/", "backends")):
        found.update({f"{prefix}{key}": value for key, value in _part(arm, "structure", room).items()})
    return found


def _take_metric(result: Object, new: Object, name: str, path: str) -> None:
    taken = False
    for point in _part(new, "serving"):
        fresh = _part(new, "serving", point)
        if name not in _part(fresh, "metrics"):
            continue
        taken = True
        kept = _part(result, "serving", point)
        if not kept:
            raise ConflictError(
                f"the baseline has no passes of {point}: one metric alone cannot be accepted",
                path=path,
                hint="leave out --metric to accept the whole run",
            )
        if kept.get("workload") != fresh.get("workload"):
            raise ConflictError(f"the run sent another workload of {point} than the baseline", path=path)
        _part(kept, "metrics")[name] = _part(fresh, "metrics")[name]
        kept[_PASSES] = _merged(kept, fresh, point, path)
    if not taken:
        raise UsageError(f"the run has no metric {name!r}", hint="moeprof report or diff shows what it has")


def _merged(kept: Object, fresh: Object, point: str, path: str) -> JsonValue:
    """Return the passes of both; one with the same numbers must have sent the same."""
    found: dict[tuple[int, int], Object] = {}
    for entry in [*cast("list[Object]", kept[_PASSES]), *cast("list[Object]", fresh[_PASSES])]:
        key = cast("int", entry["block"]), cast("int", entry["number"])
        other = found.setdefault(key, entry)
        for name in ("input_tokens", "output_tokens"):
            if other.get(name) != entry.get(name):
                raise ConflictError(
                    f"pass {key[0]}.{key[1]} of {point} has other totals of {name} than in the baseline", path=path
                )
    return [found[key] for key in sorted(found)]


def _take_count(result: Object, new: Object, key: str) -> tuple[JsonValue, JsonValue]:
    room, _, rest = key.partition("/")
    place, name = {"pairs": ("pairs", rest), "backend": ("backends", rest)}.get(room, ("launches", key))
    kept, fresh = _part(result, "structure", place), _part(new, "structure", place)
    if name not in kept and name not in fresh:
        raise UsageError(
            f"neither the run nor the baseline has the structure {key!r}",
            hint="name it as moeprof gate does: CLASS/PHASE, pairs/ag_rs/target, backend/moe_gemm/target",
        )
    if _part(result, "structure").get("counts_over") != _part(new, "structure").get("counts_over"):
        raise UsageError("the run counts other iterations than the baseline", hint="accept the whole run")
    before, after = kept.get(name), fresh.get(name)
    if name in fresh:
        kept[name] = fresh[name]
    else:
        kept.pop(name, None)
    return before, after
