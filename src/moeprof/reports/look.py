"""How output is to look: width, colour, character set, long or short. Decided at the rim, obeyed by the renderers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a rendering.

    Attributes:
        width: Columns of the page; tables with full names may be wider under `wide`.
        color: Whether escape sequences for colour may be used.
        unicode: Whether the receiver can take box characters, bullets and the ellipsis.
        wide: Whether nothing is folded or shortened.
    """

    width: int = 100
    color: bool = False
    unicode: bool = True
    wide: bool = False
