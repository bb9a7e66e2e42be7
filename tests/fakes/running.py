"""Start the fake server for a test, and end it with all that it started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(__file__).with_name("server.py")
_LISTENING = re.compile(r"Starting vLLM API server on (http://\S+)")


@contextmanager
def fake_server(*options: str) -> Iterator[str]:
    """Give the address of a fake server on a free port; it listens when the block is entered."""
    words = [sys.executable, str(PROGRAM), "--port", "0", *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := _LISTENING.search(line):
                yield found[1]
                return
        raise AssertionError("the fake server ended: " + "".join(lines))
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()
