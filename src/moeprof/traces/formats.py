"""Files of other formats: by their names here, by their first bytes in the native reader (``format-unsupported``)."""

from __future__ import annotations

SUFFIXES = (".sqlite", ".sqlite.gz", ".nsys-rep", ".qdstrm", ".parquet", ".arrow")
HINT = "give the traces that torch.profiler wrote (*.pt.trace.json.gz)"
