"""Speculative decoding over a pass: the difference of the server's counters before and after."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"^vllm:spec_decode_num_(\w+?)(?:_total)?(?:\{(.*)\})?\s+(\S+)\s*$", re.M)
_POSITION = re.compile(r'(?:^|,)\s*position="(\d+)"')


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of speculative decoding, summed over engines.

    Attributes:
        drafts: Times that drafts were made for a request.
        draft_tokens: Drafted tokens.
        accepted_tokens: Those accepted.
        per_position: Those accepted, by position.
    """

    drafts: float
    draft_tokens: float
    accepted_tokens: float
    per_position: dict[int, float] = field(default_factory=dict)


def read(text: str | None) -> Counters | None:
    """Read the Prometheus text of ``/metrics``; None where a counter is absent.

    Args:
        text: What the server answered; None: nothing.
    """
    sums: dict[str, float] = defaultdict(float)
    positions: dict[int, float] = defaultdict(float)
    for name, labels, value in _SAMPLE.findall(text or ""):
        try:
            number = float(value)
        except ValueError:
            continue
        position = _POSITION.search(labels)
        if name == "accepted_tokens_per_pos" and position:
            positions[int(position[1])] += number
        else:
            sums[name] += number
    if not {"drafts", "draft_tokens", "accepted_tokens"} <= sums.keys():
        return None
    return Counters(sums["drafts"], sums["draft_tokens"], sums["accepted_tokens"], dict(positions))


def difference(before: Counters | None, after: Counters | None) -> dict[str, object]:
    """Return vLLM's ``spec_decode_*`` keys of what happened between two readings; empty where nothing was drafted or told.

    The rate is in percent, and per position a share of drafts, as vLLM's client writes them.
    """
    if before is None or after is None:
        return {}
    drafts = after.drafts - before.drafts
    draft_tokens = after.draft_tokens - before.draft_tokens
    accepted = after.accepted_tokens - before.accepted_tokens
    if drafts <= 0 or draft_tokens <= 0 or accepted < 0:
        return {}
    rates = [
        (after.per_position[position] - before.per_position.get(position, 0.0)) / drafts
        for position in sorted(after.per_position)
    ]
    return {
        "spec_decode_acceptance_rate": accepted / draft_tokens * 100,
        "spec_decode_acceptance_length": 1 + accepted / drafts,
        "spec_decode_num_drafts": round(drafts),
        "spec_decode_draft_tokens": round(draft_tokens),
        "spec_decode_accepted_tokens": round(accepted),
        "spec_decode_per_position_acceptance_rates": rates,
    }
