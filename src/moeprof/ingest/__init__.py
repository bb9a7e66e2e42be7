"""Take traces, client outputs and evaluations that were made elsewhere into the store."""
