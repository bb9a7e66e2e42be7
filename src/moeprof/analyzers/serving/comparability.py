"""Whether two sets of passes measured the same thing: client, number of requests, token totals."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.serving.results import ServingSample, Workload
from moeprof.findings import Finding
from moeprof.wording import listed

_EQUAL = (
    ("workload", "name"),
    ("client", "client"),
    ("number of requests", "prompts"),
    ("concurrency", "concurrency"),
    ("request rate", "rate"),
)
_TOTALS = (("input tokens", "input_tokens"), ("output tokens", "output_tokens"))


def obstacle(base: Sequence[ServingSample], candidate: Sequence[ServingSample]) -> str | None:
    """Return why the passes are not comparable, in a clause; None where nothing is against it. What is not told is no obstacle."""
    for name, attribute in _EQUAL:
        before, after = _known(base, attribute), _known(candidate, attribute)
        for side, values in (("base", before), ("candidate", after)):
            if len(values) > 1:
                return f"{name} differs among the {side} passes: {_texts(values)}"
        if before and after and before != after:
            return f"{name} differs: {_texts(before)} against {_texts(after)}"
    for name, attribute in _TOTALS:
        totals, others = _totals(base, attribute), _totals(candidate, attribute)
        if totals and others and not (totals[0] <= others[-1] and others[0] <= totals[-1]):
            return f"total of {name} differs: {listed(totals)} against {listed(others)}"
    return None


def varying_totals(samples: Sequence[ServingSample], side: str, point: str) -> list[Finding]:
    """Return a note for each token total that is not the same in all passes of a side: then throughputs are not one measurement."""
    found = []
    for name, attribute in _TOTALS:
        totals = _totals(samples, attribute)
        if len(totals) > 1:
            message = f"the total of {name} of {point} varies between passes, from {totals[0]} to {totals[-1]}"
            found.append(
                Finding("tokens-vary", "note", message, evidence={"side": side, "workload": point, "totals": [*totals]})
            )
    return found


def exact_totals(samples: Sequence[ServingSample]) -> bool:
    """Tell whether all passes sent and got the same number of tokens and requests."""
    shapes = {
        (item.workload.prompts, item.workload.input_tokens, item.workload.output_tokens, item.completed)
        for item in samples
    }
    return len(shapes) == 1 and None not in next(iter(shapes))


def _known(samples: Sequence[ServingSample], attribute: str) -> set[int | float | str]:
    values = {_value(sample.workload, attribute) for sample in samples}
    return {value for value in values if value is not None}


def _totals(samples: Sequence[ServingSample], attribute: str) -> list[int]:
    return sorted(value for value in _known(samples, attribute) if isinstance(value, int))


def _value(workload: Workload, attribute: str) -> int | float | str | None:
    value: int | float | str | None = getattr(workload, attribute)
    return value


def _texts(values: set[int | float | str]) -> str:
    return listed(sorted(str(value) for value in values))
