"""The two tables that attribution makes and every later analyzer reads: iterations and attributed launches."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from moeprof.findings import Finding
from moeprof.traces.schema import ACTIVITIES, Schema

CLASSES = (
    "moe_gemm", "moe_fused", "moe_route", "moe_act", "moe_combine", "dense_gemm", "attention", "kv_cache", "norm",
    "quant", "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "send_recv",
    "comm_other", "sampling", "elementwise", "copy", "memcpy", "memset", "other",
)  # fmt: skip
COMMUNICATION = (
    "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "send_recv", "comm_other",
)  # fmt: skip
PHASES = ("target", "draft", "sample")
KINDS = ("decode", "prefill", "mixed", "idle")

#: The ends of a MoE layer's dispatch and combine (each with what stands for it where token counts differ), and its experts.
GATHERS = ("all_gather", "broadcast")
SCATTERS = ("reduce_scatter", "reduce")
EXPERTS = ("moe_gemm", "moe_fused", "moe_route", "moe_combine")

CLASS = pl.Enum(CLASSES)
PHASE = pl.Enum(PHASES)
KIND = pl.Enum(KINDS)
#: What a launch is of: an activity of a device, or an operator.
ACTIVITY = pl.Enum((*ACTIVITIES, "operator"))
#: Activities whose time is kernel time: a whole graph stands for its kernels where nothing finer was recorded.
KERNEL_TIME = ("kernel", "graph")

#: One row per iteration of a rank, in order of start.
ITERATIONS: Schema = {
    "iteration": pl.Int32,  # 0, 1, 2 ...
    "label": pl.String,
    "kind": KIND,  # null for families without kinds
    "start_ns": pl.Int64,
    "marker_end_ns": pl.Int64,  # null: the marker was never closed
    "next_start_ns": pl.Int64,  # null for the last one, which has no successor
    "track": pl.UInt32,
    "partial": pl.Boolean,
    "partial_reason": pl.String,  # null when complete
    "transient": pl.Boolean,  # start transient: stays in counts, leaves the time medians
    "counted": pl.Boolean,  # complete and of the kind that counts are taken over
}

#: One row per launch: a kernel, memcpy or memset on a device; on a CPU-only trace an outermost classified operator.
#: Sorted by start_ns, then event. Times are device times (host times on a CPU-only trace).
ATTRIBUTED: Schema = {
    "event": pl.UInt32,
    "name": pl.String,
    "class": CLASS,
    "backend": pl.String,  # library or backend that the rule names; null where it names none
    "gemms": pl.Int32,  # expert GEMMs in one launch of class moe_gemm: 1, or 2 for an operator that does both; else 0
    "activity": ACTIVITY,
    "device": pl.Int64,  # null for operators
    "stream": pl.Int64,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "launch": pl.UInt32,  # key into the rank's launches; null for orphans and operators
    "launch_start_ns": pl.Int64,  # start of the launch call; the operator's own start; null for orphans
    "iteration": pl.Int32,  # null: outside every iteration
    "phase": PHASE,  # null where iteration is null and a family is in use; "target" throughout when there is no family
}


@dataclass(frozen=True, slots=True)
class Attribution:
    """The iterations of a rank and its launches with their class, iteration and phase.

    Attributes:
        rank: Key of the rank.
        family: Marker family in use, or None when the trace has none: it is one window then.
        cpu_only: True when operators stand for launches.
        counts_over: Kind that counts are taken over; "all" for families without kinds; None without iterations.
        iterations: `ITERATIONS`.
        launches: `ATTRIBUTED`.
        findings: What attribution found.
    """

    rank: str | None
    family: str | None
    cpu_only: bool
    counts_over: str | None
    iterations: pl.DataFrame
    launches: pl.DataFrame
    findings: tuple[Finding, ...] = ()

    @property
    def graph_level(self) -> bool:
        """Tell whether whole graphs were recorded: how many kernels they launched is not known then."""
        return bool((self.launches["activity"] == "graph").any())

    @property
    def counted(self) -> pl.DataFrame:
        """Return the launches that counts are taken over: those of counted iterations, or all without a family."""
        if self.family is None:
            return self.launches
        kept = self.iterations.filter("counted").select("iteration")
        return self.launches.join(kept, on="iteration", how="semi", maintain_order="left")
