"""Named results from the evidence of a block. Pure functions: what they judge is handed to them.

"No data" is an outcome of its own; it fails a block only where the gate is required.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from moeprof.config.schema import Expect, Gates, Workload
from moeprof.findings import JsonValue
from moeprof.profiler.gpu_samples import SampleSummary
from moeprof.profiler.log_facts import LogFacts

Outcome = Literal["pass", "fail", "no-data"]
_SAME_MANAGER = {"agrsall2allmanager": "allgather_reducescatter"}
_STEP_TOLERANCE = 1
_OF_REQUESTS = ("no-failed-requests", "token-counts", "finite-logprobs", "profile-apart")


class PassLike(Protocol):
    """A timed pass, as the clients give it."""

    @property
    def raw(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def failed(self) -> int: ...  # noqa: D102
    @property
    def problems(self) -> tuple[str, ...]: ...  # noqa: D102


class WindowLike(Protocol):
    """The profile window."""

    @property
    def opened_at(self) -> float: ...  # noqa: D102
    @property
    def closed_at(self) -> float: ...  # noqa: D102
    @property
    def rank_files(self) -> tuple[str, ...]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate: its outcome, whether the block depends on it, and the figures behind it."""

    name: str
    outcome: Outcome
    required: bool
    message: str
    evidence: Mapping[str, JsonValue] = field(default_factory=dict)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object of the manifest."""
        return {
            "name": self.name,
            "outcome": self.outcome,
            "required": self.required,
            "message": self.message,
            "evidence": dict(self.evidence),
        }


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a block leaves to be judged; None: not there.

    Attributes:
        workload, expect: What was asked for; no workload: a program that runs to its end.
        passes: The timed passes.
        pass_times: Start and end of each, in seconds since 1970.
        window: The profile window.
        log: Facts of the server's log; log_matches: whether each pattern of `expect.log` was found.
        iterations: Rank to iterations in its trace (complete and partial).
        ranks: Ranks that must be there.
        markers: Whether the arm is to be marked; marker_family: the family that the trace was cut by.
        kernels, other_kernels: Class, or class/phase, to launches per iteration, of this arm and of the other.
        logprobs: Log probabilities of the probe request; probe_seen: what became of it, as the end of a sentence.
        most_iterations: Iterations after which the profiler stops by itself, while the server and its log go on.
        program: Whether the arm is a program that is sent nothing and writes its traces itself.
        one_recording: Whether one file holds all ranks, recorded within the window that the server's log tells of.
        samples: Summary of the GPU samples.
    """

    workload: Workload | None
    expect: Expect = field(default_factory=Expect)
    passes: Sequence[PassLike] = ()
    pass_times: Sequence[tuple[float, float]] = ()
    window: WindowLike | None = None
    log: LogFacts | None = None
    log_matches: Mapping[str, bool] | None = None
    iterations: Mapping[str, int] | None = None
    ranks: int | None = None
    markers: bool = True
    marker_family: str | None = None
    kernels: Mapping[str, int] | None = None
    other_kernels: Mapping[str, int] | None = None
    logprobs: Sequence[float | None] | None = None
    probe_seen: str | None = None
    most_iterations: int | None = None
    program: bool = False
    one_recording: bool = False
    samples: SampleSummary | None = None


_Verdict = tuple[Outcome, str, dict[str, JsonValue]]


def judge(evidence: Evidence, gates: Gates) -> list[GateResult]:
    """Return the result of every gate, in the order of the documentation."""
    found: dict[str, _Verdict] = {
        "no-failed-requests": no_failed_requests(evidence.passes),
        "token-counts": token_counts(evidence.passes, evidence.workload),
        "finite-logprobs": finite_logprobs(evidence.logprobs, evidence.probe_seen),
        "expected-backend": expected_backend(evidence.expect, evidence.log, evidence.log_matches, evidence.kernels),
        "markers-present": markers_present(evidence.markers, evidence.log, evidence.marker_family),
        "traces-complete": _traces_complete(evidence),
        "profile-apart": profile_apart(evidence.pass_times, evidence.window),
        "steady-clocks": steady_clocks(evidence.samples, gates.clock_tolerance),
        "no-cotenants": no_cotenants(evidence.samples, allowed=gates.allow_cotenants),
        "arms-differ": arms_differ(evidence.kernels, evidence.other_kernels),
    }
    return [
        GateResult(name, outcome, name in gates.required and _asked(name, evidence), message, figures)
        for name, (outcome, message, figures) in found.items()
    ]


