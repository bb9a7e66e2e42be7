"""Keep runs: one folder each, complete or absent, with a manifest that says what was run and what it proved."""
