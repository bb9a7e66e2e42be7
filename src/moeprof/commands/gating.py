"""What gate and baseline share: rules from the configuration, the baseline file, and the arm of it that is meant."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from moeprof.commands.options import Reading
from moeprof.config.gate import GateSettings, baseline_place, load_gate
from moeprof.errors import UsageError

# Whatever reads results is loaded when it is needed: help stays instant.
if TYPE_CHECKING:
    from moeprof.analyzers.gates.observation import Observation
    from moeprof.analyzers.gates.rules import GateRules
    from moeprof.baselines.document import Document, Object

#: Variables that say that no person is at work.
_CI = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "JENKINS_URL", "TF_BUILD", "TEAMCITY_VERSION")
_NO = ("", "0", "false", "no")


def settings_of(config: Path | None) -> GateSettings:
    """Return what the configuration named, or the nearest one, says about gates."""
    return load_gate(config, start=Path.cwd())


def rules_of(
    settings: GateSettings, *, metrics: str | None, allowed: tuple[str, ...], margin: float | None
) -> GateRules:
    """Return the rules: options before the configuration, and it before the defaults.

    Raises:
        MetricsError: A metric that cannot be used.
    """
    from moeprof.analyzers.gates.rules import GateRules
    from moeprof.analyzers.serving.metrics import load_metrics
    from moeprof.analyzers.serving.results import LABELS

    registry = load_metrics(metrics)
    if settings.metrics:
        registry = registry.overlaid(settings.metrics, settings.source or "")
    labels = {name: next(label for label in LABELS if label == text) for name, text in settings.labels.items()}
    default = GateRules(registry)
    return replace(
        default,
        min_label=next((label for label in LABELS if label == settings.min_label), default.min_label),
        labels=labels,
        optional=settings.optional,
        structure=settings.structure,
        exact=settings.exact,
        accuracy_margin=settings.accuracy_margin if margin is None else margin,
        forbid=default.forbid if settings.forbid is None else settings.forbid,
        strict=settings.forbid is not None,
        allow_environment=(*settings.allow_environment, *allowed),
    )


def baseline_path(option: str | None, settings: GateSettings) -> str:
    """Return where the baseline lies: as the option says, else the configuration, else beside it, else here."""
    from moeprof.baselines.document import FILE_NAME

    if option is not None:
        return option
    found = settings.baseline or baseline_place(settings) / FILE_NAME
    return os.path.relpath(found) if found.is_absolute() else str(found)


def observed(name: str, reading: Reading) -> tuple[Observation, str | None]:
    """Return what is known of an arm or a path, and its day."""
    from moeprof.baselines.observe import observe

    return observe(
        name,
        rules=reading.rules,
        marker=reading.marker,
        marker_family=reading.marker_family,
        recover=reading.recover,
        store=reading.store,
    )


def name_of(found: Observation, option: str | None) -> str:
    """Return what an arm is called in a baseline: as the option says, its name, else the last part of its path."""
    name = option or found.arm or Path(found.source.split(",")[0]).resolve().name
    if not name.strip():
        raise UsageError("the arm needs a name in the baseline", hint="--arm NAME")
    return name


def entry_of(document: Document, wanted: str | None, guess: str | None) -> tuple[str, Object]:
    """Return the arm of a baseline that is meant: the one asked for, else the one of that name, else the only one.

    Raises:
        UsageError: It has none of that name, or several and nothing says which.
    """
    names = sorted(document.arms)
    hint = f"the baseline has {', '.join(names)}"
    if wanted is not None:
        if wanted not in document.arms:
            raise UsageError(f"the baseline {document.path} has no arm {wanted!r}", hint=hint)
        return wanted, document.arms[wanted]
    if guess is not None and guess in document.arms:
        return guess, document.arms[guess]
    if len(names) == 1:
        return names[0], document.arms[names[0]]
    raise UsageError(
        f"the baseline {document.path} has several arms, and none is called {guess!r}", hint=f"--arm NAME; {hint}"
    )


def in_ci(environ: Mapping[str, str]) -> str | None:
    """Return the variable by which a CI says that it is one; None where there is none.

    >>> in_ci({"CI": "true"}), in_ci({"CI": "false"})
    ('CI', None)
    """
    return next((name for name in _CI if environ.get(name, "").lower() not in _NO), None)