def _asked(name: str, evidence: Evidence) -> bool:
    """Whether a gate means anything for this block: what cannot be judged by nature is never required."""
    if name == "expected-backend":
        return _claims_anything(evidence.expect)
    if name == "arms-differ":  # the first block of a plan has nothing to be compared with
        return evidence.other_kernels is not None
    return not (evidence.program and name in _OF_REQUESTS)


def _claims_anything(expect: Expect) -> bool:
    return any((expect.moe_backend, expect.all2all, expect.model_runner, expect.log, expect.kernels))


def outcome(results: Sequence[GateResult]) -> list[GateResult]:
    """Return the required gates that did not pass; a block without any is good."""
    return [result for result in results if result.required and result.outcome != "pass"]


def no_failed_requests(passes: Sequence[PassLike]) -> _Verdict:
    """Judge that every request of every pass was answered."""
    if not passes:
        return "no-data", "there are no timed passes", {}
    failed: list[JsonValue] = [item.failed for item in passes]
    problems: list[JsonValue] = [problem for item in passes for problem in item.problems]
    short = [i for i, p in enumerate(passes) if _number(p.raw, "completed") != _number(p.raw, "num_prompts")]
    figures: dict[str, JsonValue] = {
        "failed": failed,
        "problems": problems,
        "incomplete_passes": list[JsonValue](short),
    }
    if any(item.failed for item in passes) or short:
        return "fail", f"{sum(p.failed for p in passes)} requests failed, {len(short)} passes are incomplete", figures
    return "pass", f"no request failed in {len(passes)} passes", figures


def token_counts(passes: Sequence[PassLike], workload: Workload | None) -> _Verdict:
    """Judge that as many tokens went in and came out as the workload says, exactly."""
    if not passes or workload is None:
        return "no-data", "there are no timed passes", {}
    wrong: list[JsonValue] = []
    for number, item in enumerate(passes):
        prompts = _number(item.raw, "num_prompts")
        counts = [_number(item.raw, name) for name in ("total_input_tokens", "total_output_tokens")]
        if prompts is None or None in counts:
            return "no-data", f"pass {number} does not tell its tokens", {"pass": number}
        wanted = [prompts * workload.input_len, prompts * workload.output_len]
        exact = counts == wanted
        ended_early = counts[0] == wanted[0] and not workload.ignore_eos and (counts[1] or 0) <= wanted[1]
        if not (exact or ended_early):
            wrong.append({"pass": number, "tokens": list[JsonValue](counts), "expected": list[JsonValue](wanted)})
    if wrong:
        return (
            "fail",
            f"{len(wrong)} of {len(passes)} passes have other token counts than the workload",
            {"wrong": wrong},
        )
    return "pass", f"token counts of {len(passes)} passes are exact", {"wrong": []}


def finite_logprobs(logprobs: Sequence[float | None] | None, seen: str | None = None) -> _Verdict:
    """Judge that the probe's log probabilities are finite and none is above 0."""
    if not logprobs:
        return (
            "no-data",
            f"no log probabilities from the probe: the server {seen}" if seen else "no probe request was made",
            {},
        )
    bad = [value for value in logprobs if value is None or not math.isfinite(value) or value > 1e-6]
    figures: dict[str, JsonValue] = {"tokens": len(logprobs), "bad": len(bad)}
    if bad:
        return "fail", f"{len(bad)} of {len(logprobs)} log probabilities are not finite or above 0", figures
    return "pass", f"{len(logprobs)} log probabilities are finite", figures


