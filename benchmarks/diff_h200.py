"""What `moeprof diff` of two arms costs as a whole process: start, imports, reading, counting, text.

    python -m benchmarks.diff_h200 [BASE CANDIDATE] [--runs 7]

Without folders: the full H200 traces where they are there (MOEPROF_SHARED, or ../shared), else the samples.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.measure import BenchmarkError, measure, spread
from tests.shared import shared_root

ROOT = Path(__file__).resolve().parent.parent


def folders() -> list[Path]:
    """Return the folders of the two arms to compare."""
    full = shared_root() / "traces" / "h200"
    home = full if full.is_dir() else ROOT / "samples" / "h200"
    return [home / "base", home / "triton"]


def main(argv: list[str] | None = None) -> int:
    """Measure and print one line per figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arms", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args(argv)
    arms = options.arms or folders()
    if len(arms) != 2:
        parser.error("two folders are compared")
    command = [sys.executable, "-m", "moeprof", "diff", *map(str, arms)]
    try:
        runs = [measure(command) for _ in range(options.runs)]
    except BenchmarkError as error:
        print(f"diff: failed: {error}", file=sys.stderr)
        return 2
    size = sum(file.stat().st_size for arm in arms for file in arm.glob("*.json*"))
    print(f"moeprof diff, {size / 1e6:.1f} MB of files ({'full traces' if size > 2e6 else 'samples'})")
    print(f"  wall  {spread([run.wall for run in runs], 's')}")
    print(f"  cpu   {spread([run.cpu for run in runs], 's')}")
    print(f"  peak  {spread([run.peak / 2**20 for run in runs], 'MiB', digits=0)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
