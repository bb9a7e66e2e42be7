"""The rows of the plain reader's tables: an event is judged after it has been read whole."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tests.oracle.text import NON_FINITE_WORD, NUMBER, MalformedError, Node, Number

INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")


def to_ns(text: str) -> tuple[int, bool] | None:
    """Return the ns of a decimal text in us and whether digits were rounded away; None beyond int64."""
    mantissa, _, exponent = text.lower().partition("e")
    sign = -1 if mantissa.startswith("-") else 1
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return 0, False
    power = exponent.lstrip("+-").lstrip("0") or "0"
    size = int(power) if len(power) < 10 else 10**10
    shift = (-size if exponent.startswith("-") else size) - len(fraction) + 3
    if len(digits) + shift > 20:
        return None
    if shift >= 0:
        ns, rounded = int(digits) * 10**shift, False
    elif -shift > len(digits):
        ns, rounded = 0, True
    else:
        kept, lost = digits[:shift] or "0", digits[shift:]
        ns, rounded = int(kept), lost.strip("0") != ""
        half = "5" + "0" * (len(lost) - 1)
        if lost > half or (lost == half and ns % 2):
            ns += 1
    ns *= sign
    return (ns, rounded) if ns in INT64 else None


@dataclass
class Event:
    """One event, judged: what becomes a row, with the notices it causes."""

    fields: dict[str, tuple[Node, int]]
    byte: int
    notices: list[tuple[str, int, str]] = field(default_factory=list)

    def text(self, key: str) -> str:
        node = self.fields.get(key, (None, 0))[0]
        return node if isinstance(node, str) else ""

    def label(self, key: str) -> str:
        node = self.fields.get(key, (None, 0))[0]
        if isinstance(node, Number):
            return node.text
        return node if isinstance(node, str) else ""

    @property
    def args(self) -> dict[str, tuple[Node, int]]:
        node = self.fields.get("args", (None, 0))[0]
        return node if isinstance(node, dict) else {}

    def number(self, where: dict[str, tuple[Node, int]], key: str) -> tuple[str, int] | None:
        """Return the digits of a number, or of a number in a string, and their position."""
        node, byte = where.get(key, (None, 0))
        if isinstance(node, Number):
            return node.text, byte
        if isinstance(node, str):
            if NON_FINITE_WORD.match(node.encode("utf-8")):
                self.notices.append(("non-finite-number", byte + 1, node))
            elif NUMBER.match(node.encode("utf-8")):
                return node, byte + 1
        return None

    def time(self, key: str) -> int | None:
        found = self.number(self.fields, key)
        if found is None:
            return None
        ns = to_ns(found[0])
        if ns is None:
            raise MalformedError(f"{key} is beyond 64 bits of ns", self.byte)
        if ns[1]:
            self.notices.append(("sub-nanosecond", found[1], found[0]))
        return ns[0]

    def identifier(self, *keys: str) -> int | None:
        """Return an id; of several spellings the last one in the file counts."""
        present = [key for key in keys if key in self.args]
        if not present:
            return None
        found = self.number(self.args, max(present, key=lambda key: self.args[key][1]))
        if found is None:
            return None
        value = _whole(found[0], UINT64)
        if value is not None:
            return value
        self.notices.append(("bad-id", found[1], found[0]))
        return None

    def integer(self, *keys: str, span: range = INT64) -> int | None:
        present = [key for key in keys if key in self.args]
        if not present:
            return None
        found = self.number(self.args, max(present, key=lambda key: self.args[key][1]))
        return _whole(found[0], span) if found else None

    def triple(self, key: str) -> list[int | None]:
        node = self.args.get(key, (None, 0))[0]
        values = node if isinstance(node, list) else []
        whole = [_whole(item.text, INT64) if isinstance(item, Number) else None for item in values[:3]]
        return whole + [None] * (3 - len(whole))

    def string(self, key: str) -> str | None:
        node = self.args.get(key, (None, 0))[0]
        return node if isinstance(node, str) else None


def _whole(text: str, span: range) -> int | None:
    return int(text) if len(text) <= 20 and _INTEGER.match(text) and int(text) in span else None


EVENTS = {
    "ph": pl.UInt8,
    "category": pl.UInt16,
    "name": pl.UInt32,
    "track": pl.UInt32,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "correlation": pl.UInt64,
    "external_id": pl.UInt64,
}
DEVICE: dict[str, Any] = {"row": pl.UInt32} | dict.fromkeys(
    (
        *("device", "stream", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
        *("registers_per_thread", "shared_memory", "bytes"),
    ),
    pl.Int64,
)
DEVICE |= {"graph_id": pl.UInt64, "graph_node_id": pl.UInt64}
COLLECTIVE = {
    "row": pl.UInt32,
    "collective": pl.String,
    "dtype": pl.String,
    "group_name": pl.String,
    "group_description": pl.String,
    "group_ranks": pl.String,
    "in_elements": pl.Int64,
    "out_elements": pl.Int64,
    "group_size": pl.Int64,
    "source_rank": pl.Int64,
    "destination_rank": pl.Int64,
    "sequence": pl.UInt64,
    "comms_id": pl.UInt64,
}


def frame(rows: list[tuple[Any, ...]], schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


class Tables:
    """The rows of the tables, filled event by event."""

    def __init__(self, skipped: Sequence[str]) -> None:
        self.skipped = frozenset(skipped)
        self.phases: dict[str, int] = {}
        self.categories: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.tracks: dict[tuple[str, str], int] = {}
        self.counts: dict[str, list[int]] = {}
        self.events: list[tuple[Any, ...]] = []
        self.device: list[tuple[Any, ...]] = []
        self.collective: list[tuple[Any, ...]] = []
        self.labels: list[tuple[Any, ...]] = []

    def add(self, event: Event) -> bool:
        """Take one event; return False for one that is only counted."""
        category = event.text("cat")
        if category in self.skipped:
            self.counts.setdefault(category, [0, 0])[1] += 1
            return False
        start, duration = event.time("ts"), event.time("dur")
        correlation, external = event.identifier("correlation"), event.identifier("External id", "external id")
        phase = event.text("ph")
        if phase == "X" and start is None:
            event.notices.append(("missing-time", event.byte, event.text("name")))
        row = len(self.events)
        device, collective, label = self._device(event, row), self._collective(event, row), self._label(event, row)
        self.counts.setdefault(category, [0, 0])[0] += 1
        self.events.append(
            (
                _code(self.phases, phase),
                _code(self.categories, category),
                _code(self.names, event.text("name")),
                _code(self.tracks, (event.label("pid"), event.label("tid"))),
                start,
                duration,
                correlation,
                external,
            )
        )
        for table, values in ((self.device, device), (self.collective, collective), (self.labels, label)):
            if values:
                table.append(values)
        return True

    @staticmethod
    def _device(event: Event, row: int) -> tuple[Any, ...] | None:
        device, stream, size = event.integer("device"), event.integer("stream"), event.integer("bytes", "Bytes")
        if device is None and stream is None and size is None:
            return None
        return (
            row,
            device,
            stream,
            *event.triple("grid"),
            *event.triple("block"),
            event.integer("registers per thread"),
            event.integer("shared memory"),
            size,
            event.integer("graph id", span=UINT64),
            event.integer("graph node id", span=UINT64),
        )

    @staticmethod
    def _collective(event: Event, row: int) -> tuple[Any, ...] | None:
        name = event.string("Collective name")
        if name is None:
            return None
        return (
            row,
            name,
            event.string("dtype"),
            event.string("Process Group Name"),
            event.string("Process Group Description"),
            event.string("Process Group Ranks"),
            event.integer("In msg nelems"),
            event.integer("Out msg nelems"),
            event.integer("Group size"),
            event.integer("Src Rank"),
            event.integer("Dst Rank"),
            event.integer("Seq", span=UINT64),
            event.integer("Comms Id", span=UINT64),
        )

    @staticmethod
    def _label(event: Event, row: int) -> tuple[Any, ...] | None:
        if event.text("ph") != "M":
            return None
        for key in ("name", "labels"):
            value = event.string(key)
            if value is not None:
                return row, value
        node = event.args.get("sort_index", (None, 0))[0]
        if isinstance(node, Number):
            return row, node.text
        return (row, node) if isinstance(node, str) else None


def _code(table: dict[Any, int], value: object) -> int:
    return table.setdefault(value, len(table))
