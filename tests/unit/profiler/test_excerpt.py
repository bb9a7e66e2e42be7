"""What of a log tells why a server ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.profiler.excerpt import cause, tail, telling


def log_of(folder: Path, text: str) -> Path:
    """Write a log."""
    path = folder / "server.log"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def test_telling_lines_come_before_the_end_with_gaps_shown(tmp_path: Path) -> None:
    # GIVEN an error in line 2 of 40 and nothing of note after it
    lines = ["start", "ValueError: bad", *(f"line {n}" for n in range(38))]
    # WHEN the telling part is asked for THEN it is the error, a gap, and the last 15 lines
    assert telling(log_of(tmp_path, "\n".join(lines) + "\n")) == ["...", "ValueError: bad", "...", *lines[-15:]]


def test_a_short_log_is_told_whole(tmp_path: Path) -> None:
    # GIVEN two lines THEN both are told, without a gap
    assert telling(log_of(tmp_path, "one\ntwo\n")) == ["one", "two"]


def test_colours_progress_bars_and_wrong_bytes_do_no_harm(tmp_path: Path) -> None:
    # GIVEN a progress bar, a colour and a byte that is not UTF-8
    path = log_of(tmp_path, "1 %\r2 %\r\n\x1b[31mred\x1b[0m\n\udcff!\nunended")
    # WHEN the end is asked for THEN each line is what a terminal would show
    assert tail(path, 9) == ["2 %", "red", "�!", "unended"]
    assert tail(path, 1) == ["unended"]
    assert tail(path, 0) == []


def test_no_log_has_no_end(tmp_path: Path) -> None:
    # GIVEN no file THEN there is nothing to tell
    assert (tail(tmp_path / "none", 5), telling(tmp_path / "none"), cause(tmp_path / "none")) == ([], [], None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "(Worker) ERROR ValueError: bad\nRuntimeError: Engine core initialization failed. See root cause above.",
            "ValueError: bad",
        ),
        (
            "RuntimeError: Engine core initialization failed. See root cause above.",
            "RuntimeError: Engine core initialization failed. See root cause above.",
        ),
        (
            "usage: vllm serve\nvllm: error: unrecognized arguments: --moe-back",
            "error: unrecognized arguments: --moe-back",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried\n", "torch.OutOfMemoryError: CUDA out of memory. Tried"),
        ("KeyError: 'first'\nOSError: second", "OSError: second"),
        ("INFO all is well", None),
        (
            "(APIServer pid=30500) WARNING 12-01 06:03:28 [system_utils.py:255] Found ulimit of 20000. "
            "This can cause fd limit errors like `OSError: [Errno 24] Too many open files`.",
            None,
        ),
        (
            "2026-11-30 12:00:01,123 INFO retried after ConnectionError: refused\nValueError: bad\nINFO: KeyError: x",
            "ValueError: bad",
        ),
        ("(EngineCore pid=1) ERROR 12-01 06:03:28 [core.py:1] ValueError: bad", "ValueError: bad"),
    ],
)
def test_the_cause_is_the_last_error_that_names_one(tmp_path: Path, text: str, expected: str | None) -> None:
    # GIVEN a log WHEN its cause is asked for THEN errors that only point to another one come second
    assert cause(log_of(tmp_path, text)) == expected
