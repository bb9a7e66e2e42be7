"""Which runs of the store belong together, and what each side of a comparison holds: trace, timed passes, evaluations."""
