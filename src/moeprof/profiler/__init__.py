"""Run a real server: launch, drive, profile in a window of its own, check, stop. Needs neither torch nor polars."""
