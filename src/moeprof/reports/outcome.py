"""The outcome of a comparison as the caller of the program sees it: the exit code and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """An exit code and the reason for it.

    Attributes:
        exit_code: The code.
        because: A clause such as ``because --fail-on none``; None where `caveat` says all.
        caveat: What was asked and could not be judged, or None.
    """

    exit_code: int
    because: str | None
    caveat: str | None = None

    @property
    def line(self) -> str:
        """Return the outcome in words.

        >>> Outcome(1, "because --fail-on structure", "gate could not be judged").line
        'exit 1 because --fail-on structure; gate could not be judged'
        """
        said = " ".join(str(part) for part in ("exit", self.exit_code, self.because) if part is not None)
        return said if self.caveat is None else f"{said}; {self.caveat}"
