"""The repeated structure of an iteration: layers found in the order of launches, without knowledge of any model."""
