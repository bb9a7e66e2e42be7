"""Where a worker's calls are wrapped. Only objects of this one worker change, never a class of vLLM.

An engine step is two calls, ``execute_model`` and ``sample_tokens``: the iteration is opened in the first and closed at the end
of the second. Drafts run inside sampling. An idle data-parallel rank makes a third call instead, ``execute_dummy_batch``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .ranges import Ranges, of_this_process

Call = Callable[..., Any]
FORWARDS_V2 = ("_prefill", "_generate_draft")
SET_CONTEXT = "set_forward_context"


class Unsupported(Exception):  # noqa: N818 - the reason why nothing is marked, not an error of the program
    """The worker does not look like one that can be marked; nothing of it was touched."""


class Step:
    """The engine step of this process: its number, and the draft that runs.

    Attributes:
        number: Engine steps so far, dummy batches and unrecorded ones too: ranks that step together agree on it.
        draft: Number of the draft whose range is open, or None.
    """

    __slots__ = ("draft", "forwards", "number", "ranges")

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.number = -1
        self.draft: int | None = None
        self.forwards = 0

    def begin(self, suffix: str = "") -> None:
        """Open the iteration, if someone records and it is not open yet."""
        if not self.ranges.open and self.ranges.recording():
            self.ranges.push(f"moeprof.iter#{self.number}{suffix}")

    def next(self) -> None:
        """Close what the step before left open (its sampling was never asked for) and count."""
        self.number += 1
        if self.ranges.open:
            self.ranges.close()

    def forward(self) -> None:
        """Note that a model runs its forward: within drafting, each after the first begins another draft."""
        if self.draft is None:
            return
        if self.forwards:
            self.draft += 1
            self.ranges.close(len(self.ranges.open) - 1)
            self.ranges.push(f"moeprof.draft#{self.draft}")
        self.forwards += 1


@functools.cache
def this_process() -> Step:
    """Return the step of this process: module functions are wrapped once, however many workers come."""
    return Step(of_this_process())


def attach(worker: Any, step: Step) -> list[str]:
    """Wrap the calls of a worker and return what is marked, for the log.

    Raises:
        Unsupported: A call that every step needs is not there.
    """
    runner = getattr(worker, "model_runner", None)
    for owner, name, calls in (
        (worker, "Worker", ("execute_model", "sample_tokens")),
        (runner, "runner", ("execute_model",)),
    ):
        missing = [call for call in calls if not callable(getattr(owner, call, None))]
        if owner is None or missing:
            raise Unsupported(f"{type(worker).__module__}.{type(worker).__qualname__}: its {name} has no {missing[0]}")
    _replace(
        worker, "execute_model", functools.partial(_execute_model, step, annotated=hasattr(worker, "annotate_profile"))
    )
    _replace(worker, "annotate_profile", functools.partial(_annotate, step))
    _replace(worker, "sample_tokens", functools.partial(_sample, step))
    _replace(worker, "execute_dummy_batch", functools.partial(_dummy, step))
    _replace(runner, "execute_model", functools.partial(_inside, step, "moeprof.target"))
    parts = [_runner_name(worker, runner), "target", "sample"]
    speculator, drafter = getattr(runner, "speculator", None), getattr(runner, "drafter", None)
    if speculator is not None:
        parts.append(_attach_v2(step, speculator))
    elif drafter is not None:
        parts.append(_attach_v1(step, runner, drafter))
    return parts


def _attach_v1(step: Step, runner: Any, drafter: Any) -> str:
    region = functools.partial(_drafting, step)
    found = [
        _replace(owner, name, region)
        for owner, name in ((runner, "propose_draft_token_ids"), (drafter, "propose"), (drafter, "dummy_run"))
    ]
    if not any(found):
        return f"no drafts: {type(drafter).__qualname__} has no propose"
    modules = {sys.modules.get(base.__module__) for base in type(drafter).__mro__ if "propose" in vars(base)}
    contexts = [
        _replace(module, SET_CONTEXT, functools.partial(_forward, step)) for module in modules if module is not None
    ]
    return "drafts" if any(contexts) else f"drafts as one range: {type(drafter).__qualname__} calls no {SET_CONTEXT}"


def _attach_v2(step: Step, speculator: Any) -> str:
    if not _replace(speculator, "propose", functools.partial(_drafting_v2, step, speculator)):
        return f"no drafts: {type(speculator).__qualname__} has no propose"
    forwards = [_replace(speculator, name, functools.partial(_forward, step)) for name in FORWARDS_V2]
    return (
        "drafts" if any(forwards) else f"drafts as one range: {type(speculator).__qualname__} has no {FORWARDS_V2[0]}"
    )


def _replace(owner: Any, name: str, wrap: Callable[[Call], Call]) -> bool:
    """Put a wrapper over a call of an object; return whether the call is marked now."""
    original = getattr(owner, name, None)
    if not callable(original):
        return False
    if getattr(original, "_moeprof", False):
        return True
    wrapper = functools.wraps(original)(wrap(original))
    wrapper._moeprof = True  # type: ignore[attr-defined]
    try:
        setattr(owner, name, wrapper)
    except (AttributeError, TypeError):  # slots
        return False
    return True


def _runner_name(worker: Any, runner: Any) -> str:
    second = getattr(worker, "use_v2_model_runner", None)
    if second is None:
        second = ".worker.gpu." in type(runner).__module__
    return f"V{2 if second else 1} runner"


# Each maker returns the wrapper of one call. `ranges.open` is empty unless an iteration is being recorded, so that a wrapper's
# cost is one test; graphs are captured outside of engine steps, where it is empty too.


def _execute_model(step: Step, original: Call, *, annotated: bool) -> Call:
    ranges = step.ranges

    def execute_model(*args: Any, **kwargs: Any) -> Any:
        step.next()
        if not annotated:
            step.begin()
        try:
            output = original(*args, **kwargs)
        except BaseException:
            ranges.close()
            raise
        if output is not None and ranges.open:  # vLLM asks for sampling only after None
            ranges.close()
        return output

    return execute_model


def _annotate(step: Step, original: Call) -> Call:
    """Open the iteration between the profiler's own step, which may start or stop it, and vLLM's annotation."""

    def annotate_profile(*args: Any, **kwargs: Any) -> Any:
        annotation = original(*args, **kwargs)
        step.begin()
        return annotation

    return annotate_profile


def _sample(step: Step, original: Call) -> Call:
    ranges = step.ranges

    def sample_tokens(*args: Any, **kwargs: Any) -> Any:
        if not ranges.open:
            return original(*args, **kwargs)
        ranges.push("moeprof.sample")
        try:
            return original(*args, **kwargs)
        finally:
            ranges.close()

    return sample_tokens


def _dummy(step: Step, original: Call) -> Call:
    ranges = step.ranges

    def execute_dummy_batch(*args: Any, **kwargs: Any) -> Any:
        step.next()
        step.begin("[idle]")
        if not ranges.open:
            return original(*args, **kwargs)
        ranges.push("moeprof.target")
        try:
            return original(*args, **kwargs)
        finally:
            ranges.close()

    return execute_dummy_batch


def _inside(step: Step, name: str, original: Call) -> Call:
    ranges = step.ranges

    def call(*args: Any, **kwargs: Any) -> Any:
        depth = len(ranges.open)
        if not depth:
            return original(*args, **kwargs)
        ranges.push(name)
        try:
            return original(*args, **kwargs)
        finally:
            ranges.close(depth)

    return call


def _drafting(step: Step, original: Call) -> Call:
    """All that drafts: the first range begins with it, the next ones at each further forward, the last ends with it."""
    ranges = step.ranges

    def call(*args: Any, **kwargs: Any) -> Any:
        depth = len(ranges.open)
        if not depth or step.draft is not None:
            return original(*args, **kwargs)
        step.draft, step.forwards = 0, 0
        ranges.push("moeprof.draft#0")
        try:
            return original(*args, **kwargs)
        finally:
            step.draft = None
            ranges.close(depth)

    return call


def _drafting_v2(step: Step, speculator: Any, original: Call) -> Call:
    """As `_drafting`; graph managers are made after the worker was set up, so they are looked up when first needed."""
    call = _drafting(step, original)

    def propose(*args: Any, **kwargs: Any) -> Any:
        if step.ranges.open:
            for name, value in list(vars(speculator).items()):
                if name.endswith("cudagraph_manager"):
                    _replace(value, "run_fullgraph", functools.partial(_forward, step))
        return call(*args, **kwargs)

    return propose


def _forward(step: Step, original: Call) -> Call:
    def call(*args: Any, **kwargs: Any) -> Any:
        if step.draft is not None:
            step.forward()
        return original(*args, **kwargs)

    return call
