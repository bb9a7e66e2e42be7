"""Read traces into one internal form: fixed polars tables in integer nanoseconds, whatever the source."""
