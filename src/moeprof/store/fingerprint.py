"""Tell whether two blocks may be compared fairly: a digest over what they must share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from moeprof.findings import JsonValue

Object = Mapping[str, JsonValue]

_IDENTITY = ("uuid", "host")  # another specimen of the same machine is fair


def fingerprint(
    *, versions: Object, model: Object, hardware: Object, flags: Sequence[str], workload: Object, passes: Object
) -> str:
    """Return the SHA-256 of the canonical JSON of what must agree between blocks.

    Args:
        versions: Of Python, torch, vLLM, driver.
        model: Of which only the configuration's digest counts: a copy elsewhere is the same model.
        hardware: CPU, memory, GPUs; host name and serial numbers do not count.
        flags: The server's flags but for those that are the arm's own (see `common_flags`).
        workload: Lengths, concurrency or rate, seed.
        passes: Number of timed passes, warm-up, client.

    Raises:
        ValueError: When a figure is NaN or infinite.
    """
    agreed = {
        "versions": dict(versions),
        "model": {"config_sha256": model.get("config_sha256")},
        "hardware": _anonymous(dict(hardware)),
        "flags": list(flags),
        "workload": dict(workload),
        "passes": dict(passes),
    }
    canonical = json.dumps(agreed, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def common_flags(arms: Sequence[Sequence[str]]) -> list[str]:
    """Return the options, with their values, that all arms share, in the first arm's order.

    >>> common_flags([["--seed", "0", "--moe-backend", "humming"], ["--moe-backend", "triton", "--seed", "0"]])
    ['--seed', '0']
    """
    if not arms:
        return []
    first, *others = [_options(flags) for flags in arms]
    return [word for option in first if all(option in other for other in others) for word in option]


def _options(flags: Sequence[str]) -> list[tuple[str, ...]]:
    options: list[tuple[str, ...]] = []
    for word in flags:
        if options and not word.startswith("-"):
            options[-1] = (*options[-1], word)
        else:
            options.append((word,))
    return options


def _anonymous(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _anonymous(item) for name, item in value.items() if name not in _IDENTITY}
    if isinstance(value, list):
        return [_anonymous(item) for item in value]
    return value
