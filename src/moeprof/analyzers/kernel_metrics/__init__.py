"""What the hardware did in the kernels of one MoE layer, per arm and batch size, held against the device's roofs."""
