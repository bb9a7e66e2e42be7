"""Nsight Systems exports (SQLite, Parquet, Arrow) as the fixed tables of a trace, one rank for each process that works."""
