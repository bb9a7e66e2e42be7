"""What a run says about itself: `manifest.json`, schema ``moeprof.run/1``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal, cast

from moeprof.errors import InputNotFoundError, ManifestError, UnsupportedFormatError
from moeprof.findings import JsonValue
from moeprof.store import redact
from moeprof.store.members import Members

SCHEMA = "moeprof.run/1"
FILE = "manifest.json"
Outcome = Literal["complete", "failed"]
Object = Mapping[str, JsonValue]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size and digest of a file of the run."""

    bytes: int
    sha256: str

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object."""
        return {"bytes": self.bytes, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A run: what was run, on what, with which result. Absent facts are None or empty, never invented.

    Attributes:
        arm, block: Identity of the run within its plan.
        started, ended: UTC, as ``2026-11-30T20:37:30Z``.
        outcome: ``complete``, or ``failed`` with a `reason`.
        plan: The schedule it belongs to (``aba``), or None.
        workload: The workload as an object, with its seed.
        argv, env: The server's command line and the variables set for it, redacted.
        versions: Name to version; None where it could not be found out.
        model: ``path`` and ``config_sha256``.
        git: ``revision`` and ``dirty`` of the working directory.
        hardware: CPU, memory, GPUs.
        fingerprint: Digest over what two blocks must share to be compared fairly.
        files: Path relative to the run folder, to size and digest.
        passes, window, log_facts, gates: Results as objects.
        reason: Why it failed.
        extra: Keys that this version does not know, kept as they were read.
    """

    arm: str
    block: int
    started: str
    ended: str
    outcome: Outcome = "complete"
    plan: str | None = None
    workload: Object = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    versions: Object = field(default_factory=dict)
    model: Object = field(default_factory=dict)
    git: Object = field(default_factory=dict)
    hardware: Object = field(default_factory=dict)
    fingerprint: str | None = None
    files: Mapping[str, FileEntry] = field(default_factory=dict)
    passes: tuple[Object, ...] = ()
    window: Object = field(default_factory=dict)
    log_facts: Object = field(default_factory=dict)
    gates: tuple[Object, ...] = ()
    reason: str | None = None
    extra: Object = field(default_factory=dict)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object, schema included."""
        value: dict[str, JsonValue] = dict(self.extra)
        for item in fields(self):
            if item.name != "extra":
                value[item.name] = _plain(getattr(self, item.name))
        value["schema"] = SCHEMA
        return value

    def to_json(self) -> str:
        """Return the text of `manifest.json`: sorted keys, no NaN, a line feed at the end.

        Raises:
            ManifestError: When a figure is NaN or infinite, or a value is no JSON.
        """
        try:
            return json.dumps(self.to_dict(), indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"
        except (TypeError, ValueError) as error:
            raise ManifestError(f"the manifest of {self.arm} cannot be written as JSON: {error}") from error

    def redacted(self, *, known: Collection[str] = ()) -> Manifest:
        """Return the manifest without secrets in any of its texts.

        Args:
            known: Secrets that are known, as `redact.secrets` finds them.
        """
        secrets = (*redact.secrets(self.env), *known)
        clean = replace(
            self,
            argv=tuple(redact.argv(self.argv, known=secrets)),
            env=redact.env(self.env),
            reason=None if self.reason is None else redact.text(self.reason, known=secrets),
            passes=tuple(_clean(item, secrets) for item in self.passes),
            gates=tuple(_clean(item, secrets) for item in self.gates),
        )
        return replace(
            clean,
            workload=_clean(self.workload, secrets),
            versions=_clean(self.versions, secrets),
            model=_clean(self.model, secrets),
            git=_clean(self.git, secrets),
            hardware=_clean(self.hardware, secrets),
            window=_clean(self.window, secrets),
            log_facts=_clean(self.log_facts, secrets),
            extra=_clean(self.extra, secrets),
        )

    @classmethod
    def from_dict(cls, value: object, *, path: str | None = None) -> Manifest:
        """Return the manifest of a JSON value; keys that are not known are kept in `extra`.

        Args:
            value: What was read.
            path: Where from, for the message of an error.

        Raises:
            UnsupportedFormatError: When it is of another schema.
            ManifestError: When a key is missing or of the wrong type.
        """
        if not isinstance(value, dict):
            raise ManifestError("the manifest is not a JSON object", path=path)
        schema = value.get("schema")
        if schema != SCHEMA:
            raise UnsupportedFormatError(
                f"the manifest is of schema {schema!r}, and this version reads {SCHEMA}",
                path=path,
                hint="read it with the version of moeprof that wrote it, or a newer one",
            )
        read = Members(value, path)
        known = {item.name for item in fields(cls)} | {"schema"}
        return cls(
            arm=read.text("arm"),
            block=read.integer("block"),
            started=read.text("started"),
            ended=read.text("ended"),
            outcome="complete" if read.word("outcome", ("complete", "failed")) == "complete" else "failed",
            argv=tuple(read.texts("argv")),
            env={name: str(item) for name, item in read.mapping("env").items()},
            files={name: _entry(Members(item, path)) for name, item in read.members("files").items()},
            passes=tuple(read.mappings("passes")),
            gates=tuple(read.mappings("gates")),
            plan=read.optional("plan"),
            fingerprint=read.optional("fingerprint"),
            reason=read.optional("reason"),
            workload=read.mapping("workload"),
            versions=read.mapping("versions"),
            model=read.mapping("model"),
            git=read.mapping("git"),
            hardware=read.mapping("hardware"),
            window=read.mapping("window"),
            log_facts=read.mapping("log_facts"),
            extra={name: item for name, item in value.items() if name not in known},
        )

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Return the manifest in a file.

        Raises:
            InputNotFoundError: When the file cannot be read.
            UnsupportedFormatError, ManifestError: As `from_dict`.
        """
        try:
            value: object = json.loads(path.read_bytes())
        except OSError as error:
            raise InputNotFoundError(f"cannot read the manifest: {error.strerror}", path=str(path)) from error
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"the manifest is not JSON: {error}", path=str(path)) from error
        return cls.from_dict(value, path=str(path))


def file_entry(path: Path) -> FileEntry:
    """Return size and SHA-256 of a file, read in pieces.

    Raises:
        OSError: When it cannot be read.
    """
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
            size += len(piece)
    return FileEntry(size, digest.hexdigest())


def _entry(read: Members) -> FileEntry:
    return FileEntry(read.integer("bytes"), read.text("sha256"))


def _plain(value: object) -> JsonValue:
    if isinstance(value, FileEntry):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return cast(JsonValue, value)


def _clean(item: Object, known: Collection[str]) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", redact.value(_plain(item), known=known))
