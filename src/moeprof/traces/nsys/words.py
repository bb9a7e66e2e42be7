"""Names: ids of strings as their texts, and one Enum over every name of an export.

Only strings that a row refers to are taken, so the rest of the string table (whole environments among them) never gets
into a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from moeprof.traces.nsys.export import Export


@dataclass(frozen=True, slots=True)
class Strings:
    """The strings that rows refer to.

    Attributes:
        labels: ``id`` and ``label`` (String): the text, or ``<string 4242>`` where the table lacks it.
        missing: Ids that the table lacks.
    """

    labels: pl.DataFrame
    missing: tuple[int, ...]

    def of(self, ids: pl.Series) -> pl.Series:
        """Return the texts of ids."""
        frame = pl.DataFrame({"id": ids})
        return frame.join(self.labels, on="id", how="left", maintain_order="left")["label"]


def strings(export: Export, ids: Iterable[pl.Series]) -> Strings:
    """Look the ids up in the table of strings; a row whose string is not there is kept."""
    columns = [column.drop_nulls().unique() for column in ids]
    used = pl.concat(columns).unique().sort() if columns else pl.Series(dtype=pl.Int64)
    wanted = pl.DataFrame({"id": used.cast(pl.Int64)})
    table = export.read("StringIds", ["id"], ["value"]).frame
    if {"id", "value"} - set(table.columns):
        table = pl.DataFrame(schema={"id": pl.Int64, "value": pl.String})
    known = table.join(wanted, on="id", how="semi").with_columns(pl.col("value").cast(pl.String))
    found = wanted.join(known.unique("id", keep="first"), on="id", how="left", maintain_order="left")
    missing = found.filter(pl.col("value").is_null())["id"].to_list()
    label = pl.coalesce("value", pl.format("<string {}>", "id")).alias("label")
    return Strings(found.select("id", label), tuple(missing))


def enum(parts: Sequence[pl.Series]) -> pl.Enum:
    """Return the Enum over the distinct texts of some series, in the order in which they first occur.

    A series that is an Enum stands for its categories.
    """
    texts = [part.dtype.categories if isinstance(part.dtype, pl.Enum) else part.cast(pl.String) for part in parts]
    whole = pl.concat([text.rename("name") for text in texts]) if texts else pl.Series(dtype=pl.String)
    return pl.Enum(whole.drop_nulls().unique(maintain_order=True))


def recoded(column: pl.Series, into: pl.Enum) -> pl.Series:
    """Return an Enum column over the categories of another Enum that has them all; codes are mapped, not texts."""
    assert isinstance(column.dtype, pl.Enum)
    own = column.dtype.categories
    if own.len() == 0 or own.equals(into.categories.head(own.len())):
        return column.to_physical().cast(pl.UInt32).cat.to(into)
    codes = own.cast(into).to_physical()
    return codes.gather(column.to_physical()).cast(pl.UInt32).cat.to(into).alias(column.name)
