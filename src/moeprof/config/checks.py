"""Traps of a configuration that loads: settings that do nothing, spoil the window, or make two arms one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations

from moeprof.config.flags import find, grouped
from moeprof.config.schema import MARKER_PLUGIN, Arm, Config
from moeprof.findings import Finding, order

_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
_PROFILER = "profiler-config"


def check(config: Config) -> tuple[Finding, ...]:
    """Return what is likely not meant, worst first.

    Args:
        config: A loaded configuration.
    """
    found = list(_equal_arms(config))
    for arm in config.arms.values():
        if arm.server.backend == "vllm":
            for trap in (_all2all, _profiler_config, _stacks, _runner, _prefix_caching, _marker_plugin):
                found += trap(arm)
            found += _sequences(arm, config)
            found += _capture_sizes(arm, config)
            found += _lengths(arm, config)
    return tuple(sorted(found, key=order))


def _equal_arms(config: Config) -> Iterator[Finding]:
    for one, other in combinations(config.arms.values(), 2):
        if _identity(one) == _identity(other):
            yield Finding(
                "arms-identical",
                "warning",
                f"arms {one.name} and {other.name} have the same command and environment: comparing them shows noise",
                evidence={"arms": [one.name, other.name]},
            )


def _identity(arm: Arm) -> object:
    server = (arm.server.backend, arm.server.command, arm.server.model)
    return server, sorted((flag.name, flag.values) for flag in grouped(arm.flags)), sorted(arm.env.items()), arm.markers


def _all2all(arm: Arm) -> Iterator[Finding]:
    flag = find(arm.flags, "all2all-backend")
    size = _number(arm, "data-parallel-size", 1)
    if flag is None or (size > 1 and _is_on(arm, "enable-expert-parallel", default=False)):
        return
    reason = "expert parallelism is off" if size > 1 else "data parallel size is 1"
    yield Finding(
        "all-to-all-without-effect",
        "warning",
        f"--all2all-backend of arm {arm.name} has no effect: {reason}",
        evidence={"arm": arm.name, "all2all_backend": " ".join(flag.values), "data_parallel_size": size},
    )


def _profiler_config(arm: Arm) -> Iterator[Finding]:
    dotted = [flag.name for flag in grouped(arm.flags) if flag.name.startswith(f"{_PROFILER}.")]
    if dotted:
        yield Finding(
            "profiler-config-twice",
            "warning",
            f"--{dotted[0]} of arm {arm.name} replaces the JSON of --profiler-config that opens the window: "
            "the server will have no profiler",
            evidence={"arm": arm.name, "flags": [f"--{name}" for name in dotted]},
        )


def _stacks(arm: Arm) -> Iterator[Finding]:
    key = "torch_profiler_with_stack"
    flag = find(arm.flags, _PROFILER)
    dotted = find(arm.flags, f"{_PROFILER}.{key.replace('_', '-')}")
    stated = _json(flag.values).get(key, True) if flag else False  # vLLM's own default is true
    if dotted is not None:
        stated = dotted.values[:1] not in (("false",), ("False",), ("0",))
    if stated is True:
        yield Finding(
            "stacks-recorded",
            "warning",
            f"the profiler of arm {arm.name} records stacks: traces grow, steps slow down, and text may not be UTF-8",
            evidence={"arm": arm.name},
        )


def _runner(arm: Arm) -> Iterator[Finding]:
    if _RUNNER not in arm.env:
        yield Finding(
            "runner-unset",
            "warning",
            f"arm {arm.name} does not set {_RUNNER}: which model runner is used depends on model and release, "
            "and the two launch different kernels",
            evidence={"arm": arm.name},
        )


def _prefix_caching(arm: Arm) -> Iterator[Finding]:
    if _is_on(arm, "enable-prefix-caching", default=True):
        yield Finding(
            "prefix-caching-on",
            "warning",
            f"arm {arm.name} caches prefixes: later passes would not compute the prompts again "
            "(--no-enable-prefix-caching turns it off)",
            evidence={"arm": arm.name},
        )


def _marker_plugin(arm: Arm) -> Iterator[Finding]:
    listed = arm.env.get("VLLM_PLUGINS")
    if listed is None or not arm.markers:
        return
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if MARKER_PLUGIN not in names:
        yield Finding(
            "marker-plugin-left-out",
            "note",
            f"VLLM_PLUGINS of arm {arm.name} lists no {MARKER_PLUGIN}: a capture adds it, "
            "but a server that is started without moeprof has no markers",
            evidence={"arm": arm.name, "plugins": [*names]},
        )


def _sequences(arm: Arm, config: Config) -> Iterator[Finding]:
    flag = find(arm.flags, "max-num-seqs")
    largest = max(_concurrencies(config), default=0)
    if flag is None or not largest:
        return
    allowed, needed = _number(arm, "max-num-seqs", largest), _per_rank(arm, largest)
    if allowed < needed:
        yield Finding(
            "too-few-sequences",
            "warning",
            f"--max-num-seqs {allowed} of arm {arm.name} is below the {needed} requests a rank of concurrency {largest}: "
            "the rest would wait",
            evidence={"arm": arm.name, "max_num_seqs": allowed, "per_rank": needed, "concurrency": largest},
        )


def _capture_sizes(arm: Arm, config: Config) -> Iterator[Finding]:
    flag = find(arm.flags, "cudagraph-capture-sizes")
    if flag is None or _is_on(arm, "enforce-eager", default=False):
        return
    sizes = sorted({int(word) for value in flag.values for word in value.split(",") if word.strip().isdigit()})
    tokens = 1 + _drafts(arm)
    needed = sorted({_per_rank(arm, concurrency) * tokens for concurrency in _concurrencies(config)})
    missing = [size for size in needed if size not in sizes]
    if missing:
        shown = ", ".join(map(str, missing))
        yield Finding(
            "capture-size-missing",
            "warning",
            f"--cudagraph-capture-sizes of arm {arm.name} lacks {shown}: requests a rank times {tokens} tokens a step; "
            "such batches are padded, or run without a graph",
            evidence={"arm": arm.name, "missing": [*missing], "tokens_per_request": tokens},
        )


def _lengths(arm: Arm, config: Config) -> Iterator[Finding]:
    flag = find(arm.flags, "max-model-len")
    allowed = _number(arm, "max-model-len", 0)
    if flag is None or not allowed:  # "8k" and "auto" are vLLM's to understand
        return
    window = config.window
    for workload in config.workloads.values():
        for what, needed in (
            (f"workload {workload.name}", workload.input_len + workload.output_len),
            (f"the window of workload {workload.name}", (window.input_len or workload.input_len) + window.output_len),
        ):
            if needed > allowed:
                yield Finding(
                    "requests-too-long",
                    "warning",
                    f"{what} sends requests of {needed} tokens, and --max-model-len of arm {arm.name} allows {allowed}",
                    evidence={"arm": arm.name, "workload": workload.name, "tokens": needed, "max_model_len": allowed},
                )


def _concurrencies(config: Config) -> set[int]:
    found = {concurrency for workload in config.workloads.values() for concurrency in workload.concurrency}
    return found | ({config.window.concurrency} if config.window.concurrency else set())


def _per_rank(arm: Arm, concurrency: int) -> int:
    return -(-concurrency // max(1, _number(arm, "data-parallel-size", 1)))


def _drafts(arm: Arm) -> int:
    flag = find(arm.flags, "speculative-config")
    drafts = _json(flag.values).get("num_speculative_tokens", 0) if flag else 0
    return drafts if isinstance(drafts, int) else 0


def _number(arm: Arm, name: str, default: int) -> int:
    flag = find(arm.flags, name)
    value = flag.values[0] if flag and flag.values else ""
    return int(value) if value.isdigit() else default


def _is_on(arm: Arm, name: str, *, default: bool) -> bool:
    flag = find(arm.flags, name)
    return default if flag is None else not flag.name.startswith("no-")


def _json(values: tuple[str, ...]) -> dict[str, object]:
    try:
        found = json.loads(values[0]) if values else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
