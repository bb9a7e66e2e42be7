"""Names: ids of strings as their texts, and one Enum over every name of an export.

Only strings that a row refers to are taken, so the rest of the string table (whole environments among them) never gets
into a result. A capture may hold a million distinct texts of ranges, so rows carry numbers of texts, never texts.
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


@dataclass(frozen=True, slots=True)
class Names:
    """All names of an export.

    Attributes:
        enum: The Enum over them; the distinct texts that it was made with come first, in their order.
        few: ``label`` and ``code`` of all names that are no texts of ranges, the empty name among them.
    """

    enum: pl.Enum
    few: pl.DataFrame

    def of_labels(self, labels: pl.Series) -> pl.Series:
        """Return the numbers of texts, which are among `few`."""
        found = pl.DataFrame({"label": labels}).join(self.few, on="label", how="left", maintain_order="left")
        return found["code"]

    def of_ids(self, ids: pl.Series, labels: pl.DataFrame) -> pl.Series:
        """Return the numbers of the names that ids stand for.

        Args:
            ids: One for each row.
            labels: ``id`` and ``label`` of each id.
        """
        by_id = labels.join(self.few, on="label", how="inner").select("id", "code")
        return pl.DataFrame({"id": ids}).join(by_id, on="id", how="left", maintain_order="left")["code"]

    def columns(self, parts: Sequence[pl.Series]) -> list[pl.Series]:
        """Return columns of names from columns of their numbers; no number is the empty name.

        All in one: giving a column an Enum costs a look at each of its strings.
        """
        (empty,) = self.few.filter(pl.col("label") == "")["code"]
        codes = pl.concat([part.cast(pl.UInt32).fill_null(empty).rename("name") for part in parts], rechunk=True)
        named = codes.cat.to(self.enum)
        made, first = [], 0
        for part in parts:
            made.append(named.slice(first, part.len()))
            first += part.len()
        return made


def strings(export: Export, ids: Iterable[pl.Series]) -> Strings:
    """Look the ids up in the table of strings; a row whose string is not there is kept."""
    columns = [column.drop_nulls().unique() for column in ids]
    used = pl.concat(columns).unique().sort() if columns else pl.Series(dtype=pl.Int64)
    wanted = pl.DataFrame({"id": used.cast(pl.Int64)})
    table = export.read("StringIds", ["id"], ["value"])
    known = pl.DataFrame(schema={"id": pl.Int64, "value": pl.String})
    if {"id", "value"} <= set(table.frame.columns):
        rows = table.frame.join(wanted, on="id", how="semi")
        known = rows.with_columns(table.texts.gather(rows["value"]).alias("value"))
    found = wanted.join(known.unique("id", keep="first"), on="id", how="left", maintain_order="left")
    missing = found.filter(pl.col("value").is_null())["id"].to_list()
    label = pl.coalesce("value", pl.format("<string {}>", "id")).alias("label")
    return Strings(found.select("id", label), tuple(missing))


def names(texts: pl.Series, others: Sequence[pl.Series]) -> Names:
    """Return the names of an export.

    Args:
        texts: The distinct texts of ranges, maybe a million.
        others: Other names, few distinct ones, and nulls.
    """
    parts = [pl.Series("label", [""]), *(part.unique().rename("label").cast(pl.String) for part in others)]
    few = pl.concat(parts).drop_nulls().unique().sort()
    shared = texts.is_in(few.implode()).arg_true()
    known = pl.DataFrame({"label": texts.gather(shared), "code": shared.cast(pl.UInt32)})
    new = few.filter(~few.is_in(known["label"].implode()))
    numbers = pl.int_range(texts.len(), texts.len() + new.len(), dtype=pl.UInt32, eager=True)
    whole = pl.concat([texts.rename("label"), new])
    return Names(pl.Enum(whole), pl.concat([known, pl.DataFrame({"label": new, "code": numbers})]))
