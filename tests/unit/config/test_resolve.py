"""Arms that extend arms, and what the caller's environment puts into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.config.schema import Expect

from .files import LEAST, load, refusal

FAMILY = """\
[server]
model = "m"
ready_s = 10
stall_s = 20
[arms.grandchild]
extends = "child"
flags = { backend = "three", a = false }
env = { A = false, C = "3" }
server = { stall_s = 40 }
expect = { all2all = false, kernels = { moe_gemm = false, moe_fused = 1 } }
[arms.child]
extends = "base"
flags = ["--backend", "two", "--b"]
env = { B = "two" }
markers = false
server = { ready_s = 30 }
expect = { moe_backend = "TWO", log = ["two"] }
[arms.base]
flags = ["--a", "1", "--backend", "one", "--z"]
env = { A = 1, B = "one" }
expect = { moe_backend = "ONE", all2all = "AG", log = ["one"], kernels = { moe_gemm = 2, norm = 5 } }
[workloads.w]
input_len = 1
output_len = 1
concurrency = 1
"""


def test_a_chain_is_merged_from_its_root(tmp_path: Path) -> None:
    # GIVEN an arm, its child and its grandchild, written in the opposite order
    config = load(tmp_path, FAMILY)
    # WHEN they are resolved THEN order is the file's, and each has its own in place of what it inherits
    assert list(config.arms) == ["grandchild", "child", "base"]
    base, child, grandchild = (config.arms[name] for name in ("base", "child", "grandchild"))
    assert base.flags == ("--a", "1", "--backend", "one", "--z")
    assert child.flags == ("--a", "1", "--z", "--backend", "two", "--b")
    assert grandchild.flags == ("--z", "--b", "--backend", "three")
    assert (base.env, child.env) == ({"A": "1", "B": "one"}, {"A": "1", "B": "two"})
    assert grandchild.env == {"B": "two", "C": "3"}
    assert [arm.server.ready_s for arm in (base, child, grandchild)] == [10.0, 30.0, 30.0]
    assert [arm.server.stall_s for arm in (base, child, grandchild)] == [20.0, 20.0, 40.0]
    assert [arm.markers for arm in (base, child, grandchild)] == [True, False, False]
    assert child.expect == Expect("TWO", "AG", None, ("two",), {"moe_gemm": 2, "norm": 5})
    assert grandchild.expect == Expect("TWO", None, None, ("two",), {"norm": 5, "moe_fused": 1})


@pytest.mark.parametrize(
    ("old", "new", "message", "line", "hint"),
    [
        (
            "[arms.base]\n",
            '[arms.base]\nextends = "grandchild"\n',
            "arms extend each other in a circle: grandchild -> child -> base -> grandchild",
            19,
            None,
        ),
        ('"base"', '"child"', "arms extend each other in a circle: grandchild -> child -> child", 12, None),
        ('"base"', '"bas"', "arm 'child' extends 'bas', which is no arm", 12, "did you mean 'base'?"),
        (
            "a = false",
            "q = false",
            "q in [arms.grandchild.flags] is false, and there is no inherited flag to remove",
            7,
            'to switch it off, write "no-q" = true',
        ),
        ("norm = 5", "nrom = 5", "unknown class 'nrom' in [arms.base.expect.kernels]", 21, "did you mean 'norm'?"),
        (
            "norm = 5",
            '"norm/drafts" = 5',
            "unknown phase 'drafts' in [arms.base.expect.kernels]",
            21,
            "did you mean 'draft'?",
        ),
        (
            "norm = 5",
            "norm = -1",
            "norm in [arms.base.expect.kernels] must be a whole number of at least 0, not -1",
            21,
            None,
        ),
        (
            '["one"]',
            '["(one"]',
            "log in [arms.base.expect] must be a list in which each is a regular expression, and '(one' is none: "
            "missing ), unterminated subpattern at position 0",
            21,
            None,
        ),
        ("A = 1", "A-B = 1", "'A-B' in [arms.base.env] cannot be the name of a variable", 20, None),
        (
            "A = 1",
            "A = true",
            "A in [arms.base.env] must be text, a whole number, or false to remove what is inherited, not true",
            20,
            None,
        ),
    ],
)
def test_what_cannot_be_resolved_is_refused(
    tmp_path: Path, old: str, new: str, message: str, line: int, hint: str | None
) -> None:
    # GIVEN the family, changed in one place WHEN it is loaded THEN the error says what, where and what to do
    assert old in FAMILY
    assert refusal(tmp_path, FAMILY.replace(old, new, 1)) == (message, line, hint)


def with_env(value: str) -> str:
    return LEAST.replace("[arms.base]", f"[arms.base]\n[arms.base.env]\nX = '{value}'")


def test_variables_of_the_caller_are_put_in(tmp_path: Path) -> None:
    # GIVEN a value with variables and dollars WHEN it is loaded THEN they are put in once
    environ = {"HOME": "/h", "OTHER": "${HOME}$$"}
    config = load(tmp_path, with_env("${HOME}/x:${OTHER}:$$HOME$$"), environ)
    assert config.arms["base"].env == {"X": "/h/x:${HOME}$$:$HOME$"}


def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    # GIVEN a value that needs a variable WHEN it is not set THEN the error names it; an empty one is set
    message, line, hint = refusal(tmp_path, with_env("${HF_TOKEN}"))
    assert message == "X in [arms.base.env] needs the variable HF_TOKEN, which is not set"
    assert (line, hint) == (6, "export HF_TOKEN=...")
    assert load(tmp_path, with_env("${HF_TOKEN}"), {"HF_TOKEN": ""}).arms["base"].env == {"X": ""}


def test_a_dollar_by_itself_is_refused(tmp_path: Path) -> None:
    # GIVEN a shell's way to name a variable WHEN it is loaded THEN the error tells ours
    message, line, hint = refusal(tmp_path, with_env("$HOME"), {"HOME": "/h"})
    assert (message, line) == ("X in [arms.base.env] has a $ by itself", 6)
    assert hint == "write $$ for a dollar, ${NAME} for a variable"


def test_a_variable_of_an_overridden_value_is_not_needed(tmp_path: Path) -> None:
    # GIVEN an abstract parent whose value the child replaces WHEN the child is resolved THEN only its own value counts
    text = with_env("${GONE}") + "[arms.child]\nextends = 'base'\nenv = { X = 'own' }\n"
    config = load(tmp_path, text, {"GONE": "there"})
    assert (config.arms["base"].env["X"], config.arms["child"].env["X"]) == ("there", "own")
    message, line, _ = refusal(tmp_path, text.replace("'own'", "'${GONER}'"), {"GONE": "there"})
    assert (message, line) == ("X in [arms.child.env] needs the variable GONER, which is not set", 14)
