"""Turn the tables of a trace into results: pure functions from tables and options to frozen dataclasses."""
