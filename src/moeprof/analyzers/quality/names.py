"""Kernel names in the messages about quality."""

from __future__ import annotations

import polars as pl

from moeprof.wording import functions

FIRST = 3  # names or iterations that a message spells out


def first_names(names: pl.Series) -> list[str]:
    """Return the first few distinct names, in order of appearance."""
    first: list[str] = names.unique(maintain_order=True).head(FIRST).cast(pl.String).to_list()
    return first


def told(names: list[str]) -> str:
    """Return names as a list in a message.

    >>> told(["void k<1>(int)", "void l<int>(int)"])
    'k, l'
    """
    return ", ".join(functions(names).values())
