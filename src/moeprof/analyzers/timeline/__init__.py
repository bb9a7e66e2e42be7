"""What the time of an iteration went into: device work, waits and idle gaps with their causes, that add up to its wall time."""
