"""The tables of a timeline: what each instant of a window is spent on, and what bounds it."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.tables import CLASS, KIND, PHASE
from moeprof.traces.schema import Schema

#: States in which the device works; the first that holds names an instant, so nothing is counted twice.
BUSY = ("compute", "communication", "copy")
#: Why the device is idle.
#:   host_late          the launch call of what ends the gap had not begun
#:   host_sync          the same, and the launching thread had to wait for the device in a synchronising call
#:   host_collective    the same, while the host took part in a collective of its own (gloo), that is: waited for other ranks
#:   launch             the call had begun, the kernel had not: launch latency
#:   graph_launch       the same for the first kernel of a graph replay
#:   graph_node         between kernels of one replay
#:   stream_dependency  launched in time, and held back by work of another stream
#:   dispatch           launched in time, behind work of the same stream
#:   unknown            no launch call on record, or nothing follows
IDLE = (
    "host_late", "host_sync", "host_collective", "launch", "graph_launch", "graph_node", "stream_dependency",
    "dispatch", "unknown",
)  # fmt: skip
STATES = (*BUSY, *IDLE)
STATE = pl.Enum(STATES)

#: What bounds an instant: the resource whose work, had it been shorter, would have ended the iteration sooner.
BOUNDS = ("host", "launch", "compute", "communication", "wait", "copy", "device", "unknown")
BOUND = pl.Enum(BOUNDS)

#: A partition of the windows of all iterations that another one follows; one row per piece, in order of time.
PIECES: Schema = {
    "iteration": pl.Int32,  # whose window it lies in
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "state": STATE,
    "class": CLASS,  # of the launch that owns the instant; null while idle
    "phase": PHASE,  # likewise; while idle, of the launch that ends the gap
    "wait_ns": pl.Int64,  # of a communication: how much of it passed before the last rank had come; 0 where unknown
    "bound": BOUND,
}

#: One row per iteration that another one follows, in order.
PER_ITERATION: Schema = {
    "iteration": pl.Int32,
    "kind": KIND,
    "requests": pl.Int64,  # null where no annotation tells
    "tokens": pl.Int64,  # scheduled
    "generated": pl.Int64,  # null with drafts: how many of them were accepted is not in a trace
    "counted": pl.Boolean,
    "transient": pl.Boolean,
    "start_ns": pl.Int64,
    "wall_ns": pl.Int64,
    **{f"{state}_ns": pl.Int64 for state in STATES},  # add up to wall_ns
    "wait_ns": pl.Int64,  # part of communication_ns
    "overlapped_ns": pl.Int64,  # communication under compute, within the window
    **{f"bound_{bound}_ns": pl.Int64 for bound in BOUNDS},  # add up to wall_ns
    "launch_calls": pl.Int64,  # of the iteration, wherever they ran
    "graph_launches": pl.Int64,
    "launch_time_ns": pl.Int64,  # host time inside launch calls
    "sync_calls": pl.Int64,
    "sync_time_ns": pl.Int64,
}

#: Parts of the wall time by iteration, state, class and phase.
PARTS: Schema = {
    "iteration": pl.Int32,
    "state": pl.String,  # a state; "wait" is the part of communication that waits for ranks
    "class": pl.String,
    "phase": pl.String,
    "length_ns": pl.Int64,
}
