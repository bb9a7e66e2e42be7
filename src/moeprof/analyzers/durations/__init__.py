"""Durations that follow each other: samples, tests and intervals, and many tests at once. Numbers in, numbers out."""
