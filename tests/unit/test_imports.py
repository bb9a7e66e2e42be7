"""What starting the program costs, what the native module exports, and who may touch it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "moeprof"
HEAVY = ("moeprof._native", "pandas", "polars", "pyarrow", "ray", "rich", "scipy", "torch", "vllm")
NOT_BUILT = "the native module is not built; run: make build"
ALLOWED_MODULES = 250  # --help must feel instant; imports are what it costs

REPORT = "import json, sys; json.dump(sorted(sys.modules), sys.stderr)"
HELP = f"""
import io
from moeprof.cli import main
out, err = io.StringIO(), io.StringIO()
code = main(["--help"], out, err)
print(code)
print(out.getvalue())
{REPORT}
"""


def fresh(code: str) -> tuple[str, list[str]]:
    """Run code in a new interpreter: its stdout, and the modules it listed on stderr."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout, json.loads(done.stderr)


def heavy(modules: list[str]) -> list[str]:
    return [name for name in HEAVY if name in modules]


def test_importing_the_package_loads_nothing_heavy() -> None:
    # GIVEN a fresh interpreter
    # WHEN the package is imported
    _, modules = fresh(f"import moeprof\n{REPORT}")
    # THEN it is there, and none of the heavy libraries is
    assert "moeprof" in modules
    assert heavy(modules) == []


def test_help_answers_and_loads_nothing_heavy() -> None:
    # GIVEN a fresh interpreter
    # WHEN the help is asked for
    text, modules = fresh(HELP)
    # THEN it ends with 0, names the commands, and costs few imports
    assert text.startswith("0\n")
    assert "report" in text
    assert "diff" in text
    assert heavy(modules) == []
    assert len(modules) < ALLOWED_MODULES


def test_the_check_for_heavy_modules_can_fail() -> None:
    # GIVEN a fresh interpreter
    # WHEN a public name is used that needs the tables
    _, modules = fresh(f"import moeprof\nmoeprof.Trace\n{REPORT}")
    # THEN polars is seen
    assert "polars" in heavy(modules)


@pytest.fixture
def native() -> ModuleType:
    """Return the compiled module; the plain reader that stands in for it in other tests does not count."""
    module = pytest.importorskip("moeprof._native", reason=NOT_BUILT)
    if not str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES)):
        pytest.skip(NOT_BUILT)
    return cast(ModuleType, module)


def stub_names(stub: Path) -> tuple[set[str], set[str]]:
    """Return the names a stub defines and those in its __all__."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    exported: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            exported = set(ast.literal_eval(node.value))
    return defined, exported


def test_the_stub_lists_what_the_native_module_exports(native: ModuleType) -> None:
    # GIVEN the compiled module and its stub
    defined, exported = stub_names(PACKAGE / "_native.pyi")
    # WHEN their public names are listed
    public = {name for name in vars(native) if not name.startswith("_")}
    # THEN they are the same
    assert defined == exported
    assert public == exported


def test_the_version_is_that_of_the_native_module(native: ModuleType) -> None:
    # GIVEN the compiled module, whose version is that of the distribution
    import moeprof

    # WHEN both versions are read
    # THEN they are the same
    assert native.build_info()["version"] == moeprof.__version__


def test_every_public_name_resolves() -> None:
    # GIVEN the list of public names
    import moeprof

    # WHEN each is looked up
    missing = [name for name in moeprof.__all__ if getattr(moeprof, name, None) is None]
    # THEN none is missing, and a name that is not there is refused
    assert missing == []
    with pytest.raises(AttributeError, match="nothing_of_the_sort"):
        _ = moeprof.nothing_of_the_sort


def test_a_diff_of_results_loads_no_tables_and_no_statistics_library() -> None:
    # GIVEN a fresh interpreter WHEN two arms without traces are compared
    arguments = ["diff", "base", "mega", "--store", "samples/store", "--format", "json"]
    code = f"import io\nfrom moeprof.cli import main\nout = io.StringIO()\nprint(main({arguments!r}, out, io.StringIO()))\n"
    text, modules = fresh(code + REPORT)
    # THEN it answers, with what the standard library has
    assert text == "0\n"
    assert heavy(modules) == []
