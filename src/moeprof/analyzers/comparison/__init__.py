"""Two reports against each other: `moeprof.analyzers.comparison.compare` puts the rest together."""
