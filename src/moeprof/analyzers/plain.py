"""Results as plain JSON values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import cast

from moeprof.findings import Finding, JsonValue

_JSON_NAMES = {"class_": "class", "with_": "with"}


def to_json(value: object) -> JsonValue:
    """Return dataclasses, tuples and mappings as plain JSON values.

    A trailing underscore leaves a field's name; a field whose metadata say ``json: False`` is left out.
    """
    if isinstance(value, Finding):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        kept = (f for f in fields(value) if f.metadata.get("json", True))
        return {_JSON_NAMES.get(f.name, f.name): to_json(getattr(value, f.name)) for f in kept}
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return cast(JsonValue, value)
