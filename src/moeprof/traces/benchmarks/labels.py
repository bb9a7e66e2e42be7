"""Which label of a client's text is which key of its JSON."""

from __future__ import annotations

import re

_LABELS = {
    "successful requests": "completed",
    "failed requests": "failed",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "request throughput (req/s)": "request_throughput",
    "request goodput (req/s)": "request_goodput",
    "input token throughput (tok/s)": "input_throughput",
    "output token throughput (tok/s)": "output_throughput",
    "peak output token throughput (tok/s)": "max_output_tokens_per_s",
    "peak concurrent requests": "max_concurrent_requests",
    "total token throughput (tok/s)": "total_token_throughput",
    "acceptance rate (%)": "spec_decode_acceptance_rate",
    "acceptance length": "spec_decode_acceptance_length",
    "drafts": "spec_decode_num_drafts",
    "draft tokens": "spec_decode_draft_tokens",
    "accepted tokens": "spec_decode_accepted_tokens",
    "rtfx (inverse real-time factor)": "rtfx",
    "request rate configured (rps)": "request_rate",
    "traffic request rate": "request_rate",
    "mean e2e latency (ms)": "mean_e2el_ms",
    "median e2e latency (ms)": "median_e2el_ms",
}
_STATISTIC = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?) (ttft|tpot|itl|e2el) \(ms\)")
_POSITION = re.compile(r"position (\d+)")

#: What a report must hold to be one; an excerpt may lack everything else.
NEEDED = ("completed", "duration")
#: Figures that are whole numbers.
COUNTS = frozenset(
    ("completed", "failed", "num_prompts", "total_input_tokens", "total_output_tokens", "max_concurrency",
     "spec_decode_num_drafts", "spec_decode_draft_tokens", "spec_decode_accepted_tokens")
)  # fmt: skip
_KEYS = frozenset(_LABELS.values()) | COUNTS
_STATISTIC_KEY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el)_ms")


def key_of(label: str) -> str | None:
    """Return the JSON key of a label; None for one that is not known.

    >>> key_of("P99 TTFT (ms)"), key_of("Output token throughput (tok/s)"), key_of("Phase of the moon")
    ('p99_ttft_ms', 'output_throughput', None)
    """
    low = " ".join(label.lower().split())
    if (match := _STATISTIC.fullmatch(low)) is not None:
        return f"{match[1]}_{match[2]}_ms"
    if (match := _POSITION.fullmatch(low)) is not None:
        return f"spec_decode_position_{match[1]}_acceptance_rate"
    return _LABELS.get(low)


def is_key(name: str) -> bool:
    """Tell whether a name is one that clients write themselves: a figure under it is a number, and not below zero.

    >>> is_key("median_ttft_ms"), is_key("output_throughput"), is_key("cache_hit_rate")
    (True, True, False)
    """
    return name in _KEYS or _STATISTIC_KEY.fullmatch(name) is not None
