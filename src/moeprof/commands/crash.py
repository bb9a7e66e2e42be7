"""Turn whatever ended a run into an exit code and the lines that tell a person."""

from __future__ import annotations

import traceback

import click

from moeprof.errors import MoeprofError
from moeprof.profiler.signals import Terminated
from moeprof.wording import safe

INTERRUPTED = 130
FAILED = 2


def describe(error: BaseException, *, debug: bool) -> tuple[int, str]:
    """Return exit code and text for stderr.

    Args:
        error: What was caught.
        debug: Whether the traceback goes first.
    """
    code, lines = _lines(error)
    notes = () if _interrupt(error) else getattr(error, "__notes__", ())
    lines += [f"  | {safe(line)}" for note in notes for line in str(note).splitlines()]
    trace = "".join(traceback.format_exception(error)) if debug else ""
    return code, trace + "".join(f"{line}\n" for line in lines)


def _lines(error: BaseException) -> tuple[int, list[str]]:
    if isinstance(error, MoeprofError):
        return error.exit_code, _message(error.slug, error.message, at=error.where, hint=error.hint)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return FAILED, [error.format_message()]
    if isinstance(error, click.UsageError):
        hint = f"{error.ctx.command_path} --help" if error.ctx else "moeprof --help"
        return FAILED, _message("usage", _sentence(error.format_message()), hint=hint)
    if isinstance(error, click.ClickException):
        return FAILED, _message("usage", _sentence(error.format_message()))
    interrupt = _interrupt(error)
    if interrupt is not None:
        asked = isinstance(interrupt, Terminated)
        said = "; ".join([f"ended by {interrupt}" if asked else "interrupted", *getattr(interrupt, "__notes__", ())])
        code = interrupt.exit_code if isinstance(interrupt, Terminated) else INTERRUPTED
        return code, [f"moeprof: {safe(said)}"]
    if isinstance(error, OSError):
        return FAILED, _message("io", _reason(error), at=_path(error))
    kind = type(error).__name__
    said = str(error).strip()
    text = f"internal error: {kind}: {said}" if said else f"internal error: {kind}"
    return FAILED, _message(
        "internal", text, hint="the same command with --debug shows the traceback; please report it"
    )


def _interrupt(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interrupt that an error is, or that click wrapped."""
    if isinstance(error, click.Abort):
        error = error.__cause__ or error.__context__ or error
    return error if isinstance(error, KeyboardInterrupt) else None


def _message(slug: str, text: str, *, at: str | None = None, hint: str | None = None) -> list[str]:
    lines = [f"moeprof: error[{slug}]: {safe(text)}"]
    if at is not None:
        lines.append(f"  at: {safe(at)}")
    if hint is not None:
        lines.append(f"  try: {safe(hint)}")
    return lines


def _sentence(text: str) -> str:
    """Return click's message as one line that starts in lower case, without the full stop."""
    joined = " ".join(text.split()).removesuffix(".")
    return joined[:1].lower() + joined[1:]


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def _path(error: OSError) -> str | None:
    name = error.filename
    return None if name is None else str(name)
