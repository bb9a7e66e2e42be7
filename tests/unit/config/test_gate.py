"""The table [gate]: defaults without it, every key, and errors that point to the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.config.gate import GateSettings, load_gate
from moeprof.errors import ConfigError

WHOLE = """\
[gate]
baseline = "perf/b.json"
fail_on = ["structure", "regression"]
min_label = "A/B/A complete"
accuracy_margin = 0.02
forbid = ["ranks-differ"]
allow_environment = ["versions"]

[gate.structure]
ag_rs_pairs = 3
"moe_fused/target" = [40, 42]
"*/sample" = "any"
"backend/moe_gemm/draft" = "any"

[gate.metrics.median_ttft_ms]
threshold = "15%"
label = "A/B/A complete"
required = false
"""


def settings(folder: Path, text: str) -> GateSettings:
    """Write a text as moeprof.toml and read its rules."""
    (folder / "moeprof.toml").write_text(text, encoding="utf-8")
    return load_gate(None, start=folder)


def test_without_a_file_there_are_defaults(tmp_path: Path) -> None:
    # GIVEN a folder of its own without a configuration WHEN it is read THEN nothing is asked but the defaults
    (tmp_path / ".git").mkdir()
    assert load_gate(None, start=tmp_path) == GateSettings(None, tmp_path)


def test_every_key_is_taken(tmp_path: Path) -> None:
    # GIVEN all keys, and no arm WHEN it is read THEN each is there
    found = settings(tmp_path, WHOLE)
    assert found.baseline == tmp_path / "perf" / "b.json"
    assert found.fail_on == ("regression", "structure")
    assert (found.min_label, found.accuracy_margin, found.forbid) == ("A/B/A complete", 0.02, ("ranks-differ",))
    assert found.structure == {
        "pairs/ag_rs/per_iteration": (3,),
        "moe_fused/target": (40, 42),
        "*/sample": None,
        "backend/moe_gemm/draft": None,
    }
    assert found.metrics == {"median_ttft_ms": {"gates": True, "threshold": "15%"}}
    assert found.labels == {"median_ttft_ms": "A/B/A complete"}
    assert found.optional == {"median_ttft_ms"}
    assert found.allow_environment == ("versions",)


def test_what_compare_says_holds_too(tmp_path: Path) -> None:
    # GIVEN [compare] WHEN the rules are read THEN its margin and keys hold, and [gate] comes first
    compare = '[compare]\naccuracy_margin = 0.01\nallow_environment = ["git"]\n'
    assert settings(tmp_path, compare).accuracy_margin == 0.01
    assert settings(tmp_path, compare + WHOLE).accuracy_margin == 0.02
    assert settings(tmp_path, compare + WHOLE).allow_environment == ("git", "versions")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[gate]\nfail_onn = []\n", 2, "unknown key 'fail_onn' in [gate]"),
        ("[gate]\nfail_on = ['sometimes']\n", 2, "fail_on in [gate] must be"),
        ("[gate]\nfail_on = ['none', 'gate']\n", 2, "none stands alone"),
        ("[gate]\naccuracy_margin = 2\n", 2, "accuracy_margin in [gate] must be"),
        ("[gate.structure]\n'moe_fusedd/target' = 42\n", 2, "'moe_fusedd/target' in [gate.structure] names no class"),
        ("[gate.structure]\n'pairs/ag_rs/drafts' = 3\n", 2, "names no class and phase, no pairs"),
        ("[gate.structure]\n'moe_fused/target' = 'every'\n", 2, "must be a whole number, a list of them or"),
        ("[gate.structure]\n'backend/moe_gemm/draft' = 3\n", 2, 'must be "any"'),
        ("[gate.structure]\ndefault = 'loose'\n", 2, "default in [gate.structure] must be"),
        ("[gate.metrics.x]\nlabell = 'A/B only'\n", 2, "unknown key 'labell'"),
        ("[gate.metrics.x]\nlabel = 'ABA'\n", 2, "label in [gate.metrics.x] must be"),
        ("[gates2]\nx = 1\n", 1, "unknown key 'gates2' in the file"),
    ],
)
def test_errors_point_to_the_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    # GIVEN a mistake WHEN the rules are read THEN the error names it and its line: a typo must not switch a gate off
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, text)
    assert said in caught.value.message
    assert caught.value.line == line
