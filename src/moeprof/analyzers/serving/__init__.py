"""Serving metrics of two arms: samples in, one row per metric and workload out."""
