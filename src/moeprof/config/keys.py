"""Which keys each table takes, and what each takes as its value. docs/configuration.md explains them; a test compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moeprof.config.values import (
    Check,
    between,
    choice,
    expression,
    fraction,
    positive,
    several,
    slug,
    text,
    truth,
    url_path,
    whole,
    words,
)

Keys = Mapping[str, Check[object]]

#: Classes of launches that an arm may have to prove; those of the analysis, which a capture does not import.
CLASSES: Final = (
    "moe_gemm", "moe_fused", "moe_route", "moe_act", "moe_combine", "dense_gemm", "attention", "kv_cache", "norm", "quant",
    "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "send_recv", "comm_other", "sampling",
    "elementwise", "copy", "memcpy", "memset", "other",
)  # fmt: skip
PHASES: Final = ("target", "draft", "sample")

#: What ``--fail-on`` may name, and what a design of blocks may earn; those of the analysis.
FAIL_ON: Final = ("regression", "structure", "missing", "gate", "inconclusive")
LABELS: Final = ("A/B/A complete", "A/B/A, drifted", "A/B only")
PAIRS: Final = {
    "ag_rs": ("per_iteration", "target", "draft", "sample", "unmatched_ag", "unmatched_rs", "equivalents"),
    "moe_gemm": ("per_iteration", "target", "draft", "sample", "unmatched"),
}

TOP: Final = (
    "server",
    "arms",
    "workloads",
    "passes",
    "window",
    "profiler",
    "gates",
    "sampler",
    "compare",
    "store",
    "gate",
)

SERVER: Final[Keys] = {
    "backend": choice("vllm", "command"),
    "command": words,
    "model": text,
    "served_name": text,
    "host": text,
    "allow_remote": truth,
    "port": whole(0, 65535),
    "health": url_path,
    "ready_s": positive,
    "stop_s": positive,
    "stall_s": positive,
}
WORKLOAD: Final[Keys] = {
    "kind": choice("decode", "prefill"),
    "input_len": whole(1),
    "output_len": whole(1),
    "concurrency": several(whole(1), least=1, distinct=True),
    "prompts_per_concurrency": whole(1),
    "rate": several(positive, least=1, distinct=True),
    "num_prompts": whole(1),
    "seed": whole(0),
    "vocabulary": whole(1),
    "temperature": between(0, 2),
    "ignore_eos": truth,
}
PASSES: Final[Keys] = {
    "timed": whole(0),
    "warmup": whole(0),
    "client": choice("auto", "vllm", "vllm-rs", "builtin"),
    "timeout_s": positive,
}
WINDOW: Final[Keys] = {
    "iterations": whole(1),
    "seconds": positive,
    "concurrency": whole(1),
    "input_len": whole(1),
    "output_len": whole(1),
    "start_s": positive,
    "stop_s": positive,
    "traces_s": positive,
    "min_bytes": whole(0),
}
PROFILER: Final[Keys] = {
    "tool": choice("torch", "nsys"),
    "cuda_graphs": choice("node", "graph"),
    "nsys": text,
    "keep_report": truth,
}
GATES: Final[Keys] = {
    "required": several(slug, distinct=True),
    "clock_tolerance": between(0, 1),
    "allow_cotenants": truth,
}
SAMPLER: Final[Keys] = {"period_s": positive, "enabled": truth}
COMPARE: Final[Keys] = {"accuracy_margin": fraction, "allow_environment": several(text, distinct=True)}
STORE: Final[Keys] = {"path": text}

#: Rules of ``moeprof gate``; `gate` reads the tables below it itself.
GATE: Final[Keys] = {
    "baseline": text,
    "fail_on": several(choice(*FAIL_ON, "none"), least=1, distinct=True),
    "min_label": choice(*LABELS),
    "accuracy_margin": fraction,
    "forbid": several(slug, distinct=True),
    "allow_environment": several(text, distinct=True),
}
GATE_METRIC: Final = ("unit", "better", "gates", "threshold", "abs", "label", "required")

#: The keys of an arm and of what it must prove; both can undo what they inherit, so `arms` reads them itself.
ARM: Final = ("extends", "flags", "env", "expect", "server", "markers")
EXPECT: Final[Keys] = {
    "moe_backend": text,
    "all2all": text,
    "model_runner": choice("V1", "V2"),
    "log": several(expression),
}
KERNELS: Final = "kernels"
