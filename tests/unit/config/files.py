"""Configurations for tests: small, and changed in one place each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from moeprof.config.load import load_config
from moeprof.config.schema import Config
from moeprof.errors import ConfigError

#: The least that loads with backend vllm.
LEAST = """\
[server]
model = "hub/model"

[arms.base]

[workloads.decode]
input_len = 64
output_len = 32
concurrency = [4, 8]
"""


def load(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Config:
    """Write a text as moeprof.toml and load it; the caller's environment is empty unless given."""
    file = folder / "moeprof.toml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, start=folder, environ={} if environ is None else environ)


def refusal(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> tuple[str, int | None, str | None]:
    """Return message, line and hint of the error that a text gives."""
    with pytest.raises(ConfigError) as caught:
        load(folder, text, environ)
    assert caught.value.path == str(folder / "moeprof.toml")
    return caught.value.message, caught.value.line, caught.value.hint
