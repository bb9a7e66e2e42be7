"""Arms: what each table says, and what is left of it after `extends`, defaults and the caller's environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from moeprof.config import flags as words
from moeprof.config.keys import ARM, CLASSES, EXPECT, KERNELS, PHASES, SERVER
from moeprof.config.schema import Arm, Expect, Server
from moeprof.config.source import Source
from moeprof.config.tables import changed, checked, nearest, only, read, subtable
from moeprof.config.values import WrongValueError, is_loopback, kind, text, truth, whole

Keys = tuple[str, ...]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<wrong>))")
#: Flags that the table [server] decides; twice, they would contradict each other.
_OF_SERVER = {"host": "host", "port": "port", "served-model-name": "served_name", "model": "model"}


@dataclass(frozen=True, slots=True)
class _Stated:
    """What the table of an arm says, checked; False in `env` and `expect` removes what is inherited."""

    extends: str | None
    flags: tuple[str, ...]
    removed: tuple[str, ...]
    env: Mapping[str, str | bool]
    server: Mapping[str, object]
    expect: Mapping[str, object]
    kernels: Mapping[str, int | bool]
    markers: bool | None


def resolve_arms(
    source: Source, tables: Mapping[str, object], server: Mapping[str, object], environ: Mapping[str, str]
) -> dict[str, Arm]:
    """Return every arm by name, in file order.

    Args:
        source: Where errors point to.
        tables: What stands below ``arms``.
        server: The checked values of the table ``server``.
        environ: The caller's environment, for ``${NAME}``.

    Raises:
        ConfigError: An arm cannot be used.
    """
    stated = {name: _stated(source, tables, name) for name in tables}
    return {name: _arm(source, stated, name, server, environ) for name in stated}


def _stated(source: Source, tables: Mapping[str, object], name: str) -> _Stated:
    at = ("arms", name)
    table = subtable(source, tables, at)
    only(source, table, at, ARM)
    flags, removed = _flags(source, table.get("flags", []), (*at, "flags"))
    expect = subtable(source, table, (*at, "expect"))
    only(source, expect, (*at, "expect"), (*EXPECT, KERNELS))
    return _Stated(
        extends=checked(source, table["extends"], (*at, "extends"), text) if "extends" in table else None,
        flags=flags,
        removed=removed,
        env=_env(source, subtable(source, table, (*at, "env")), (*at, "env")),
        server=read(source, subtable(source, table, (*at, "server")), (*at, "server"), SERVER),
        expect={
            key: value is not False and checked(source, value, (*at, "expect", key), EXPECT[key])
            for key, value in expect.items()
            if key != KERNELS
        },
        kernels=_kernels(source, subtable(source, expect, (*at, "expect", KERNELS)), (*at, "expect", KERNELS)),
        markers=checked(source, table["markers"], (*at, "markers"), truth) if "markers" in table else None,
    )


def _flags(source: Source, value: object, at: Keys) -> tuple[tuple[str, ...], tuple[str, ...]]:
    def check(item: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if isinstance(item, list):
            return words.from_list(item), ()
        if isinstance(item, dict):
            return words.from_table(item)
        raise WrongValueError(f'a list of words, as in ["--name", "value"], or a table, not {kind(item)}')

    return checked(source, value, at, check)


def _env(source: Source, table: Mapping[str, object], at: Keys) -> dict[str, str | bool]:
    def check(value: object) -> str | bool:
        if isinstance(value, str) and "\0" not in value:
            return value
        if value is False:
            return False
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        raise WrongValueError(f"text, a whole number, or false to remove what is inherited, not {kind(value)}")

    for name in table:
        if not _VARIABLE.fullmatch(name):
            raise source.error(f"{name!r} in {source.table(at)} cannot be the name of a variable", (*at, name))
    return {name: checked(source, value, (*at, name), check) for name, value in table.items()}


def _kernels(source: Source, table: Mapping[str, object], at: Keys) -> dict[str, int | bool]:
    def check(value: object) -> int | bool:
        return value is not False and whole(0)(value)

    for name in table:
        class_, slash, phase = name.partition("/")
        if class_ not in CLASSES:
            raise source.error(f"unknown class {class_!r} in {source.table(at)}", (*at, name), nearest(class_, CLASSES))
        if slash and phase not in PHASES:
            raise source.error(f"unknown phase {phase!r} in {source.table(at)}", (*at, name), nearest(phase, PHASES))
    return {name: checked(source, value, (*at, name), check) for name, value in table.items()}


def _arm(
    source: Source, stated: Mapping[str, _Stated], name: str, shared: Mapping[str, object], environ: Mapping[str, str]
) -> Arm:
    flags: tuple[str, ...] = ()
    env: dict[str, tuple[str, Keys]] = {}
    server = dict(shared)
    expect: dict[str, object] = {}
    kernels: dict[str, int] = {}
    markers = True
    for ancestor in reversed(list(_chain(source, stated, name))):
        own = stated[ancestor]
        at = ("arms", ancestor)
        _removable(source, flags, own.removed, at)
        flags = words.merged(words.without(flags, own.removed), own.flags)
        env.update({key: (value, (*at, "env", key)) for key, value in own.env.items() if isinstance(value, str)})
        server.update(own.server)
        expect.update(own.expect)
        kernels.update({key: value for key, value in own.kernels.items() if value is not False})
        for gone in (key for key, value in own.env.items() if value is False):
            env.pop(gone, None)
        for gone in (key for key, value in own.kernels.items() if value is False):
            kernels.pop(gone, None)
        markers = markers if own.markers is None else own.markers
    wanted = {key: value for key, value in expect.items() if value is not False}
    arm = Arm(
        name=name,
        flags=flags,
        env={key: _expanded(source, value, at, environ) for key, (value, at) in env.items()},
        server=_server(source, server, name),
        expect=changed(Expect(), {**wanted, "kernels": kernels}),
        markers=markers,
    )
    _own_flags(source, arm)
    return arm


def _chain(source: Source, stated: Mapping[str, _Stated], name: str) -> Iterator[str]:
    """Yield an arm, its parent, its parent's parent and so on."""
    seen: list[str] = []
    here: str | None = name
    while here is not None:
        yield here
        seen.append(here)
        parent = stated[here].extends
        at = ("arms", here, "extends")
        if parent is not None and parent not in stated:
            raise source.error(f"arm {here!r} extends {parent!r}, which is no arm", at, nearest(parent, stated))
        if parent in seen:
            raise source.error(f"arms extend each other in a circle: {' -> '.join([*seen, str(parent)])}", at)
        here = parent


