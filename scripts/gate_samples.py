"""The project's own gate: the sample traces against their committed baseline, and the same gate on a derived regression.

    make gate                      # or: .venv/bin/python -m scripts.gate_samples

The first gates must pass, the self-test must see every fault, and the gate on a trace with one more collective per layer must end
with 1 and say so in annotations. Standard library only.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scripts.add_collective import derive

ROOT = Path(__file__).resolve().parents[1]
REGRESSED = ROOT / "build" / "gate" / "regressed"
BASELINE = ("--baseline", "samples/moeprof-baseline.json")
GOOD = (("samples/h200/base", "h200-base"), ("samples/cpu/base", "cpu-base"))
WANTED = "all_reduce launches in target 0 -> 42"


def moeprof(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in the project's folder."""
    return subprocess.run(
        [sys.executable, "-m", "moeprof", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def held(what: str, done: subprocess.CompletedProcess[str], code: int) -> bool:
    """Tell whether a run ended as it must, and show it where it did not."""
    if done.returncode == code:
        print(f"gate      {what}: exit {code}, as it must", file=sys.stderr)
        return True
    print(
        f"gate      {what}: exit {done.returncode}, and {code} was expected\n{done.stdout}{done.stderr}",
        file=sys.stderr,
    )
    return False


def main() -> int:
    """Gate the samples; return 0 where everything is as it must be."""
    fine = True
    for sample, arm in GOOD:
        fine &= held(sample, moeprof("gate", sample, *BASELINE, "--arm", arm), 0)
        fine &= held(f"self-test on {arm}", moeprof("gate", "--self-test", *BASELINE, "--arm", arm), 0)
    derive(ROOT / GOOD[0][0], REGRESSED)
    done = moeprof("gate", str(REGRESSED), *BASELINE, "--arm", GOOD[0][1], "--format", "github")
    fine &= held("one more collective per layer", done, 1)
    for line in done.stdout.splitlines():
        # A leading word: this is a demonstration, and no annotation of this run.
        print(f"gate      | {line}", file=sys.stderr)
    if WANTED not in done.stdout:
        print(f"gate      no annotation says: {WANTED}", file=sys.stderr)
        fine = False
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
