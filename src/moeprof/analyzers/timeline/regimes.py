"""What an iteration had to do, from its annotations: requests and tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

_VLLM = re.compile(
    r"execute_(?:(?P<all>\d+)_)?context_(?P<context>\d+)\((?P<context_tokens>[^()]*)\)"
    r"_generation_(?P<generation>\d+)\((?P<generation_tokens>[^()]*)\)"
)
_SGLANG = re.compile(r"step\[(?P<mode>[A-Z_]+)(?: bs=(?P<requests>\d+))?(?: toks=(?P<tokens>\d+))?[^\[\]]*\]")
_NUMBER = re.compile(r"\d+")
_QUERY = re.compile(r"sq(\d+)")


@dataclass(frozen=True, slots=True)
class Load:
    """What an annotation tells; None where it does not.

    Attributes:
        requests: Requests in the batch.
        tokens: Tokens scheduled.
        generated: Tokens generated, where no drafts are verified: then each request in generation makes one.
    """

    requests: int | None = None
    tokens: int | None = None
    generated: int | None = None


def load_of(label: str) -> Load | None:
    """Return what an engine's annotation says of its batch; None for any other text.

    >>> load_of("execute_context_0(0)_generation_32(128)")
    Load(requests=32, tokens=128, generated=None)
    >>> load_of("execute_context_1(888_788544)_generation_4(4_4000)")
    Load(requests=5, tokens=892, generated=4)
    >>> load_of("step[DECODE bs=64]"), load_of("gloo:all_reduce")
    (Load(requests=64, tokens=64, generated=64), None)
    """
    if match := _VLLM.fullmatch(label):
        context, generation = int(match["context"]), int(match["generation"])
        prompt, answer = _tokens(match["context_tokens"]), _tokens(match["generation_tokens"])
        known = prompt is not None and answer is not None
        return Load(context + generation, (prompt or 0) + (answer or 0) if known else None, _made(generation, answer))
    if match := _SGLANG.fullmatch(label):
        requests = None if match["requests"] is None else int(match["requests"])
        decode = match["mode"] == "DECODE"
        tokens = int(match["tokens"]) if match["tokens"] else requests if decode else None
        return Load(requests, tokens, _made(requests, tokens) if decode else None)
    return None


def loads(iterations: pl.DataFrame, markers: pl.DataFrame) -> pl.DataFrame:
    """Return ``iteration``, ``requests``, ``tokens``, ``generated`` of the iterations whose annotations tell them.

    Args:
        iterations: `moeprof.analyzers.tables.ITERATIONS`.
        markers: `moeprof.traces.schema.MARKERS` of the rank; the first that tells a load counts, on the thread of the
            iterations.
    """
    schema = {"name": pl.String, "requests": pl.Int64, "tokens": pl.Int64, "generated": pl.Int64}
    names = markers["name"].unique().to_list()
    told = [(name, load.requests, load.tokens, load.generated) for name in names if (load := load_of(name)) is not None]
    known = pl.DataFrame(told, schema=schema, orient="row")
    columns = ["iteration", "requests", "tokens", "generated"]
    if known.is_empty() or iterations.is_empty():
        return (
            iterations.select("iteration").clear().with_columns(*(pl.lit(None, pl.Int64).alias(c) for c in columns[1:]))
        )
    begun = iterations.select("iteration", "track", pl.col("start_ns").alias("begin_ns"), "next_start_ns").sort(
        "begin_ns"
    )
    return (
        markers.join(known, on="name", how="inner")
        .sort("start_ns", "marker")
        .join_asof(
            begun, left_on="start_ns", right_on="begin_ns", by="track", strategy="backward", check_sortedness=False
        )
        .filter(pl.col("iteration").is_not_null())
        .unique("iteration", keep="first", maintain_order=True)
        .select(columns)
    )


def _tokens(text: str) -> int | None:
    """Return the tokens in the brackets: the sum of queries where it is spelled, else the first number."""
    match = _QUERY.search(text)
    if match is not None:
        return int(match[1])
    number = _NUMBER.match(text)
    return None if number is None else int(number[0])


def _made(requests: int | None, tokens: int | None) -> int | None:
    return requests if requests is not None and requests == tokens else None
