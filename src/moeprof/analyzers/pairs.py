"""Pairs of a MoE layer: dispatch with combine (AG/RS), and the two expert GEMMs (w13 with w2).

Within one iteration and phase, launches are read in order of start. A *dispatch end* is a maximal run of adjacent
all-gathers, a *combine end* one reduce-scatter; adjacent means that none of the classes below lies between. A pair is a
dispatch end directly followed by a combine end; what is left over on either side is unmatched.

Where the ranks' token counts differ, grouped broadcasts and reduces stand for all-gathers and reduce-scatters. They are
told from bystanders by what they enclose: a run of broadcasts counts when the next end of any spelling is a combine and
an expert GEMM lies between, a run of reduces likewise looking back. Bystanders are taken out first, so that they
neither part a pair nor a run of all-gathers.
"""

from __future__ import annotations

from typing import cast

import polars as pl

from moeprof.analyzers.commonest import commonest, listed
from moeprof.analyzers.results import AgRsPairs, GemmPairs, Pairs
from moeprof.analyzers.tables import PHASES, Attribution
from moeprof.findings import Finding, JsonValue

_DISPATCH = ("all_gather", "broadcast")
_COMBINE = ("reduce_scatter", "reduce")
_EQUIVALENTS = ("broadcast", "reduce")
_CLASSES = (*_DISPATCH, *_COMBINE, "moe_gemm", "moe_fused", "moe_combine", "attention")

_PLACE = ("iteration", "phase")
_NO_FAMILY = -1  # number of the one window of a trace without iterations
_AG_RS = ("pairs", "unmatched_ag", "unmatched_rs", "equivalents")
_GEMM = ("pairs", "unmatched")
_LEFT_OVER = {
    "unmatched_ag": "dispatch ends (all-gather) without a combine",
    "unmatched_rs": "combine ends (reduce-scatter) without a dispatch",
    "unmatched": "expert GEMMs without a partner",
}
_NO_LAYER = (
    "; the trace has no reduce-scatter: probably all-gathers that belong to no MoE layer, "
    "e.g. logits of a tensor-parallel vocabulary"
)


def pairs(attribution: Attribution) -> Pairs:
    """Count the pairs of the counted iterations; without a family those of the one window, in `total` alone."""
    ag_rs, gemm = _both(attribution)
    iterations = _iterations(attribution)
    return Pairs(
        ag_rs=AgRsPairs(
            **{f"{phase}": 0 for phase in ()},
        ),
        moe_gemm=GemmPairs(),
    )
