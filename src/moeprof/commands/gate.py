"""``moeprof gate``: hold a run against its baseline, rule by rule."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Unpack

import click

from moeprof.commands import fail_on, gating
from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.options import CHECK_FORMATS, FORMATS, Shared, SharedValues, shared, shared_params
from moeprof.commands.output import emit, protect
from moeprof.commands.streams import Streams
from moeprof.errors import NothingToCompareError, UsageError
from moeprof.reports.outcome import Outcome

if TYPE_CHECKING:
    from moeprof.analyzers.gates.observation import Observation
    from moeprof.analyzers.gates.results import GateResult
    from moeprof.analyzers.gates.rules import GateRules
    from moeprof.config.gate import GateSettings
    from moeprof.reports.checks import Anchor

_HELP = """Hold a run against its accepted baseline: structure, serving metrics, accuracy, findings. For CI.

ARM_OR_PATH is an arm of the store, a trace, a folder with one trace per rank, or outputs of a load client; without it the arm of the
baseline. Each rule ends as pass, fail, missing, inconclusive or skipped; rules come from [gate] of moeprof.toml and have defaults.
"""
_FORMATS = (*FORMATS, *CHECK_FORMATS)
_DEFAULT = ("regression", "structure", "missing", "gate")


def _run(
    subject: str | None,
    baseline: str | None,
    against: str | None,
    arm: str | None,
    config: Path | None,
    fail_on_: str | None,
    self_test: bool,
    allow_environment: tuple[str, ...],
    accuracy_margin: float | None,
    metrics: str | None,
    **values: Unpack[SharedValues],
) -> int:
    options = shared(_FORMATS, **values)
    if baseline is not None and against is not None:
        raise UsageError(
            "--baseline and --against exclude each other", hint="a file, or an arm measured beside the run"
        )
    if accuracy_margin is not None and not 0 < accuracy_margin < 1:
        raise UsageError(
            f"an accuracy margin of {accuracy_margin:g} makes no sense", hint="0.02 allows a drop of 2 points"
        )
    settings = gating.settings_of(config)
    words = fail_on.parse(fail_on_) if fail_on_ is not None else settings.fail_on
    words = _DEFAULT if words is None else words
    allowed = tuple(key for part in allow_environment for key in (word.strip() for word in part.split(",")) if key)
    rules = gating.rules_of(settings, metrics=metrics, allowed=allowed, margin=accuracy_margin)
    if self_test:
        return _self_test(subject, baseline, arm, settings, rules, words, options)
    protect(options, [name for name in (subject, baseline, against) if name is not None])
    result, anchor = _result(subject, baseline, against, arm, settings, rules, options)
    return _emitted(result, anchor, words, options)


def _result(
    subject: str | None,
    baseline: str | None,
    against: str | None,
    arm: str | None,
    settings: GateSettings,
    rules: GateRules,
    options: Shared,
) -> tuple[GateResult, Anchor | None]:
    """Return the gate, and what annotations may point to."""
    from moeprof.analyzers.gates.evaluate import evaluate
    from moeprof.baselines.arms import observation_of
    from moeprof.baselines.document import read

    if against is not None:
        if subject is None:
            raise UsageError("--against needs the run that is gated", hint="moeprof gate mega --against base")
        if os.path.realpath(subject) == os.path.realpath(against):
            raise UsageError(
                f"{subject} is held against itself: that passes whatever it holds", hint="name another arm or path"
            )
        base, _ = gating.observed(against, options.reading)
        found, _ = gating.observed(subject, options.reading)
        return evaluate(base, found, rules, stored=False), None
    document = read(gating.baseline_path(baseline, settings))
    if subject is None:
        name, value = gating.entry_of(document, arm, None)
        base = observation_of(name, value, document.path)
        found, _ = gating.observed(name, options.reading)
    else:
        found, _ = gating.observed(subject, options.reading)
        name, value = gating.entry_of(document, arm, gating.name_of(found, None))
        base = observation_of(name, value, document.path)
    result = evaluate(replace(base, source=document.path), found, rules)
    accepted = value.get("accepted")
    return replace(result, accepted=accepted if isinstance(accepted, dict) else None), _anchor(
        result, document.path, name
    )


def _anchor(result: GateResult, path: str, arm: str) -> Anchor | None:
    """Return the line of each rule in the baseline; None for a file outside the working directory, which is no part of a checkout."""
    from moeprof.baselines.document import line_of
    from moeprof.reports.checks import Anchor

    place = PurePath(path)
    if place.is_absolute() or ".." in place.parts:
        return None
    text = Path(path).read_text(encoding="utf-8")
    lines = {row.rule: line_of(text, "arms", arm, *_keys(row.rule)) for row in result.rules}
    return Anchor(place.as_posix(), lines)


def _keys(rule: str) -> tuple[str, ...]:
    """Return the keys of a baseline's arm under which a rule's figures stand."""
    kind, _, rest = rule.partition("/")
    if kind == "metric":
        point, _, metric = rest.rpartition("/")
        return "serving", point, "metrics", metric
    place = {"structure": "launches", "pairs": "pairs", "backend": "backends"}.get(kind)
    if place is None:
        return ("evaluations",) if kind == "accuracy" else ()
    return ("structure", "ranks") if rest == "ranks" else ("structure", place, rest)


def _emitted(result: GateResult, anchor: Anchor | None, words: tuple[str, ...], options: Shared) -> int:
    from moeprof.reports.render import render_gate

    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    outcome = _outcome(result, words)
    emit(options, streams, lambda fmt, look: render_gate(result, fmt, look, outcome, words, anchor))
    if outcome.exit_code == NothingToCompareError.exit_code:
        raise NothingToCompareError(_why(result), path=result.subject.source, hint=_cure(result))
    return outcome.exit_code


def _outcome(result: GateResult, words: tuple[str, ...]) -> Outcome:
    if result.refusal is not None or not result.compared:
        return Outcome(2, "because nothing could be compared")
    failing = [word for word in result.happened() if word in words]
    if failing:
        return Outcome(1, f"because --fail-on {','.join(word for word in fail_on.WORDS if word in failing)}")
    return Outcome(0, f"because nothing of --fail-on {','.join(words)} happened" if words else "because --fail-on none")


def _why(result: GateResult) -> str:
    if result.refusal is not None:
        return f"not comparable: {result.refusal}"
    told = [row.message for row in result.rules if row.verdict == "missing" or row.kind in ("structure", "metric")]
    return "; ".join(["nothing was compared", *dict.fromkeys(told)][:4])


def _cure(result: GateResult) -> str:
    if result.refusal is not None:
        keys = sorted({row.key for row in result.environment if row.matters and not row.allowed})
        return f"accept a baseline of this ground, or compare all the same with --allow-environment {','.join(keys)}"
    return "the baseline and the run hold nothing of the same kind: moeprof baseline show says what it has"


def _self_test(
    subject: str | None,
    baseline: str | None,
    arm: str | None,
    settings: GateSettings,
    rules: GateRules,
    words: tuple[str, ...],
    options: Shared,
) -> int:
    from moeprof.analyzers.gates.self_test import self_test
    from moeprof.reports.render import render_self_test

    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    good = _good(subject, baseline, arm, settings, options)
    if good.structure is None and good.samples is None and not good.evaluations:
        raise NothingToCompareError(
            "there is nothing to test: no counts per iteration, passes or evaluations", path=good.source
        )
    result = self_test(good, rules, words)
    code = 1 if result.missed else 0
    emit(options, streams, lambda fmt, look: render_self_test(result, fmt, look, code))
    return code


def _good(
    subject: str | None, baseline: str | None, arm: str | None, settings: GateSettings, options: Shared
) -> Observation:
    """Return what is broken on purpose: the baseline, or the run where one is named and no baseline is."""
    from moeprof.baselines.arms import observation_of
    from moeprof.baselines.document import read

    if subject is not None and baseline is None:
        return gating.observed(subject, options.reading)[0]
    document = read(gating.baseline_path(baseline, settings))
    guess = None if subject is None else gating.name_of(gating.observed(subject, options.reading)[0], None)
    name, value = gating.entry_of(document, arm, guess)
    return replace(observation_of(name, value, document.path), source=document.path)


command = GroupedCommand(
    "gate",
    callback=_run,
    help=_HELP,
    params=[
        click.Argument(["subject"], required=False, metavar="[ARM_OR_PATH]"),
        GroupedOption(
            "--baseline",
            metavar="FILE",
            heading="Baseline",
            help="Baseline file (default: the configuration's, else moeprof-baseline.json beside it, else here).",
        ),
        GroupedOption(
            "--against",
            metavar="ARM_OR_PATH",
            heading="Baseline",
            help="Hold the run against an arm measured beside it, and against no file.",
        ),
        GroupedOption("--arm", metavar="NAME", heading="Baseline", help="Arm of the baseline file."),
        GroupedOption(
            "--config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            heading="Baseline",
            help="moeprof.toml with the rules (default: the nearest one; none is needed).",
        ),
        GroupedOption(
            "--fail-on",
            "fail_on_",
            metavar="WORDS",
            heading="Verdict",
            help=f"Exit with 1 when one of these happened, with commas: {', '.join(fail_on.WORDS)}, none"
            f" (default: {','.join(_DEFAULT)}).",
        ),
        GroupedOption(
            "--self-test",
            is_flag=True,
            heading="Verdict",
            help="Break the baseline, or the run, in every way a regression would; exit 1 where that is not seen.",
        ),
        GroupedOption(
            "--accuracy-margin",
            type=float,
            metavar="SHARE",
            heading="Verdict",
            help="Largest drop of accuracy that is acceptable: 0.02 is 2 points.",
        ),
        GroupedOption(
            "--allow-environment",
            multiple=True,
            metavar="KEYS",
            heading="Verdict",
            help="Compare although these keys of the environment differ, with commas.",
        ),
        GroupedOption(
            "--metrics",
            metavar="FILE",
            heading="Reading",
            help="Serving metrics of your own (TOML): unit and direction.",
        ),
        *shared_params(_FORMATS),
    ],
)
command.examples = (
    "moeprof gate samples/h200/base --baseline moeprof-baseline.json",
    "moeprof gate base --format github --output junit=moeprof.xml",
    "moeprof gate --self-test",
)
