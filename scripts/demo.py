"""The live demo: capture two arms of a tiny MoE model on this machine's CPU with the real vLLM, and compare them.

    make demo            # or: .venv/bin/python -m scripts.demo
    make demo-samples    # or: .venv/bin/python -m scripts.demo --samples; the quick one: compare two stored samples

Everything lies in build/demo; blocks that are complete for the same sources are not captured again. Where vLLM for the CPU cannot
be had (no network, too little disk or memory), it says why and shows the samples instead. Standard library only.

Exit codes: 0 shown, live or not; 3 the environment is there and the capture failed; 130 interrupted; otherwise that of the comparison.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from scripts import cpu_environment

ROOT = Path(__file__).resolve().parents[1]
BACKEND = ROOT / "extras" / "moeprof-cpu-backend" / "src"
CONFIG = ROOT / "examples" / "cpu" / "moeprof.toml"
PLACE = ROOT / "build" / "demo"
SAMPLES = ("samples/h200/base", "samples/h200/mega_derived")
NEEDS_MEMORY = 6 * 10**9  # two ranks, an API server and a client
CAPTURE_S = 1800.0
STOP_S = 120.0
FAILED = 3
ERROR = re.compile(r"moeprof: error\[[\w-]+\]: (.*)")
MOEPROF = (sys.executable, "-m", "moeprof")


class NotLiveError(Exception):
    """The live demo cannot be had here; the message says why."""


class FailedError(Exception):
    """It can be had here and a step of it failed, which no sample must hide; the message says why."""


def say(text: str) -> None:
    """Tell progress."""
    print(f"demo: {text}", file=sys.stderr, flush=True)


def available_memory(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Return the bytes of memory that can still be had; None where the system does not say."""
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo.read_text("ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def check_memory(available: int | None) -> None:
    """Refuse to start servers that the system would kill.

    Raises:
        NotLiveError: Too little is available.
    """
    if available is not None and available < NEEDS_MEMORY:
        raise NotLiveError(
            f"{available / 1e9:.1f} GB of memory are available and {NEEDS_MEMORY / 1e9:.0f} GB are needed"
        )


def sources() -> list[Path]:
    """Return the files that decide what a capture gives."""
    folders = (ROOT / "src" / "moeprof" / "profiler", BACKEND)
    return [
        CONFIG,
        *(file for folder in folders for file in sorted(folder.rglob("*")) if file.suffix in (".py", ".txt")),
    ]


def fingerprint(files: Iterable[Path], python: Path) -> str:
    """Return a digest over the sources of a capture and the server's interpreter."""
    digest = hashlib.sha256(str(python).encode())
    for file in files:
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def prepare(place: Path, mark: str) -> Path:
    """Return the store of the demo, empty unless it was made from the same sources."""
    stamp, store = place / "fingerprint", place / "store"
    if not stamp.is_file() or stamp.read_text("ascii") != mark:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        stamp.write_text(mark, encoding="ascii")
    return store


def server_environment(python: Path) -> dict[str, str]:
    """Return the environment in which `python` is the server's, with the plugins that it needs on its path."""
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    places = [str(BACKEND), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(places)}


def run(words: Iterable[str], env: Mapping[str, str], what: str, limit_s: float = CAPTURE_S) -> None:
    """Run a step; its progress goes on to our stderr.

    Raises:
        FailedError: It failed, with the reason that it gave, or took too long.
    """
    process = subprocess.Popen(
        list(words),
        env=dict(env),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    assert process.stderr is not None
    late = threading.Timer(limit_s, process.terminate)  # moeprof then stops its server, and its guard does if it cannot
    late.daemon = True
    late.start()
    reason = None
    try:
        for line in process.stderr:
            print(line, end="", file=sys.stderr, flush=True)
            found = ERROR.match(line)
            reason = found[1].strip() if found else reason
        code = process.wait()
    finally:
        timely = late.is_alive()
        late.cancel()
        if process.poll() is None:
            process.terminate()
            process.wait(STOP_S)
        process.stderr.close()
    if not timely:
        raise FailedError(f"{what} did not end within {limit_s:g} s")
    if code != 0:
        raise FailedError(f"{what} failed: {reason or f'exit code {code}'}")


def live(place: Path = PLACE) -> Path:
    """Capture both arms, and return the store that holds them.

    Raises:
        NotLiveError: It cannot be done here.
        FailedError: It can, and failed.
    """
    check_memory(available_memory())
    try:
        python = cpu_environment.environment(cpu_environment.REQUIREMENTS, check_only=False)
    except cpu_environment.Unavailable as reason:
        raise NotLiveError(str(reason)) from reason
    env = server_environment(python)
    store = prepare(place, fingerprint(sources(), python))
    run([sys.executable, "-m", "moeprof_cpu_backend.model", str(place / "model"), "--layers", "4"], env, "the model")
    say("capturing two arms of a tiny GLM-MoE model, each with a server of its own: a few minutes on two cores")
    began = time.monotonic()
    words = ["run", "--plan", "ab", "base", "mega", "--config", str(CONFIG), "--store", str(store)]
    run([*MOEPROF, *words], env, "the capture")
    say(f"both arms are there ({time.monotonic() - began:.0f} s)")
    return store


def show(store: Path) -> int:
    """Print what differs between the captured arms."""
    code = compare("base", "mega", "--store", str(store))
    here = os.path.relpath(store, Path.cwd())
    say(f"look further: moeprof report base --store {here}; the quick demo is make demo-samples")
    return code


def compare(base: str, candidate: str, *options: str) -> int:
    """Print the comparison of two arms and return its exit code."""
    sys.stdout.flush()
    return subprocess.run([*MOEPROF, "diff", base, candidate, *options], cwd=ROOT, check=False).returncode


def report(path: str) -> int:
    """Print the report on one arm and return its exit code."""
    print(flush=True)
    return subprocess.run([*MOEPROF, "report", path], cwd=ROOT, check=False).returncode


def samples() -> int:
    """Compare two stored samples and report on one."""
    return compare(*SAMPLES) or report(SAMPLES[0])


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", action="store_true", help="start nothing; compare two stored samples")
    if parser.parse_args(argv).samples:
        return samples()
    try:
        return show(live())
    except NotLiveError as reason:
        say(f"not live: {reason}")
        say("here are stored samples from H200 GPUs instead; mega is derived from base, not measured")
        return samples()
    except FailedError as reason:
        say(f"failed: {reason}")
        say("the environment with vLLM is there, so this is a fault; make demo-samples shows stored samples")
        return FAILED
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
