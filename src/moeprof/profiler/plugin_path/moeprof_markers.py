"""The door through which a server finds the marker plugin when moeprof is not installed in its environment.

This folder alone goes on the server's ``PYTHONPATH``: the folder that holds moeprof also holds packages of another environment.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_NAME = "moeprof_vllm_plugin"


def register() -> None:
    """Load the plugin from its file beside this folder, and let it register."""
    module = sys.modules.get(_NAME)
    if module is None:
        home = Path(__file__).resolve().parents[1]
        package = home / "vllm_plugin"
        within = [str(package)] if package.is_dir() else None
        file = package / "__init__.py" if within else home / "vllm_plugin.py"
        spec = importlib.util.spec_from_file_location(_NAME, file, submodule_search_locations=within)
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load {file}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[_NAME] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[_NAME]
            raise
    module.register()
