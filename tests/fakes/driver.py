"""A moeprof in small, to be killed: starts a brood through ServerProcess, says so, waits. ``driver.py TAG LOG SCRATCH``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from moeprof.profiler.process import ServerProcess
from moeprof.profiler.signals import Terminated, termination_as_exception


def main() -> int:
    tag, log, scratch = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    brood = [sys.executable, str(Path(__file__).with_name("brood.py")), tag]
    try:
        with (
            termination_as_exception(),
            ServerProcess.start(brood, env=dict(os.environ), log=log, stop_s=0.5, scratch=scratch) as server,
        ):
            print(server.guard_pid, flush=True)
            while server.alive():
                time.sleep(0.05)
    except Terminated as asked:
        return asked.exit_code
    except KeyboardInterrupt:
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
