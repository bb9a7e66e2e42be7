"""Make, or find, the heavy environment with vLLM for the CPU; print its Python's path. Standard library only.

    python scripts/cpu_environment.py            # the path on stdout, progress on stderr
    python scripts/cpu_environment.py --check    # only say where it is; exit 3 if it is not there

It lies outside the tree, in ${XDG_CACHE_HOME:-~/.cache}/moeprof/cpu-<hash of the requirements>, and is made once for each
set of requirements. MOEPROF_CPU_PYTHON names the Python of an environment of your own instead.

Exit codes: 0 done; 3 it cannot be had here for lack of network or disk, or --check found none; 4 it cannot be made for another
reason (no Python 3.11, a requirement that cannot be installed); with one sentence that says why.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

OVERRIDE = "MOEPROF_CPU_PYTHON"
REQUIREMENTS = Path(__file__).parents[1] / "extras" / "moeprof-cpu-backend" / "requirements.txt"
NEEDS_BYTES = 8 * 10**9  # 6.2 GB where only PyPI's torch is to be had, and what pip unpacks on the way
PYTHON = (3, 11)
STAMP = "complete"
INSTALL_S = 3600
BEAT_S = 10
PROBE = "import torch, vllm"
DISK_FULL = "the disk is full"
NO_NETWORK = "the package index cannot be reached (no network?)"
LACKING = (DISK_FULL, NO_NETWORK)


class Unavailable(Exception):  # noqa: N818 - an outcome with its own exit code
    """The environment cannot be had here; the message says why."""

    code = 3


class Faulty(Unavailable):
    """It cannot be had although network and disk are there: something is wrong that a person must mend."""

    code = 4


def say(text: str) -> None:
    """Tell progress."""
    print(f"cpu environment: {text}", file=sys.stderr, flush=True)


def folder_of(requirements: bytes, cache: Path) -> Path:
    """Return where the environment for these requirements lies."""
    return cache / f"cpu-{hashlib.sha256(requirements).hexdigest()[:16]}"


def cache_root() -> Path:
    """Return moeprof's folder for what can be made again."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "moeprof"


def overridden() -> Path | None:
    """Return the Python that the user named, if one was named.

    Raises:
        Unavailable: It cannot be run.
    """
    name = os.environ.get(OVERRIDE)
    if not name:
        return None
    if not os.access(name, os.X_OK) or not Path(name).is_file():
        raise Faulty(f"{OVERRIDE} names {name}, which is not a program")
    return Path(name)


def find_python() -> str:
    """Return a Python of the version that the requirements are pinned for."""
    if sys.version_info[:2] == PYTHON:
        return sys.executable
    found = shutil.which("python{}.{}".format(*PYTHON))
    if found is None:
        raise Faulty("no Python {0}.{1} found; install python{0}.{1}, or set {2}".format(*PYTHON, OVERRIDE))
    return found


def check_space(cache: Path, needed: int) -> None:
    """Refuse to begin what cannot end.

    Raises:
        Unavailable: Too little is free.
    """
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise Unavailable(
            f"{cache} has {free / 1e9:.1f} GB free and {needed / 1e9:.0f} GB are needed; "
            "make room, or set XDG_CACHE_HOME to a folder on another disk"
        )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of one environment; wait, and say so, while another run makes it."""
    with path.open("a", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is making it; waiting")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield  # closing the file gives the lock back, also when the process is killed


def run(command: Sequence[str], log: Path, what: str) -> None:
    """Run a step with its output in a file, and say now and then that it goes on.

    Raises:
        Unavailable: It failed for lack of network or disk.
        Faulty: It failed otherwise; the message holds the cause as far as its output tells.
    """
    say(what)
    began = time.monotonic()
    with log.open("ab") as output:
        child = subprocess.Popen(list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            while True:
                try:
                    code = child.wait(BEAT_S)
                    break
                except subprocess.TimeoutExpired:
                    passed = time.monotonic() - began
                    if passed > INSTALL_S:
                        raise Unavailable(f"{what}: not done after {INSTALL_S} s; see {log}") from None
                    say(f"{what} ({passed:.0f} s)")
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    if code != 0:
        why = cause(log.read_text(encoding="utf-8", errors="replace"))
        raise (Unavailable if why in LACKING else Faulty)(f"{what}: {why}; see {log}")


def cause(output: str) -> str:
    """Return the reason that an installer's output gives, in one sentence."""
    lowered = output.lower()
    if "no space left" in lowered:
        return DISK_FULL
    signs = (
        "name resolution",
        "connection refused",
        "network is unreachable",
        "timed out",
        "max retries",
        "proxyerror",
    )
    if any(sign in lowered for sign in (*signs, "newconnectionerror", "failed to establish", "nodename nor servname")):
        return NO_NETWORK
    errors = [line.strip() for line in output.splitlines() if line.lower().startswith("error")]
    return errors[-1].removeprefix("ERROR: ") if errors else "the installer failed"


def make(folder: Path, requirements: Path) -> None:
    """Make the environment; its stamp is written last, so that a half-made one is never taken for complete."""
    check_space(folder.parent, NEEDS_BYTES)
    python = find_python()
    shutil.rmtree(folder, ignore_errors=True)
    log = folder.with_name(f"{folder.name}.log")
    log.write_bytes(b"")
    say(f"making {folder}, once; this takes some minutes and up to 6.2 GB")
    try:
        run([python, "-m", "venv", str(folder)], log, "step 1 of 3: virtual environment")
        inside = str(folder / "bin" / "python")
        pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        torch = next(line for line in requirements.read_text("utf-8").splitlines() if line.startswith("torch=="))
        run([*pip, torch], log, f"step 2 of 3: {torch} with what it needs")
        run([*pip, "--no-deps", "--requirement", str(requirements)], log, "step 3 of 3: vLLM for the CPU")
        run([inside, "-c", PROBE], log, "trying it")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # several GB that nothing would find again
        raise
    (folder / STAMP).write_text(hashlib.sha256(requirements.read_bytes()).hexdigest() + "\n", encoding="utf-8")


def environment(requirements: Path, *, check_only: bool) -> Path:
    """Return the Python of the environment; make it unless it is there.

    Raises:
        Unavailable: It cannot be had.
    """
    own = overridden()
    if own is not None:
        say(f"using {own} ({OVERRIDE})")
        return own
    folder = folder_of(requirements.read_bytes(), cache_root())
    python = folder / "bin" / "python"
    if (folder / STAMP).is_file():
        say(f"found {folder}")
        return python
    if check_only:
        raise Unavailable(f"there is none in {folder}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f"{folder.name}.lock")):
            if not (folder / STAMP).is_file():
                make(folder, requirements)
    except OSError as error:
        kind = Unavailable if error.errno in (errno.ENOSPC, errno.EDQUOT) else Faulty
        raise kind(f"{error.filename or folder}: {error.strerror or error}") from error
    return python


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="make nothing")
    parser.add_argument("--requirements", type=Path, default=REQUIREMENTS, help="default: those of moeprof-cpu-backend")
    options = parser.parse_args(argv)
    try:
        print(environment(options.requirements, check_only=options.check))
    except Unavailable as reason:
        say(f"not available: {reason}")
        return reason.code
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
