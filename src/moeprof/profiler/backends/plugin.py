"""The environment that brings moeprof's marker plugin into a vLLM server, which need not have moeprof installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from moeprof.config.schema import Arm

PLUGIN = "moeprof_markers"
SWITCH = "MOEPROF_MARKERS"  # the plugin does nothing without it
PLUGIN_PATH = Path(__file__).resolve().parents[1] / "server_site"  # only the plugin lies there: no package of ours


def plugin_environment(arm: Arm, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what an arm's environment needs for markers; empty when it wants none.

    Args:
        arm: The arm; its own ``PYTHONPATH`` and ``VLLM_PLUGINS`` are kept and completed.
        inherited: Environment that the server inherits; None: ours.
    """
    if not arm.markers:
        return {}
    before = {**(os.environ if inherited is None else inherited), **arm.env}
    places = [place for place in before.get("PYTHONPATH", "").split(os.pathsep) if place]
    if str(PLUGIN_PATH) not in places:
        places.append(str(PLUGIN_PATH))
    added = {SWITCH: "1", "PYTHONPATH": os.pathsep.join(places)}
    if "VLLM_PLUGINS" in before:  # unset means all of them
        names = [name.strip() for name in before["VLLM_PLUGINS"].split(",") if name.strip()]
        added["VLLM_PLUGINS"] = ",".join(names if PLUGIN in names else [*names, PLUGIN])
    return added