def expected_backend(
    expect: Expect, log: LogFacts | None, log_matches: Mapping[str, bool] | None, kernels: Mapping[str, int] | None
) -> _Verdict:
    """Judge what the arm claims by the log and, where counts are given, by the kernels: both must agree."""
    claims = {"moe_backend": expect.moe_backend, "all2all": expect.all2all, "model_runner": expect.model_runner}
    wanted = {name: value for name, value in claims.items() if value is not None}
    if not _claims_anything(expect):
        return "no-data", "the arm names nothing to prove", {}
    if (wanted and log is None) or (expect.log and log_matches is None) or (expect.kernels and kernels is None):
        return "no-data", "log or kernel counts are not there", {}
    wrong: list[JsonValue] = []
    silent: list[JsonValue] = []
    for name, value in wanted.items():
        seen: object = getattr(log, name)
        if not isinstance(seen, str):
            silent.append(name)
        elif _same(seen) != _same(value):
            wrong.append(f"{name} is {seen}, not {value}")
    wrong += [
        f"no line of the log matches {p}" for p in expect.log if log_matches is not None and not log_matches.get(p)
    ]
    for name, count in expect.kernels.items():
        got = 0 if kernels is None else kernels.get(name, 0)
        if got != count:
            wrong.append(f"{name} has {got} launches per iteration, not {count}")
    figures: dict[str, JsonValue] = {"wrong": wrong, "silent": silent}
    if wrong:
        return "fail", "; ".join(str(item) for item in wrong), figures
    if silent:
        return "no-data", f"the log says nothing of {', '.join(str(item) for item in silent)}", figures
    proofs = [word for word, there in (("log", wanted or expect.log), ("kernels", expect.kernels)) if there]
    return "pass", f"proved by {' and '.join(proofs)}", figures


def markers_present(wanted: bool, log: LogFacts | None, family: str | None) -> _Verdict:
    """Judge that the plugin marked the steps: the trace's word counts most, then the log's."""
    if not wanted:
        return "no-data", "the arm is not to be marked", {}
    figures: dict[str, JsonValue] = {
        "family": family,
        "log": None if log is None or log.markers is None else list(log.markers),
        "reason": None if log is None else log.markers_reason,
    }
    if family is not None:
        right = family == "moeprof"
        return ("pass" if right else "fail"), f"the trace is cut by markers of family {family}", figures
    if log is not None and log.markers_reason is not None:
        return "fail", f"the markers are not active: {log.markers_reason}", figures
    if log is not None and log.markers is not None:
        return "pass", f"the log says that markers are active: {', '.join(log.markers)}", figures
    return "no-data", "neither trace nor log tells of markers", figures


def traces_complete(
    window: WindowLike | None,
    iterations: Mapping[str, int] | None,
    ranks: int | None,
    log: LogFacts | None,
    *,
    most: int | None = None,
    one_recording: bool = False,
) -> _Verdict:
    """Judge that every rank left a trace, with equally many iterations, as many as the log tells of (one more or less).

    The log counts until the window is closed; a profiler that stops by itself after `most` iterations holds no more than those.
    With `one_recording` a single file holds every rank, and begins later and ends earlier than what the log counts.
    """
    if window is None or iterations is None:
        return "no-data", "there is no profile window, or its traces were not read", {}
    expected = ranks if ranks is not None else None if log is None else log.world_size
    logged = {} if log is None or not log.windows else {s.engine: s.iterations for s in log.windows[-1]}
    figures: dict[str, JsonValue] = {
        "rank_files": len(window.rank_files),
        "ranks": expected,
        "iterations": dict(iterations),
        "logged": {str(engine): count for engine, count in logged.items()},
    }
    counts = set(iterations.values())
    there = len(iterations) if one_recording and window.rank_files else len(window.rank_files)
    if not there or len(iterations) != there:
        return "fail", f"{there} rank files, {len(iterations)} of them read", figures
    if expected is not None and there != expected:
        return "fail", f"{there} {'ranks recorded' if one_recording else 'rank files'} of {expected} ranks", figures
    if len(counts) > 1:
        return "fail", f"ranks hold different numbers of iterations: {sorted(counts)}", figures
    count = counts.pop()
    if count == 0:
        return "fail", "the traces hold no iteration", figures
    missing = {engine: min(steps, most or steps) - count for engine, steps in logged.items()}
    far = {
        engine: logged[engine]
        for engine, by in missing.items()
        if by < -_STEP_TOLERANCE or (by > _STEP_TOLERANCE and not one_recording)
    }
    if far:
        return "fail", f"{count} iterations in the traces, {sorted(far.values())} in the server's log", figures
    within = "no more than in the log" if one_recording else "as in the log"
    agreed = within if logged else "the log does not count them"
    return "pass", f"{len(iterations)} ranks with {count} iterations each; {agreed}", figures


