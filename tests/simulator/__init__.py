"""A small simulator of ranks: it places host calls, kernels, streams, collectives and clocks, and knows what caused what."""
