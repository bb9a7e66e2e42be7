"""Collectives matched across ranks: clocks, arrivals, who waits for whom, and whether the work is even."""