def program_traces(iterations: Mapping[str, int] | None) -> _Verdict:
    """Judge the traces of a program, which decides itself what it records: equally many iterations in every rank's."""
    if not iterations:
        return "no-data", "the traces were not read", {}
    figures: dict[str, JsonValue] = {"rank_files": len(iterations), "iterations": dict(iterations)}
    counts = sorted(set(iterations.values()))
    if len(counts) > 1:
        return "fail", f"ranks hold different numbers of iterations: {counts}", figures
    held = f"{counts[0]} iterations each" if counts[0] else "no marked iteration"
    return "pass", f"{len(iterations)} ranks with {held}; the program decides what it records", figures


def _traces_complete(evidence: Evidence) -> _Verdict:
    if evidence.program:
        return program_traces(evidence.iterations)
    return traces_complete(
        evidence.window,
        evidence.iterations,
        evidence.ranks,
        evidence.log,
        most=evidence.most_iterations,
        one_recording=evidence.one_recording,
    )


def profile_apart(pass_times: Sequence[tuple[float, float]], window: WindowLike | None) -> _Verdict:
    """Judge that the profile window opened after the last timed pass had ended."""
    if window is None or not pass_times:
        return "no-data", "there is no profile window or no timed pass", {}
    ended = max(end for _, end in pass_times)
    figures: dict[str, JsonValue] = {"last_pass_ended": ended, "opened_at": window.opened_at}
    if window.opened_at < ended or window.closed_at < window.opened_at:
        return "fail", "the profile window overlaps a timed pass, or its times run backwards", figures
    return "pass", "the profile window opened after all passes", figures


def steady_clocks(samples: SampleSummary | None, tolerance: float) -> _Verdict:
    """Judge that no GPU's SM clock strayed from its median within the timed passes."""
    if samples is None or samples.clock_deviation is None:
        return "no-data", "no GPU samples" if samples is None else samples.reason or "no samples within passes", {}
    figures: dict[str, JsonValue] = {
        "deviation": samples.clock_deviation,
        "tolerance": tolerance,
        "samples": samples.in_passes,
    }
    message = f"SM clocks stray by {samples.clock_deviation:.1%} at most, {tolerance:.1%} allowed"
    return ("pass" if samples.clock_deviation <= tolerance else "fail"), message, figures


def no_cotenants(samples: SampleSummary | None, *, allowed: bool) -> _Verdict:
    """Judge that no process but the server's used the GPUs."""
    if samples is None or samples.cotenants is None:
        return "no-data", "no GPU samples" if samples is None else samples.reason or "processes were not visible", {}
    figures: dict[str, JsonValue] = {"pids": list[JsonValue](samples.cotenants), "allowed": allowed}
    if samples.cotenants and not allowed:
        return "fail", f"other processes used the GPUs: {', '.join(map(str, samples.cotenants))}", figures
    return "pass", "other processes are allowed" if samples.cotenants else "no other process used the GPUs", figures


def arms_differ(kernels: Mapping[str, int] | None, other: Mapping[str, int] | None) -> _Verdict:
    """Judge that two arms do not launch the same kernels: a switch without effect makes a void comparison."""
    if kernels is None or other is None:
        return "no-data", "the other arm's kernels are not known", {}
    here, there = ({name: n for name, n in side.items() if n} for side in (kernels, other))
    names = sorted(name for name in {*here, *there} if here.get(name, 0) != there.get(name, 0))
    figures: dict[str, JsonValue] = {"differ": list[JsonValue](names)}
    if not names:
        return "fail", "both arms launch the same kernels", figures
    return "pass", f"{len(names)} kernel classes differ", figures


def _number(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return (
        int(value) if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None
    )


def _same(name: str) -> str:
    plain = name.lower().replace("-", "_")
    return _SAME_MANAGER.get(plain, plain)
