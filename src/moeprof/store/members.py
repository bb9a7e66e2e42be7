"""Take typed members out of a JSON object of a manifest, and name the one that is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

from moeprof.errors import ManifestError
from moeprof.findings import JsonValue


class Members:
    """The members of an object; an absent list or object is an empty one.

    Args:
        value: The object.
        path: The manifest it stands in, for messages.
    """

    def __init__(self, value: object, path: str | None) -> None:
        self._path = path
        if not isinstance(value, dict):
            self._refuse("a member", value, "an object")
        self._value: Mapping[str, object] = value

    def text(self, name: str) -> str:
        """Return a text."""
        item = self._value.get(name)
        return item if isinstance(item, str) else self._refuse(name, item, "a text")

    def optional(self, name: str) -> str | None:
        """Return a text, or None where there is none."""
        return None if self._value.get(name) is None else self.text(name)

    def word(self, name: str, allowed: Sequence[str]) -> str:
        """Return one of the allowed words."""
        item = self.text(name)
        return item if item in allowed else self._refuse(name, item, " or ".join(allowed))

    def integer(self, name: str) -> int:
        """Return an integer."""
        item = self._value.get(name)
        return (
            item
            if isinstance(item, int) and item is not True and item is not False
            else self._refuse(name, item, "an integer")
        )

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        return [item if isinstance(item, str) else self._refuse(name, item, "a text") for item in self._list(name)]

    def mapping(self, name: str) -> dict[str, JsonValue]:
        """Return an object."""
        return cast("dict[str, JsonValue]", self.members(name))

    def members(self, name: str) -> dict[str, object]:
        """Return an object whose values are yet to be looked at."""
        item = self._value.get(name)
        if item is None:
            return {}
        return item if isinstance(item, dict) else self._refuse(name, item, "an object")

    def mappings(self, name: str) -> list[dict[str, JsonValue]]:
        """Return a list of objects."""
        return [item if isinstance(item, dict) else self._refuse(name, item, "an object") for item in self._list(name)]

    def _list(self, name: str) -> list[object]:
        item = self._value.get(name)
        if item is None:
            return []
        return item if isinstance(item, list) else self._refuse(name, item, "a list")

    def _refuse(self, name: str, item: object, wanted: str) -> NoReturn:
        raise ManifestError(f"{name} in the manifest is {_short(item)}, not {wanted}", path=self._path)


def _short(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 80 else f"{text[:77]}..."
