"""``moeprof runs``: what is stored, how large and how old, and how to be rid of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.streams import Streams, write
from moeprof.errors import UsageError
from moeprof.findings import JsonValue
from moeprof.store import disk, names
from moeprof.store.folder import Broken, FailedRun, Store
from moeprof.store.lock import exclusive
from moeprof.store.run import Run
from moeprof.wording import safe

DEFAULT_STORE = ".moeprof"
_AGE = re.compile(r"(\d+)([dhm])")
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_ANY = "Which runs"
_OUTPUT = "Output"


def _option_store() -> GroupedOption:
    return GroupedOption(
        "--store", metavar="DIR", default=DEFAULT_STORE, envvar="MOEPROF_STORE", heading=_ANY,
        help="The store (default: $MOEPROF_STORE, else .moeprof).",
    )  # fmt: skip


def _option_format() -> GroupedOption:
    return GroupedOption(
        "--format", "format_", type=click.Choice(("text", "json")), default="text", heading=_OUTPUT,
        help="What goes to stdout (default: text).",
    )  # fmt: skip


def _option_debug() -> GroupedOption:
    return GroupedOption("--debug", is_flag=True, help="Show the traceback of an error.")


def _option_failed() -> GroupedOption:
    return GroupedOption("--failed", is_flag=True, heading=_ANY, help="The blocks that failed and were set aside.")


def _list(arm: str | None, store: str, failed: bool, format_: str, debug: bool) -> int:
    place = Store(Path(store))
    runs, broken = place.scan(arm)
    rows: list[Run | FailedRun | Broken] = [*_failed(place, arm)] if failed else [*runs, *broken]
    left = place.leftovers()
    if format_ == "json":
        kind = "failed" if failed else "runs"
        _say(
            _json(
                {
                    kind: [_object(row) for row in rows],
                    "leftovers": len(left),
                    "schema": "moeprof.runs/1",
                    "store": store,
                }
            )
        )
        return 0
    lines = _table([("RUN", "OUTCOME", "SIZE", "AGE"), *(_row(row) for row in rows)]) if rows else []
    what = "failed block" if failed else "run"
    lines.append(f"{len(rows)} {what}{'' if len(rows) == 1 else 's'} in {store}")
    if left:
        lines.append(f"{len(left)} leftovers of writers that are gone; moeprof runs prune removes them")
    _say("\n".join(lines) + "\n")
    return 0


def _show(run: str, store: str, format_: str, debug: bool) -> int:
    found = Store(Path(store)).find(run)
    manifest = found.manifest
    if format_ == "json":
        _say(manifest.to_json())
        return 0
    lines = [
        f"run         {found.name}",
        f"folder      {found.path}",
        f"outcome     {manifest.outcome}" + (f": {manifest.reason}" if manifest.reason else ""),
        f"started     {manifest.started}, ended {manifest.ended}",
        f"size        {_size(disk.size_below(found.path))} in {len(manifest.files)} files",
        f"workload    {_text(manifest.workload.get('name'))}",
        f"model       {_text(manifest.model.get('path'))}",
        f"passes      {len(manifest.passes)}",
        f"fingerprint {_text(manifest.fingerprint)}",
    ]
    lines += [f"version     {name} {_text(version)}" for name, version in sorted(manifest.versions.items())]
    for gate in manifest.gates:
        need = "required" if gate.get("required") else "optional"
        lines.append(
            f"gate        {_text(gate.get('outcome'))} ({need}) {_text(gate.get('name'))}: {_text(gate.get('message'))}"
        )
    _say("".join(f"{safe(line)}\n" for line in lines))
    return 0


def _remove(run: tuple[str, ...], store: str, format_: str, debug: bool) -> int:
    if not run:
        raise UsageError("no run was named", hint="moeprof runs list shows their names")
    place = Store(Path(store))
    # All are looked up before the first one goes.
    found = [_named(place, name) for name in run]
    with exclusive(place.root):
        freed = [(item, place.remove(item)) for item in found]
    _tell(freed, [], dry=False, format_=format_)
    return 0


def _prune(
    arm: str | None, keep: int | None, older_than: str | None, failed: bool, dry_run: bool, yes: bool, store: str,
    format_: str, debug: bool,
) -> int:  # fmt: skip
    place = Store(Path(store))
    if arm is not None:
        names.check_arm(arm)
    if keep is None and older_than is None and not failed:
        raise UsageError("nothing says which runs to remove", hint="give --keep N, --older-than 30d or --failed")
    if not dry_run and not yes:
        raise UsageError("runs prune removes runs for good", hint="look with --dry-run first, then give --yes")
    age = None if older_than is None else _age(older_than)
    runs: Sequence[Run | FailedRun] = _failed(place, arm) if failed else place.runs(arm)
    chosen = choose(runs, keep=keep, age=age, now=datetime.now(UTC))
    if dry_run:
        _tell([(item, disk.size_below(item.path)) for item in chosen], place.leftovers(), dry=True, format_=format_)
        return 0
    if not place.root.is_dir():
        _tell([], [], dry=False, format_=format_)
        return 0
    with exclusive(place.root):
        swept = place.sweep()
        freed = [(item, place.remove(item)) for item in chosen]
    _tell(freed, swept, dry=False, format_=format_)
    return 0


def choose(
    runs: Sequence[Run | FailedRun], *, keep: int | None, age: timedelta | None, now: datetime
) -> list[Run | FailedRun]:
    """Return the runs that go: those beyond the newest `keep` of their arm that are also older than `age`.

    Args:
        runs: Oldest first.
        keep: Newest runs of each arm that stay; None: this alone keeps none.
        age: Runs that are not older stay; None: age keeps none.
        now: The present.
    """
    gone: list[Run | FailedRun] = []
    kept: dict[str, int] = {}
    for run in reversed(runs):
        arm = _arm(run)
        kept[arm] = kept.get(arm, 0) + 1
        began = _began(run)
        young = age is not None and (began is None or now - began <= age)
        if not young and (keep is None or kept[arm] > keep):
            gone.append(run)
    return gone[::-1]


def _named(place: Store, name: str) -> Run | FailedRun | Broken:
    if name.startswith("failed/"):
        for item in place.failed():
            if item.name == name:
                return item
    for damaged in place.scan()[1]:
        if name == f"{damaged.path.parent.name}/{damaged.path.name}":
            return damaged
    if "/" not in name:
        raise UsageError(
            f"{name} is an arm, not a run", hint="name each run as moeprof runs list does, or use runs prune"
        )
    return place.find(name)


def _failed(place: Store, arm: str | None) -> list[FailedRun]:
    return [item for item in place.failed() if arm is None or item.arm == arm]


def _arm(run: Run | FailedRun) -> str:
    return run.manifest.arm if isinstance(run, Run) else run.arm or ""


def _began(run: Run | FailedRun | Broken) -> datetime | None:
    if isinstance(run, FailedRun):
        return None if run.time is None else names.moment(run.time)
    key = names.run_key(run.path.name)
    return None if key is None else names.moment(key.time)


def _name(run: Run | FailedRun | Broken) -> str:
    return f"{run.path.parent.name}/{run.path.name}" if isinstance(run, Broken) else run.name


def _outcome(run: Run | FailedRun | Broken) -> str:
    if isinstance(run, Run):
        return run.manifest.outcome
    return run.message if isinstance(run, Broken) else run.reason or "no reason is known"


def _row(run: Run | FailedRun | Broken) -> tuple[str, str, str, str]:
    began = _began(run)
    age = "-" if began is None else _since(datetime.now(UTC) - began)
    return _name(run), _outcome(run), _size(disk.size_below(run.path)), age


def _object(run: Run | FailedRun | Broken) -> dict[str, JsonValue]:
    began = _began(run)
    return {
        "name": _name(run),
        "outcome": run.manifest.outcome if isinstance(run, Run) else "damaged" if isinstance(run, Broken) else "failed",
        "reason": run.manifest.reason if isinstance(run, Run) else _outcome(run),
        "path": str(run.path),
        "bytes": disk.size_below(run.path),
        "started": None if began is None else began.isoformat().replace("+00:00", "Z"),
    }


def _tell(
    freed: Sequence[tuple[Run | FailedRun | Broken, int]], left: Sequence[Path], *, dry: bool, format_: str
) -> None:
    total = sum(size for _, size in freed)
    if format_ == "json":
        value: dict[str, JsonValue] = {
            "removed": [{"name": _name(run), "bytes": size} for run, size in freed],
            "bytes": total, "leftovers": len(left), "dry_run": dry, "schema": "moeprof.runs-removed/1",
        }  # fmt: skip
        _say(_json(value))
        return
    verb = "would remove" if dry else "removed"
    lines = [f"{verb} {_name(run)} ({_size(size)})" for run, size in freed]
    if left:
        lines.append(f"{verb} {len(left)} leftovers of writers that are gone")
    lines.append(f"{verb} {len(freed)} run{'' if len(freed) == 1 else 's'}, {_size(total)}")
    _say("".join(f"{safe(line)}\n" for line in lines))


def _age(text: str) -> timedelta:
    match = _AGE.fullmatch(text)
    if match is None or len(match[1]) > 6:
        raise UsageError(f"--older-than {text} is no age", hint="for example 30d, 12h or 45m")
    return int(match[1]) * _UNITS[match[2]]


def _since(age: timedelta) -> str:
    """Return an age with one unit.

    >>> _since(timedelta(days=3, hours=5)), _since(timedelta(minutes=61)), _since(timedelta(seconds=5))
    ('3 d', '1 h', '0 min')
    """
    minutes = max(int(age.total_seconds()) // 60, 0)
    if minutes >= 48 * 60:
        return f"{minutes // (24 * 60)} d"
    return f"{minutes // 60} h" if minutes >= 60 else f"{minutes} min"


def _size(size: int) -> str:
    """Return a size with a unit.

    >>> _size(0), _size(1023), _size(1536), _size(5 * 1024**3)
    ('0 B', '1023 B', '1.5 KiB', '5.0 GiB')
    """
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    clean = [tuple(safe(cell) for cell in row) for row in rows]
    widths = [max(len(row[column]) for row in clean) for column in range(len(clean[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in clean]


def _text(value: JsonValue) -> str:
    return "no data" if value is None else str(value)


def _json(value: dict[str, JsonValue]) -> str:
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _say(text: str) -> None:
    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    write(streams.stdout, text)


def _commands() -> list[GroupedCommand]:
    arm = click.Argument(["arm"], required=False, metavar="[ARM]")
    listing = GroupedCommand(
        "list", callback=_list, help="List the runs of an arm, or all, oldest first.",
        params=[arm, _option_failed(), _option_store(), _option_format(), _option_debug()],
    )  # fmt: skip
    showing = GroupedCommand(
        "show", callback=_show, help="Show a run: RUN is ARM/NAME, or an arm for its newest complete run.",
        params=[click.Argument(["run"], metavar="RUN"), _option_store(), _option_format(), _option_debug()],
    )  # fmt: skip
    removing = GroupedCommand(
        "remove", callback=_remove, help="Remove the runs that are named, for good.",
        params=[click.Argument(["run"], nargs=-1, metavar="RUN..."), _option_store(), _option_format(), _option_debug()],
    )  # fmt: skip
    pruning = GroupedCommand(
        "prune",
        callback=_prune,
        help="Remove old runs. A run goes when every condition given holds for it.",
        params=[
            arm,
            GroupedOption(
                "--keep",
                type=click.IntRange(min=0),
                metavar="N",
                heading=_ANY,
                help="Keep the newest N runs of each arm.",
            ),
            GroupedOption(
                "--older-than", metavar="AGE", heading=_ANY, help="Only runs older than this: 30d, 12h, 45m."
            ),
            _option_failed(),
            _option_store(),
            GroupedOption("--dry-run", is_flag=True, heading="Safety", help="Say what would go, and remove nothing."),
            GroupedOption("--yes", is_flag=True, heading="Safety", help="Needed to remove anything."),
            _option_format(),
            _option_debug(),
        ],
    )
    listing.examples = ("moeprof runs list", "moeprof runs list mega --failed")
    showing.examples = ("moeprof runs show mega", "moeprof runs show mega/20261130T203730Z-1 --format json")
    removing.examples = ("moeprof runs remove mega/20261130T203730Z-1",)
    pruning.examples = ("moeprof runs prune --keep 5 --dry-run", "moeprof runs prune --older-than 30d --yes")
    return [listing, showing, removing, pruning]


command = click.Group("runs", help="List, show and remove stored runs.", commands=_commands())
