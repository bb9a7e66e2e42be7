"""A server that ends in start-up as vLLM does: the cause in a worker's lines, a second-hand error last. ``dies_loading.py [kill]``."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    print("INFO Starting up", flush=True)
    for number in range(30):
        print(f"\rloading {number} %\x1b[0m", end="", flush=True)
    print("\n(Worker_DP0 pid=7) ERROR Traceback (most recent call last):")
    print("(Worker_DP0 pid=7) ERROR   File 'model.py', line 3, in load")
    print("(Worker_DP0 pid=7) ERROR ValueError: no kernel for token hf_abcdefgh")
    for number in range(30):
        print(f"INFO shutting down part {number}")
    print("RuntimeError: Engine core initialization failed. See root cause above.", flush=True)
    if "kill" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(7)


if __name__ == "__main__":
    main()
