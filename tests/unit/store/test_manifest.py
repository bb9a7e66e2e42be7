"""A manifest survives the way to the disk and back; what cannot be read is refused with a reason."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from moeprof.errors import InputNotFoundError, ManifestError, UnsupportedFormatError
from moeprof.store.fingerprint import fingerprint
from moeprof.store.manifest import FileEntry, Manifest, file_entry
from tests.unit.store.runs import manifest

FULL: dict[str, Any] = {
    "argv": ("vllm", "serve"),
    "env": {"A": "1"},
    "plan": "aba",
    "workload": {"name": "decode", "seed": 0, "concurrency": [1, 2]},
    "versions": {"vllm": "0.32.0", "driver": None},
    "model": {"path": "/m", "config_sha256": "0" * 64},
    "git": {"revision": "abc", "dirty": False},
    "hardware": {"gpus": []},
    "fingerprint": "f" * 64,
    "files": {"traces/a.json": FileEntry(3, "0" * 64)},
    "passes": ({"output_throughput": 5.5, "failed": 0},),
    "window": {"rank_files": ["a"]},
    "log_facts": {"moe_backend": "HUMMING"},
    "gates": ({"name": "token-counts", "outcome": "pass"},),
    "outcome": "failed",
    "reason": "stalled",
}


def test_there_and_back() -> None:
    # GIVEN a manifest with every member set WHEN it is written and read THEN it is the same
    full = manifest(**FULL)
    assert Manifest.from_dict(json.loads(full.to_json())) == full


def test_the_text_is_stable() -> None:
    # WHEN a manifest is written THEN keys are sorted and the schema is named
    value = json.loads(manifest(**FULL).to_json())
    assert list(value) == sorted(value)
    assert value["schema"] == "moeprof.run/1"
    assert manifest(**FULL).to_json() == manifest(**dict(reversed(FULL.items()))).to_json()


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), {1, 2}])
def test_what_is_no_json_is_refused(figure: object) -> None:
    # WHEN a figure is NaN, or a value is no JSON THEN it is not written
    with pytest.raises(ManifestError, match="cannot be written as JSON"):
        manifest(window={"a": figure}).to_json()


def test_unknown_keys_are_kept() -> None:
    # GIVEN a manifest of a newer version with one more key WHEN it is read THEN the key stays with it
    value = {**manifest().to_dict(), "energy": {"joules": 5}}
    read = Manifest.from_dict(value)
    assert read.extra == {"energy": {"joules": 5}}
    assert read.to_dict() == value


def test_absent_members_are_empty() -> None:
    # GIVEN only what every manifest has THEN the rest is empty or None
    least = {"schema": "moeprof.run/1", "arm": "a", "block": 0, "started": "s", "ended": "e", "outcome": "complete"}
    assert Manifest.from_dict(least) == manifest("a", 0, started="s", ended="e")


@pytest.mark.parametrize("schema", ["moeprof.run/2", "moeprof.report/1", None, 1])
def test_another_schema_is_refused(schema: object) -> None:
    # WHEN the schema is another THEN the error names both
    with pytest.raises(UnsupportedFormatError, match=r"is of schema .*, and this version reads moeprof\.run/1"):
        Manifest.from_dict({**manifest().to_dict(), "schema": schema})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arm": None}, "arm in the manifest is None, not a text"),
        ({"block": "1"}, "block in the manifest is '1', not an integer"),
        ({"block": True}, "block in the manifest is True, not an integer"),
        ({"outcome": "maybe"}, "outcome in the manifest is 'maybe', not complete or failed"),
        ({"files": {"a": {"bytes": 1}}}, "sha256 in the manifest is None, not a text"),
        ({"files": {"a": 1}}, "a member in the manifest is 1, not an object"),
        ({"argv": "vllm"}, "argv in the manifest is 'vllm', not a list"),
        ({"argv": [1]}, "argv in the manifest is 1, not a text"),
        ({"gates": [1]}, "gates in the manifest is 1, not an object"),
        ({"window": []}, "window in the manifest is [], not an object"),
    ],
)
def test_a_wrong_member_is_named(changes: dict[str, object], message: str) -> None:
    # WHEN a member is of the wrong type THEN the error names it
    with pytest.raises(ManifestError) as caught:
        Manifest.from_dict({**manifest().to_dict(), **changes}, path="m.json")
    assert (caught.value.message, caught.value.path) == (message, "m.json")


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1', "\xff", "[" * 100_000])
def test_what_is_no_manifest(tmp_path: Path, text: str) -> None:
    # WHEN the file is damaged THEN the error names the file
    path = tmp_path / "manifest.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ManifestError) as caught:
        Manifest.read(path)
    assert caught.value.path == str(path)


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    # WHEN there is no file THEN it is an input that was not found
    with pytest.raises(InputNotFoundError, match="No such file"):
        Manifest.read(tmp_path / "manifest.json")


def test_the_digest_of_a_file(tmp_path: Path) -> None:
    # GIVEN a file of more than one piece THEN size and digest are those of the whole
    content = b"moeprof" * 300_000
    (tmp_path / "f").write_bytes(content)
    assert file_entry(tmp_path / "f") == FileEntry(2_100_000, hashlib.sha256(content).hexdigest())


AGREED: dict[str, dict] = {
    "versions": {"vllm": "0.32.0"},
    "model": {"path": "/a", "config_sha256": "1"},
    "hardware": {"host": "a", "gpus": [{"name": "H200", "uuid": "GPU-1"}]},
    "workload": {"seed": 0},
    "passes": {"timed": 3},
}


def of(**changes: object) -> str:
    return fingerprint(**{**AGREED, "flags": ["--seed", "0"], **changes})  # type: ignore[arg-type]


def test_a_fingerprint_is_the_digest_of_canonical_json() -> None:
    # WHEN the digest is made by hand THEN it is the same: host, uuid and the model's place do not count
    text = (
        '{"flags":["--seed","0"],"hardware":{"gpus":[{"name":"H200"}]},"model":{"config_sha256":"1"},'
        '"passes":{"timed":3},"versions":{"vllm":"0.32.0"},"workload":{"seed":0}}'
    )
    assert of() == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"model": {"path": "/b", "config_sha256": "1"}}, True),
        ({"hardware": {"host": "b", "gpus": [{"uuid": "GPU-2", "name": "H200"}]}}, True),
        ({"model": {"path": "/a", "config_sha256": "2"}}, False),
        ({"hardware": {"host": "a", "gpus": [{"name": "H100"}]}}, False),
        ({"versions": {"vllm": "0.33.0"}}, False),
        ({"flags": ["--seed", "1"]}, False),
        ({"workload": {"seed": 1}}, False),
        ({"passes": {"timed": 2}}, False),
    ],
)
def test_what_must_agree(changes: dict[str, object], same: bool) -> None:
    # WHEN something that matters differs THEN so does the fingerprint, and only then
    assert (of(**changes) == of()) is same
