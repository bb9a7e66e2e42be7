"""From a TOML file to a `Config`: found, checked key by key, arms resolved."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from moeprof.config import keys
from moeprof.config.resolve import resolve_arms
from moeprof.config.schema import Arm, Compare, Config, Gates, Passes, Profiler, Sampler, Window, Workload
from moeprof.config.source import Source, find_source
from moeprof.config.tables import changed, nearest, only, read, subtable
from moeprof.errors import ConfigError, UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_OF_KIND = {"decode": ("rate", "num_prompts"), "prefill": ("concurrency", "prompts_per_concurrency")}
_NEEDED = {
    "decode": ("input_len", "output_len", "concurrency"),
    "prefill": ("input_len", "output_len", "rate", "num_prompts"),
}


def load_config(path: Path | None, *, start: Path, environ: Mapping[str, str] | None = None) -> Config:
    """Return the configuration of a file, or the one that holds for a folder.

    Args:
        path: A ``moeprof.toml``, a ``pyproject.toml`` with ``[tool.moeprof]``, or a folder with the former; None: search.
        start: Folder in which the search begins; it goes up to the root of the git repository.
        environ: Environment for ``${NAME}``; the process' own by default.

    Raises:
        InputNotFoundError: There is no such file.
        ConfigError: None was found, or it cannot be used; the error names key, table, line and what is known instead.
    """
    source = find_source(path, start)
    data = source.data
    only(source, data, (), keys.TOP)
    server = read(source, subtable(source, data, ("server",)), ("server",), keys.SERVER)
    tables = _named(source, "arms")
    if not tables:
        raise source.error("no arm is defined", ("arms",), "write [arms.base] with its flags; moeprof init shows how")
    arms = resolve_arms(source, tables, server, os.environ if environ is None else environ)
    workloads = {name: _workload(source, table, name) for name, table in _named(source, "workloads").items()}
    if not workloads and any(arm.server.backend == "vllm" for arm in arms.values()):
        raise source.error("no workload is defined", ("workloads",), "write [workloads.decode]; moeprof init shows how")
    store = read(source, subtable(source, data, ("store",)), ("store",), keys.STORE)
    return Config(
        source=str(source.path),
        arms=arms,
        workloads=workloads,
        passes=changed(Passes(), _section(source, "passes", keys.PASSES)),
        window=changed(Window(), _section(source, "window", keys.WINDOW)),
        profiler=changed(Profiler(), _section(source, "profiler", keys.PROFILER)),
        gates=changed(Gates(), _section(source, "gates", keys.GATES)),
        sampler=changed(Sampler(), _section(source, "sampler", keys.SAMPLER)),
        compare=compare_settings(source),
        store=str(source.path.parent / Path(str(store.get("path", ".moeprof"))).expanduser()),
    )


def compare_settings(source: Source | None) -> Compare:
    """Return how two arms are compared, whatever else a configuration says; the defaults without one.

    Raises:
        ConfigError: The table cannot be used.
    """
    return Compare() if source is None else changed(Compare(), _section(source, "compare", keys.COMPARE))


def find_arm(config: Config, name: str) -> Arm:
    """Return an arm by its name.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in config.arms:
        raise ConfigError(f"no arm {name!r}", path=config.source, hint=nearest(name, config.arms))
    return config.arms[name]


def find_workload(config: Config, name: str | None = None) -> Workload:
    """Return a workload by its name, or the first one.

    Raises:
        ConfigError: There is none of that name, or none at all.
    """
    wanted = next(iter(config.workloads), "") if name is None else name
    if wanted not in config.workloads:
        said = "no workload is defined" if name is None else f"no workload {name!r}"
        raise ConfigError(said, path=config.source, hint=nearest(wanted, config.workloads))
    return config.workloads[wanted]


def workload_for(config: Config, arm: Arm, name: str | None = None) -> Workload | None:
    """Return the workload that an arm is sent; None for a program, which runs to its end by itself.

    Raises:
        ConfigError: There is none of that name, or none at all.
        UsageError: One is named for a program.
    """
    if arm.server.backend != "command":
        return find_workload(config, name)
    if name is not None:
        raise UsageError(f"arm {arm.name} runs a program to its end and is sent nothing", hint="leave --workload out")
    return None


def _section(source: Source, name: str, known: keys.Keys) -> dict[str, object]:
    return read(source, subtable(source, source.data, (name,)), (name,), known)


def _named(source: Source, name: str) -> dict[str, dict[str, object]]:
    """Return the tables below arms or workloads, whose names become folders."""
    tables = subtable(source, source.data, (name,))
    for key in tables:
        if not _NAME.fullmatch(key):
            raise source.error(
                f"{key!r} cannot be a name in {source.table((name,))}",
                (name, key),
                "letters, digits and ._+- after the first letter or digit, 64 at most",
            )
    return {key: subtable(source, tables, (name, key)) for key in tables}


def _workload(source: Source, table: dict[str, object], name: str) -> Workload:
    at = ("workloads", name)
    values = read(source, table, at, keys.WORKLOAD)
    kind = str(values.setdefault("kind", "decode"))
    _not_there(source, values, at, _OF_KIND[kind], kind)
    for key in _NEEDED[kind]:
        if key not in values:
            raise source.error(f"{source.table(at)} lacks {key}, which a {kind} workload needs", at)
    blank = Workload(name=name, kind="decode", input_len=1, output_len=1)
    return changed(blank, values)


def _not_there(
    source: Source, values: Mapping[str, object], at: tuple[str, ...], keys_: Iterable[str], kind: str
) -> None:
    for key in keys_:
        if key in values:
            raise source.error(f"{key} in {source.table(at)} says nothing about a {kind} workload", (*at, key))
