"""HolisticTraceAnalysis on the same files, in an environment of its own outside the tree.

    python -m benchmarks.hta [FOLDER ...] [--runs 5]

The environment is made on first use under ${XDG_CACHE_HOME:-~/.cache}/moeprof/. Where it cannot be made (no network, no
package), the benchmark says so and is skipped. pandas is pinned: HTA 0.5.0 does not load these files with pandas 3.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.diff_h200 import folders
from benchmarks.measure import BenchmarkError, measure, spread

PINS = ["HolisticTraceAnalysis==0.5.0", "pandas==2.3.3"]

LOAD = """
import json, logging, os, sys, time
logging.disable(logging.CRITICAL)
sys.stdout, out = open(os.devnull, "w"), sys.stdout
begin = time.perf_counter()
from hta.trace_analysis import TraceAnalysis
imported = time.perf_counter()
analysis = TraceAnalysis(trace_files=dict(enumerate(sys.argv[1:])))
loaded = time.perf_counter()
gpu = {}
for rank in range(len(sys.argv) - 1):
    frame = analysis.t.get_trace(rank)
    gpu[rank] = float(frame.loc[frame["stream"] >= 0, "dur"].sum())
print(json.dumps({"import": imported - begin, "load": loaded - imported, "gpu_us": gpu}), file=out)
"""


def environment() -> Path | None:
    """Return the Python of the pinned environment, made where it is missing; None where that fails."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moeprof"
    home = cache / "-".join(pin.replace("==", "-") for pin in PINS)
    python = home / "bin" / "python"
    ready = home / ".ready"
    if ready.exists():
        return python
    print(f"hta: making an environment with {' and '.join(PINS)} under {cache}", file=sys.stderr)
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PINS], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"hta: SKIPPED: the environment could not be made: {error}", file=sys.stderr)
        return None
    ready.touch()
    return python


def main(argv: list[str] | None = None) -> int:
    """Measure the loading of each folder and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(argv)
    python = environment()
    if python is None:
        return 0
    for folder in options.folders or folders():
        files = [str(file.resolve()) for file in sorted(folder.glob("*.json*"))]
        try:
            runs = [measure([str(python), "-c", LOAD, *files]) for _ in range(options.runs)]
        except BenchmarkError as error:
            print(f"hta: SKIPPED: {folder.name} does not load: {error}", file=sys.stderr)
            continue
        inside = [json.loads(run.output) for run in runs]
        print(f"HTA 0.5.0, {folder.name}: {len(files)} rank files")
        print(f"  load alone     {spread([run['load'] for run in inside], 's')}")
        print(f"  whole process  {spread([run.wall for run in runs], 's')}")
        print(f"  cpu            {spread([run.cpu for run in runs], 's')}")
        print(f"  peak           {spread([run.peak / 2**20 for run in runs], 'MiB', digits=0)}")
        for rank in inside[0]["gpu_us"]:
            total = statistics.median(run["gpu_us"][rank] for run in inside)
            print(f"  rank {rank}: GPU durations add up to {total / 1000:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