def _removable(source: Source, inherited: tuple[str, ...], removed: tuple[str, ...], at: Keys) -> None:
    for flag in removed:
        if words.find(inherited, flag) is None:
            raise source.error(
                f"{flag} in {source.table((*at, 'flags'))} is false, and there is no inherited flag to remove",
                (*at, "flags", flag),
                f'to switch it off, write "no-{flag}" = true',
            )


def _expanded(source: Source, value: str, at: Keys, environ: Mapping[str, str]) -> str:
    def put(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        name = match["name"]
        if name is None:
            raise source.error(
                f"{at[-1]} in {source.table(at[:-1])} has a $ by itself",
                at,
                "write $$ for a dollar, ${NAME} for a variable",
            )
        if name not in environ:
            raise source.error(
                f"{at[-1]} in {source.table(at[:-1])} needs the variable {name}, which is not set",
                at,
                f"export {name}=...",
            )
        return environ[name]

    return _REFERENCE.sub(put, value)


def _server(source: Source, values: Mapping[str, object], arm: str) -> Server:
    server = changed(Server(), values)
    at = ("arms", arm)
    place = _place(source, at, "command" if "command" in values else "backend")
    if server.backend == "command":
        if "command" not in values:
            raise source.error(
                f"arm {arm!r} has backend command and no command", place, 'write command = ["torchrun", ...]'
            )
        server = replace(server, model=None)
    elif server.model is None:
        raise source.error(
            f"arm {arm!r} has no model", _place(source, at, "model"), 'write model = "NAME or folder" in [server]'
        )
    if not server.allow_remote and not is_loopback(server.host):
        raise source.error(
            f"host {server.host!r} of arm {arm!r} is no loopback address; the profiler's routes have no password",
            _place(source, at, "host"),
            'use "127.0.0.1", or write allow_remote = true beside it',
        )
    first = server.command[0]
    command = (str(_path(source, first)) if "/" in first or first.startswith("~") else first, *server.command[1:])
    return replace(server, command=command, model=_model(source, server.model))


def _place(source: Source, at: Keys, key: str) -> Keys:
    """Return where a server's key stands: in the arm, else in the common table, else the arm itself."""
    own = (*at, "server", key)
    common = ("server", key)
    if source.prefix + own in source.lines:
        return own
    return common if source.prefix + common in source.lines else at


def _model(source: Source, model: str | None) -> str | None:
    """Return a folder as an absolute path, a name of the hub as it is."""
    if model is None:
        return None
    is_path = model.startswith(("/", "./", "../", "~")) or (source.path.parent / model).exists()
    return str(_path(source, model)) if is_path else model


def _path(source: Source, value: str) -> Path:
    return source.path.parent / Path(value).expanduser()


def _own_flags(source: Source, arm: Arm) -> None:
    if arm.server.backend != "vllm":
        return
    for flag, key in _OF_SERVER.items():
        if words.find(arm.flags, flag) is not None:
            raise source.error(
                f"arm {arm.name!r} has the flag --{flag}, which moeprof sets itself",
                ("arms", arm.name, "flags"),
                f"write {key} in [server] or [arms.{arm.name}.server] instead",
            )
