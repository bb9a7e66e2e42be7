"""One writer per store; a holder that is killed leaves no lock behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moeprof.errors import StoreLockedError, StoreWriteError
from moeprof.store.lock import exclusive

HOLD = (
    "import sys\nfrom pathlib import Path\nfrom moeprof.store.lock import exclusive\n"
    "with exclusive(Path(sys.argv[1]), command=['moeprof', 'run', '--api-key', 'abc']):\n"
    "    print('held', flush=True)\n    sys.stdin.read()\n"
)


def test_a_second_holder_is_told_who_holds_it(tmp_path: Path) -> None:
    # GIVEN another process that holds the lock
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        # WHEN a second one comes
        with pytest.raises(StoreLockedError) as caught, exclusive(tmp_path):
            pass
        # THEN it learns process, host and command, without the secret
        host = os.uname().nodename
        assert caught.value.message == (
            "another moeprof writes to the store "
            f"(pid {holder.pid} on {host}: moeprof run --api-key '<redacted>')"
        )  # fmt: skip
        assert (caught.value.exit_code, caught.value.path) == (2, str(tmp_path / "lock"))
        # WHEN the holder is killed THEN the lock is free at once, though its file is still there
        holder.kill()
        holder.wait()
    with exclusive(tmp_path) as path:
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert path.read_text() == ""


def test_the_same_process_may_not_hold_it_twice(tmp_path: Path) -> None:
    # GIVEN the lock held here WHEN it is taken again here THEN that is refused, and the first hold stands
    with exclusive(tmp_path), pytest.raises(StoreLockedError, match=f"pid {os.getpid()}"), exclusive(tmp_path):
        pass
    with exclusive(tmp_path):
        pass


def test_an_error_frees_the_lock(tmp_path: Path) -> None:
    # WHEN the work under the lock fails THEN the lock is free
    with pytest.raises(ValueError, match="boom"), exclusive(tmp_path / "new"):
        raise ValueError("boom")
    with exclusive(tmp_path / "new"):
        pass


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    # GIVEN a child started under the lock, which outlives it
    with exclusive(tmp_path):
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False
        )
    # THEN the lock is free although the child lives
    try:
        with exclusive(tmp_path):
            assert child.poll() is None
    finally:
        child.communicate()


def test_a_store_that_is_a_file(tmp_path: Path) -> None:
    # GIVEN a file in the store's place THEN locking says so
    (tmp_path / "store").write_text("")
    with (
        pytest.raises(StoreWriteError, match="cannot lock the store: a file stands where a folder belongs"),
        exclusive(tmp_path / "store"),
    ):
        pass
