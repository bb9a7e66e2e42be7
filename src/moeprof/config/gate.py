"""The rules of ``moeprof gate`` in a configuration: the table ``[gate]``. A file with nothing else is enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from moeprof.config import keys
from moeprof.config.load import compare_settings
from moeprof.config.source import Source, find_source, nearest_source
from moeprof.config.tables import checked, nearest, only, read, subtable
from moeprof.config.values import WrongValueError, choice, kind, several, truth, whole

T = TypeVar("T")

_ANY = "any"
_DEFAULT = "default"
_ALIASES = {"ag_rs_pairs": "pairs/ag_rs/per_iteration", "moe_gemm_pairs": "pairs/moe_gemm/per_iteration"}


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What a configuration says about gates; None: it does not say.

    Attributes:
        source: The file; None without one.
        folder: Folder of the file, else the working directory: a baseline lies there.
        baseline: Path of the baseline, absolute.
        fail_on: Words of ``--fail-on``; empty for ``none``.
        min_label, accuracy_margin, forbid, allow_environment: As the keys; what ``[compare]`` says holds for gates too.
        structure: Key or pattern to allowed values; None: any value.
        exact: Whether the rest of the structure must equal the baseline.
        metrics: Metric to keys of the registry of metrics, with `gates` true unless it says otherwise.
        labels: Metric to the label that it needs.
        optional: Metrics that may vanish.
    """

    source: str | None
    folder: Path
    baseline: Path | None = None
    fail_on: tuple[str, ...] | None = None
    min_label: str | None = None
    accuracy_margin: float | None = None
    forbid: tuple[str, ...] | None = None
    allow_environment: tuple[str, ...] = ()
    structure: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    exact: bool = True
    metrics: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()


def load_gate(path: Path | None, *, start: Path) -> GateSettings:
    """Return what a configuration says about gates; the defaults where there is no configuration at all.

    Args:
        path: A file, or a folder that holds one; None: the nearest one.
        start: Folder in which the search begins.

    Raises:
        InputNotFoundError: There is no such file.
        ConfigError: It cannot be used; the error names key, table, line and what is known instead.
    """
    source = nearest_source(start) if path is None else find_source(path, start)
    if source is None:
        return GateSettings(None, start.absolute())
    only(source, source.data, (), keys.TOP)
    table = subtable(source, source.data, ("gate",))
    values = read(source, {k: v for k, v in table.items() if k not in ("structure", "metrics")}, ("gate",), keys.GATE)
    metrics = _metrics(source, table)
    structure = subtable(source, table, ("gate", "structure"))
    compared = compare_settings(source)
    words = values.get("fail_on")
    folder = source.path.parent
    baseline = values.get("baseline")
    return GateSettings(
        source=str(source.path),
        folder=folder,
        baseline=None if baseline is None else folder / Path(str(baseline)).expanduser(),
        fail_on=_words(source, words) if isinstance(words, tuple) else None,
        min_label=_maybe(values.get("min_label"), str),
        accuracy_margin=_maybe(values.get("accuracy_margin"), float) or compared.accuracy_margin,
        forbid=_maybe(values.get("forbid"), tuple),
        allow_environment=(*compared.allow_environment, *(_maybe(values.get("allow_environment"), tuple) or ())),
        structure=_structure(source, structure),
        exact=_exact(source, structure),
        metrics={name: _registry(entry) for name, entry in metrics.items()},
        labels={name: str(entry["label"]) for name, entry in metrics.items() if "label" in entry},
        optional=frozenset(name for name, entry in metrics.items() if entry.get("required") is False),
    )


def _maybe(value: object, type_: type[T]) -> T | None:
    return value if isinstance(value, type_) else None


def _words(source: Source, words: tuple[str, ...]) -> tuple[str, ...]:
    if "none" in words and len(words) > 1:
        raise source.error("fail_on in [gate]: none stands alone", ("gate", "fail_on"))
    return tuple(word for word in keys.FAIL_ON if word in words)


def _metrics(source: Source, table: Mapping[str, object]) -> dict[str, dict[str, object]]:
    at = ("gate", "metrics")
    tables = subtable(source, table, at)
    found = {}
    for name in tables:
        entry = subtable(source, tables, (*at, name))
        only(source, entry, (*at, name), keys.GATE_METRIC)
        if "label" in entry:
            checked(source, entry["label"], (*at, name, "label"), choice(*keys.LABELS))
        if "required" in entry:
            checked(source, entry["required"], (*at, name, "required"), truth)
        found[name] = entry
    return found


def _registry(entry: Mapping[str, object]) -> dict[str, object]:
    return {"gates": True, **{key: value for key, value in entry.items() if key not in ("label", "required")}}


def _exact(source: Source, table: Mapping[str, object]) -> bool:
    at = ("gate", "structure", _DEFAULT)
    return _DEFAULT not in table or checked(source, table[_DEFAULT], at, choice("exact", _ANY)) == "exact"


def _structure(source: Source, table: Mapping[str, object]) -> dict[str, tuple[int, ...] | None]:
    found = {}
    for key, value in table.items():
        if key == _DEFAULT:
            continue
        at = ("gate", "structure", key)
        full = _ALIASES.get(key, key)
        if not any(fnmatchcase(known, full) for known in _known()):
            raise source.error(
                f"{key!r} in {source.table(at[:-1])} names no class and phase, no pairs and no backend",
                at,
                nearest(key, [*_ALIASES, *_known()]) if len(key) > 2 else None,
            )
        found[full] = checked(source, value, at, _backend if full.startswith("backend/") else _values)
    return found


def _known() -> list[str]:
    places = [f"{class_}/{phase}" for phase in keys.PHASES for class_ in keys.CLASSES]
    pairs = [f"pairs/{name}/{figure}" for name, figures in keys.PAIRS.items() for figure in figures]
    return [*places, *pairs, *(f"backend/{place}" for place in places)]


def _values(value: object) -> tuple[int, ...] | None:
    """Take a whole number, a list of them, or "any"."""
    if value == _ANY:
        return None
    if isinstance(value, str):
        raise WrongValueError(f'a whole number, a list of them or "any", not "{value}"')
    return several(whole(0), least=1, distinct=True)(value)


def _backend(value: object) -> None:
    """Take "any": a backend is held against the baseline, or not at all."""
    if value != _ANY:
        raise WrongValueError(f'"any", not {kind(value)}')


def baseline_place(settings: GateSettings) -> Path:
    """Return the folder in which a baseline lies by default: beside the configuration, else the working directory."""
    return settings.folder if settings.source is not None else Path()
