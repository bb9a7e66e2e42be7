"""A stored run: a folder that is complete, and its manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moeprof.store.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder with its manifest.

    Attributes:
        path: The folder.
        manifest: What it says about itself.
    """

    path: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        """Return the run's identity: ``mega/20261130T203730Z-1``."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def traces(self) -> Path:
        """Return the folder of raw traces."""
        return self.path / "traces"

    @property
    def has_traces(self) -> bool:
        """Tell whether there is a trace."""
        return self.traces.is_dir() and any(self.traces.iterdir())

    @property
    def bench(self) -> Path:
        """Return the folder of the client's raw results."""
        return self.path / "bench"
