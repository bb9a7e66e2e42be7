"""Speed and memory of the native reader on generated traces, beside counting newlines in the same bytes.

    python -m benchmarks.reader [--megabytes 200] [--runs 5]

Each figure comes from processes of their own. MB/s are of uncompressed JSON; "x newlines" is the reader's time over the time
that counting newlines (`bytes.count`) takes for the same bytes in the same process, which says more than MB/s do on a shared machine.
Peak memory is that of a process which reads the file once, less that of one which only imports the module.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.generate import create
from benchmarks.measure import BenchmarkError, measure, spread

READ = """
import json, sys, time
from moeprof._native import read_kineto
times = []
for _ in range(int(sys.argv[2])):
    begin = time.perf_counter()
    file = read_kineto(sys.argv[1])
    times.append(time.perf_counter() - begin)
    size, events = file.bytes_read, len(file.events)
    del file
newlines = []
if int(sys.argv[3]):
    import gzip
    data = open(sys.argv[1], "rb").read()
    data = gzip.decompress(data) if data[:2] == bytes((31, 139)) else data
    for _ in range(5):
        begin = time.perf_counter()
        data.count(10)
        newlines.append(time.perf_counter() - begin)
print(json.dumps({"times": times, "newlines": newlines, "size": size, "events": events}))
"""
CASES = [
    ("v211", "eager", False, ""),
    ("v213", "eager", False, ""),
    ("v211", "graph", False, ""),
    ("v211", "eager", True, ""),
    ("v211", "eager", False, ".gz"),
]


def main(argv: list[str] | None = None) -> int:
    """Measure every case and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(argv)
    try:
        empty = measure([sys.executable, "-c", "import moeprof._native"]).peak
    except BenchmarkError as error:
        print(f"reader: skipped: the native module is not built ({error})", file=sys.stderr)
        return 0
    print("| input | MB | events | MB/s | x newlines | peak MiB | B/event |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for layout, mode, stacks, suffix in CASES:
            target = Path(folder) / f"trace.json{suffix}"
            create(target, size=options.megabytes * 1_000_000, layout=layout, mode=mode, stacks=stacks)
            timed = json.loads(measure([sys.executable, "-c", READ, str(target), str(options.runs), "1"]).output)
            once = measure([sys.executable, "-c", READ, str(target), "1", "0"])
            peak = once.peak - empty
            speeds = [timed["size"] / 1e6 / seconds for seconds in timed["times"]]
            ratio = statistics.median(timed["times"]) / statistics.median(timed["newlines"])
            label = f"{layout} {mode}{' stacks' if stacks else ''}{suffix}"
            print(
                f"| {label} | {timed['size'] / 1e6:.0f} | {timed['events']} | {spread(speeds, '', digits=0)} "
                f"| {ratio:.1f} | {peak / 2**20:.0f} | {peak / timed['events']:.0f} |"
            )
            target.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
