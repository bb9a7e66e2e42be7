"""Reports of Nsight Compute: one row per profiled kernel, in base units."""
