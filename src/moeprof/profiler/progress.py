"""What a person is told while a block runs, a short line at a time."""

from __future__ import annotations

import re
from collections.abc import Callable

from moeprof.profiler.results import PassResult

_WIDTH = 100
_NAME = len("moeprof: ")  # what the command puts before each line
# (Worker_DP0 pid=7) INFO 11-30 20:37:30 [core.py:12] text
_PREFIX = re.compile(
    r"^(?:\([^()]*\)\s+)?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[:\s]\s*)?"
    r"(?:(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?\s+)?(?:\[[^\]\s]+:\d+\]\s+)?"
)


class Loading:
    """Tell how loading goes on: only when the log's last line is another one.

    Args:
        say: Told of progress.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last = ""

    def __call__(self, passed_s: float, line: str) -> None:
        """Take a look at the log.

        Args:
            passed_s: Seconds since the start.
            line: The log's last line.
        """
        text = log_text(line)
        if text and text != self._last:
            self._last = text
            self._say(shortened(f"{passed_s:.0f} s: {text}", _WIDTH - _NAME))


def log_text(line: str) -> str:
    """Return a line of the server's log without process, level, time and place.

    >>> log_text("(EngineCore_DP0 pid=7) INFO 11-30 20:37:30 [core.py:12] Loading weights")
    'Loading weights'
    """
    return _PREFIX.sub("", line.strip()).strip() or line.strip()


def shortened(text: str, width: int) -> str:
    """Return text that fits a width.

    >>> shortened("Loading weights", 10)
    'Loading...'
    """
    return text if len(text) <= width else text[: width - 3] + "..."


def pass_line(point: str, number: int, result: PassResult) -> str:
    """Return the outcome of a pass: ``c8 pass 2: 301.0 tok/s, TPOT p50 20.7 ms``.

    Args:
        point: Name of the measuring point.
        number: Of the pass, from 0.
        result: What it measured.
    """
    parts = []
    throughput = result.raw.get("output_throughput")
    if isinstance(throughput, int | float):
        parts.append(f"{throughput:.1f} tok/s")
    for name in ("tpot", "ttft"):  # a single token has no time per further token
        value = result.raw.get(f"p50_{name}_ms", result.raw.get(f"median_{name}_ms"))
        if isinstance(value, int | float) and value > 0:
            parts.append(f"{name.upper()} p50 {value:.1f} ms")
            break
    if result.failed:
        parts.append(f"{result.failed} request{'s' if result.failed > 1 else ''} failed")
    return f"{point} pass {number + 1}: {', '.join(parts) or 'no figures'}"
