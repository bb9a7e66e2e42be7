"""Every error of the catalogue: an example of each goes through main, with its slug and its code."""

from __future__ import annotations

import io
import re

import pytest

from moeprof import errors
from moeprof.cli import main
from moeprof.commands import analysis
from tests.unit.test_error_inputs import REAL

#: Errors of a capture, which needs a server to happen. Those of the analysis happen in `test_error_inputs`.
EXAMPLES: dict[type[errors.MoeprofError], tuple[errors.MoeprofError, str]] = {
    errors.ConfigError: (
        errors.ConfigError("unknown key 'arm'", path="moeprof.toml", line=3, hint="did you mean 'arms'?"),
        "config-invalid",
    ),
    errors.StoreLockedError: (
        errors.StoreLockedError("another moeprof writes to the store", path="lock", hint="wait for it"),
        "store-locked",
    ),
    errors.GateFailedError: (errors.GateFailedError("1 gate failed: token-counts"), "capture-gate-failed"),
    errors.PassFailedError: (errors.PassFailedError("all 8 requests failed: HTTP 500", path="x.json"), "pass-failed"),
    errors.WindowFailedError: (
        errors.WindowFailedError("no trace appeared", path="traces", hint="wait"),
        "window-failed",
    ),
    errors.ManifestError: (errors.ManifestError("the manifest is not JSON", path="manifest.json"), "manifest-invalid"),
    errors.StoreWriteError: (errors.StoreWriteError("cannot store the run: the disk is full"), "store-write-failed"),
    errors.CaptureError: (errors.CaptureError("the command did not end within 9 s", path="x"), "capture-failed"),
    errors.ServerDiedError: (
        errors.ServerDiedError("the server ended with exit code 1 before it was ready", path="x", hint="read x"),
        "server-died",
    ),
    errors.NotReadyError: (errors.NotReadyError("the server was not ready within 9 s", path="x"), "server-not-ready"),
    errors.StalledError: (errors.StalledError("the server made no progress for 9 s", path="x"), "server-stalled"),
}


def catalogue(root: type[errors.MoeprofError] = errors.MoeprofError) -> list[type[errors.MoeprofError]]:
    """Return every class below a root, wherever it is defined."""
    return [item for below in root.__subclasses__() for item in (below, *catalogue(below))]


def test_every_error_has_an_example() -> None:
    # GIVEN the catalogue THEN no class of it lacks an example here
    defined = {item for item in catalogue() if item.__module__ == errors.__name__}
    assert defined == EXAMPLES.keys() | REAL.keys()
    assert not EXAMPLES.keys() & REAL.keys()


def test_slugs_are_distinct_and_in_kebab_case() -> None:
    # GIVEN the catalogue THEN each error can be told by its slug
    slugs = [item.slug for item in (*EXAMPLES, *REAL)]
    assert len(set(slugs)) == len(slugs)
    assert [slug for slug in slugs if not re.fullmatch(r"[a-z]+(-[a-z]+)*", slug)] == []


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.slug)
def test_an_error_goes_through_main(kind: type[errors.MoeprofError], monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a command that raises the error
    error, slug = EXAMPLES[kind]

    def refuse(path: str, reading: object, **_: object) -> None:
        raise error

    monkeypatch.setattr(analysis, "report_of", refuse)
    out, err = io.StringIO(), io.StringIO()
    # WHEN the program runs
    code = main(["report", "x"], out, err)
    # THEN its code, slug, message, place and hint reach the user, and nothing else does
    expected = [f"moeprof: error[{slug}]: {error.message}"]
    expected += [f"  at: {error.where}"] if error.where else []
    expected += [f"  try: {error.hint}"] if error.hint else []
    assert type(error) is kind
    assert (code, out.getvalue(), err.getvalue().splitlines()) == (kind.exit_code, "", expected)


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (errors.MoeprofError("m"), None),
        (errors.MoeprofError("m", line=3), None),
        (errors.MoeprofError("m", path="x"), "x"),
        (errors.MoeprofError("m", path="x", line=3), "x:3"),
        (errors.MoeprofError("m", path="x", byte=0), "x (byte 0)"),
        (errors.MoeprofError("m", path="x", line=3, byte=9), "x:3 (byte 9)"),
    ],
)
def test_where(error: errors.MoeprofError, where: str | None) -> None:
    # WHEN only part of the place is known THEN only that part is told
    assert error.where == where
