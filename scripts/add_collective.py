"""Derive a trace with one more collective per MoE layer, as a botched change would launch it. Standard library only.

    python -m scripts.add_collective samples/h200/base build/gate/regressed

Each all-gather on the GPU is followed by an all-reduce that belongs to the same launch. The header key `moeprof_derived` says so: no
time may be concluded from the result. Equal input gives equal bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

GATHER = re.compile(r"AllGather", re.IGNORECASE)
NAME = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LASTS_US = 1


def with_collective(document: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return a trace with an all-reduce after each all-gather, and how many were added."""
    events = []
    added = 0
    for event in document["traceEvents"]:
        events.append(event)
        if event.get("cat") == "kernel" and GATHER.search(str(event.get("name"))):
            events.append({**event, "name": NAME, "ts": event["ts"] + event["dur"], "dur": LASTS_US})
            added += 1
    told = "scripts/add_collective.py: one all-reduce after each all-gather"
    return {**document, "moeprof_derived": told, "traceEvents": events}, added


def derive(source: Path, target: Path) -> int:
    """Derive every trace of a folder; return how many collectives were added."""
    target.mkdir(parents=True, exist_ok=True)
    added = 0
    for file in sorted(source.glob("*.trace.json.gz")):
        document, count = with_collective(json.loads(gzip.decompress(file.read_bytes())))
        text = json.dumps(document, separators=(",", ":")).encode()
        (target / file.name).write_bytes(gzip.compress(text, mtime=0))
        added += count
    return added


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder with one trace per rank")
    parser.add_argument("target", type=Path, help="folder to write")
    options = parser.parse_args(argv)
    added = derive(options.source, options.target)
    if not added:
        print(f"no all-gather in the traces of {options.source}", file=sys.stderr)
        return 2
    print(f"{options.target}: {added} collectives added", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
