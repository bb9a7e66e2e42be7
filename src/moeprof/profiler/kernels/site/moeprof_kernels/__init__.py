"""Runs inside the arm's own Python, under Nsight Compute: builds one MoE layer and launches it over batch sizes.

Standard library only, but for torch and what the layer needs, imported when they are used.
"""
