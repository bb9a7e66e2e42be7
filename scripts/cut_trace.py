"""Cut a rank file to a few iterations, by launch. Standard library only.

    python scripts/cut_trace.py IN.pt.trace.json.gz OUT.pt.trace.json.gz --iterations 3..5

What stays: the markers of iterations i..j; the calls on the marker's thread, from the start of marker i up to the start of
marker j+1, that made device rows or are launches; the device rows of these calls; the other annotations and the profiler's
overhead that begin in that stretch; every metadata event and every header key, but for the name of the host; `traceName` becomes the name
of the file. Without any device row the host operators of
the marker's thread stay instead. What goes: flow events, device-side annotation spans, Python frames, all else.

The text of what stays is not rewritten, only its white space: every number keeps its digits. The header key `moeprof_cut`
says what was cut from what.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

MARKER = r"^execute_(?:context_\d+\([\d_]+\)|\d+_context_\d+\(.*\))_generation_\d+\(.*\)$"
DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
CALL = frozenset({"cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver"})
LAUNCH = re.compile(r"launch|memcpy|memset", re.IGNORECASE)
LOCAL = frozenset({"host_name"})  # header keys that name the machine
LEFT_OUT = "flow events, device-side annotation spans, python_function, calls that are not launches"

_DECODER = json.JSONDecoder(parse_float=str)  # digits stay text
_SPACE = re.compile(r"\s*")
_GAP = re.compile(r"[\s,]*")
_STRING_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')


class CutError(Exception):
    """The file does not have the shape that a cut needs."""


@dataclass(frozen=True, slots=True)
class Event:
    """One element of traceEvents: its text without white space, and the fields that decide."""

    text: str
    phase: str
    category: str
    name: str
    thread: tuple[object, object]
    start: Decimal | None
    correlation: object


def squeeze(text: str) -> str:
    """Return JSON text without the white space between its tokens."""
    return _STRING_OR_SPACE.sub(lambda match: match.group(1) or "", text)


def skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a run of `pattern` that begins at `at` ends."""
    match = pattern.match(text, at)
    return at if match is None else match.end()


def members(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield key, start and end of each value of the top-level object."""
    at = skip(_SPACE, text, 0)
    if text[at : at + 1] != "{":
        raise CutError("the top level is not an object")
    at = skip(_GAP, text, at + 1)
    while text[at : at + 1] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = skip(_SPACE, text, at)
        if text[at : at + 1] != ":":
            raise CutError(f"no colon after key {key!r}")
        start = skip(_SPACE, text, at + 1)
        end = value_end(text, start)
        yield str(key), start, end
        at = skip(_GAP, text, end)


def value_end(text: str, start: int) -> int:
    """Return where the JSON value at `start` ends."""
    return int(_DECODER.raw_decode(text, start)[1])


def read_events(text: str, start: int) -> Iterator[Event]:
    """Yield the elements of the array that begins at `start`."""
    at = skip(_GAP, text, start + 1)
    while text[at : at + 1] != "]":
        value, end = _DECODER.raw_decode(text, at)
        if isinstance(value, dict) and value:
            args = value.get("args") or {}
            stamp = value.get("ts")
            yield Event(
                text=squeeze(text[at:end]),
                phase=str(value.get("ph", "")),
                category=str(value.get("cat", "")),
                name=str(value.get("name", "")),
                thread=(value.get("pid"), value.get("tid")),
                start=None if stamp is None else Decimal(str(stamp)),
                correlation=args.get("correlation"),
            )
        at = skip(_GAP, text, end)


def choose(events: list[Event], marker: re.Pattern[str], first: int, last: int) -> tuple[list[Event], int]:
    """Return the events of iterations first..last in file order, and how many iterations the file holds.

    Raises:
        CutError: No such iterations, or a next marker is missing: the last iteration of a file may be cut already.
    """
    markers = sorted(
        ((e.start, e.thread) for e in events if e.category == "user_annotation" and marker.search(e.name) and e.start),
        key=lambda pair: pair[0],
    )
    if last + 1 >= len(markers):
        raise CutError(f"iterations {first}..{last} and the start of the next are needed; the file has {len(markers)}")
    begin, thread = markers[first]
    end, _ = markers[last + 1]

    made_rows = {e.correlation for e in events if e.category in DEVICE}
    calls = {
        e.correlation
        for e in events
        if e.category in CALL
        and e.thread == thread
        and e.start is not None
        and begin <= e.start < end
        and (e.correlation in made_rows or LAUNCH.search(e.name))
    }

    def stays(event: Event) -> bool:
        if event.phase == "M" or event.category in ("", "Trace"):
            return True
        if event.category in DEVICE:
            return event.correlation in calls
        if event.start is None or not begin <= event.start < end:
            return False
        if event.category in CALL:
            return event.thread == thread and event.correlation in calls
        if event.category == "cpu_op":
            return not made_rows and event.thread == thread
        return event.category in ("user_annotation", "overhead")

    return [event for event in events if stays(event)], len(markers)


def cut(text: str, *, source: str, digest: str, marker: re.Pattern[str], first: int, last: int) -> str:
    """Return the text of the cut file."""
    head: list[str] = []
    tail: list[str] = []
    kept: list[Event] | None = None
    total = 0
    for key, start, end in members(text):
        if key == "traceEvents":
            kept, total = choose(list(read_events(text, start)), marker, first, last)
        elif key not in LOCAL:
            value = json.dumps(source) if key == "traceName" else squeeze(text[start:end])
            (head if kept is None else tail).append(f"{json.dumps(key)}:{value}")
    if kept is None:
        raise CutError("no traceEvents")
    note = {
        "from": source,
        "from_sha256": digest,
        "iterations": f"{first}..{last} of 0..{total - 1}, by launch",
        "left_out": LEFT_OUT,
    }
    head.append(f'"moeprof_cut":{json.dumps(note)}')
    rows = ",\n".join(event.text for event in kept)
    return "{" + ",\n".join([*head, f'"traceEvents":[\n{rows}\n]', *tail]) + "}\n"


def parse_range(text: str) -> tuple[int, int]:
    """Return the ends of ``3..5``; ``3`` stands for ``3..3``."""
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range such as 3..5")
    return int(match[1]), int(match[2] or match[1])


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, or 2 when the file cannot be cut."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="rank file, plain or gzip")
    parser.add_argument("target", type=Path, help="file to write; gzip when the name ends in .gz")
    parser.add_argument(
        "--iterations", type=parse_range, required=True, metavar="I..J", help="counted from 0, both ends included"
    )
    parser.add_argument(
        "--marker",
        type=re.compile,
        default=re.compile(MARKER),
        metavar="REGEX",
        help="default: vLLM's execute_context_*",
    )
    options = parser.parse_args(argv)
    raw = options.source.read_bytes()
    plain = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    first, last = options.iterations
    try:
        result = cut(
            plain.decode("utf-8"),
            source=options.source.name,
            digest=hashlib.sha256(raw).hexdigest(),
            marker=options.marker,
            first=first,
            last=last,
        ).encode("utf-8")
    except (CutError, ValueError) as error:
        print(f"cut_trace: {options.source}: {error}", file=sys.stderr)
        return 2
    options.target.parent.mkdir(parents=True, exist_ok=True)
    options.target.write_bytes(gzip.compress(result, 9, mtime=0) if options.target.suffix == ".gz" else result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
