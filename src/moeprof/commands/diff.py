"""``moeprof diff``: what changed between two arms."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from moeprof.analyzers.results import Diff
from moeprof.commands import analysis, fail_on
from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.options import CHECK_FORMATS, FORMATS, SharedValues, shared, shared_params
from moeprof.commands.output import emit, protect
from moeprof.commands.streams import Streams, write
from moeprof.config.load import compare_settings
from moeprof.config.source import nearest_source
from moeprof.errors import NothingToCompareError

_HELP = """Compare two arms: structure, pairs, times and kernels per iteration of their traces, metrics of their timed passes, accuracy.

BASE and CANDIDATE are arms of the store (all runs of the newest series that both have), trace files, folders with one trace per rank,
or outputs of a load client or an evaluator and folders of them. The exit code is 0 whatever changed, unless --fail-on says otherwise.
"""

_FORMATS = (*FORMATS, *CHECK_FORMATS)


def _run(
    base: str,
    candidate: str,
    fail_on_: str,
    metrics: str | None,
    claims: str | None,
    accuracy_margin: float | None,
    allow_environment: tuple[str, ...],
    explain: bool,
    **values: Unpack[SharedValues],
) -> int:
    options = shared(_FORMATS, **values)
    words = fail_on.parse(fail_on_)
    configured = compare_settings(nearest_source(Path.cwd()))
    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    protect(options, (base, candidate))
    result = analysis.diff_of(
        base,
        candidate,
        options.reading,
        metrics,
        claims,
        accuracy_margin=configured.accuracy_margin if accuracy_margin is None else accuracy_margin,
        allow_environment=(*configured.allow_environment, *_keys(allow_environment)),
        explain=explain,
    )
    outcome = fail_on.outcome(result, words)
    from moeprof.reports.render import render_diff

    emit(options, streams, lambda fmt, look: render_diff(result, fmt, look, outcome, words, explain=explain))
    if outcome.exit_code == NothingToCompareError.exit_code:
        raise NothingToCompareError(_why(result), hint=_cure(result))
    if outcome.caveat is not None:
        write(streams.stderr, f"moeprof: warning: --fail-on: {outcome.caveat}\n")
    return outcome.exit_code


def _cure(result: Diff) -> str:
    keys = sorted(
        {row.key for row in result.environment if row.matters and not row.allowed and row.between != "traces"}
    )
    if keys:
        return f"run both arms on the same ground, or compare all the same with --allow-environment {','.join(keys)}"
    return "moeprof report PATH shows what each side holds"


def _keys(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys of an option that may be repeated and holds several with commas."""
    return tuple(key for part in given for key in (word.strip() for word in part.split(",")) if key)


def _why(result: Diff) -> str:
    reasons = [finding.message for finding in result.findings if finding.severity == "error"]
    differing = (row.label_because for row in result.serving if row.gates and row.verdict == "not_comparable")
    reasons += [f"not comparable: {because}" for because in dict.fromkeys(differing)]
    return "; ".join(reasons) or "; ".join(result.summary) or "nothing was compared"


command = GroupedCommand(
    "diff",
    callback=_run,
    help=_HELP,
    params=[
        click.Argument(["base"]),
        click.Argument(["candidate"]),
        GroupedOption(
            "--fail-on",
            "fail_on_",
            metavar="WORDS",
            default="none",
            heading="Verdict",
            help=f"Exit with 1 when one of these happened, with commas: {', '.join(fail_on.WORDS)}, none (default).",
        ),
        GroupedOption(
            "--accuracy-margin",
            type=float,
            metavar="SHARE",
            heading="Verdict",
            help="Largest drop of accuracy that is acceptable: 0.02 is 2 points (default: none is stated).",
        ),
        GroupedOption(
            "--allow-environment",
            multiple=True,
            metavar="KEYS",
            heading="Verdict",
            help="Compare although these keys of the environment differ, with commas; versions stands for all of them.",
        ),
        GroupedOption(
            "--metrics",
            metavar="FILE",
            heading="Reading",
            help="Serving metrics of your own (TOML): unit and direction.",
        ),
        GroupedOption(
            "--claims",
            metavar="FILE",
            heading="Verdict",
            help="Hold the written claims of FILE (TOML) against the passes.",
        ),
        GroupedOption(
            "--explain",
            is_flag=True,
            heading="Parts",
            help="Say what became of each layer, and where the difference of wall times comes from.",
        ),
        *shared_params(_FORMATS),
    ],
)
command.examples = (
    "moeprof diff traces/h200/base traces/h200/triton",
    "moeprof diff base mega --fail-on structure --output markdown=comment.md",
)
