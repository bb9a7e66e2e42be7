"""Hardware metrics of MoE kernels: one layer of an arm, launched over batch sizes under Nsight Compute."""
