"""Run ``python -m moeprof``."""

from moeprof.cli import run

if __name__ == "__main__":
    run()
