"""Renew requirements/dev.txt: resolve pyproject.toml's dependencies and its dev group in a clean environment, and pin them.

    python scripts/lock.py

Standard library only.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "dev.txt"
HEAD = """\
# Everything that `make setup` installs, pinned. Renew: make lock
# Resolved from pyproject.toml (dependencies and the dev group) in a clean environment of Python {version}.
"""


def wanted() -> list[str]:
    """Return the requirements that pyproject.toml states."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    return [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]


def resolve(requirements: list[str]) -> str:
    """Return `pip freeze` of a fresh environment that holds the requirements."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [str(Path(folder) / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", *requirements], check=True)
        return subprocess.run(
            [*pip, "freeze", "--all", "--exclude", "setuptools"], check=True, capture_output=True, text=True
        ).stdout


def main() -> int:
    """Write the lock file."""
    pinned = sorted(resolve(wanted()).splitlines(), key=str.lower)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    LOCK.parent.mkdir(exist_ok=True)
    LOCK.write_text(HEAD.format(version=version) + "\n".join(pinned) + "\n", encoding="utf-8")
    print(f"{LOCK.relative_to(ROOT)}: {len(pinned)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
