"""Outputs of load clients and evaluators: text or JSON in, values with their names out. Recognised by content, never by a file's name."""
