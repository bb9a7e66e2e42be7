"""The file of written claims: which arms they are about, and the claims."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moeprof.errors import ClaimError, InputNotFoundError

if TYPE_CHECKING:
    from moeprof.analyzers.claims.written import WrittenClaim
    from moeprof.analyzers.serving.metrics import Metrics

_KEYS = ("base", "candidate", "store", "claim")


@dataclass(frozen=True, slots=True)
class ClaimsFile:
    """What a file says; `base`, `candidate` and `store` are None where it does not."""

    claims: tuple[WrittenClaim, ...]
    base: str | None
    candidate: str | None
    store: str | None


def read_claims(path: str, metrics: Metrics) -> ClaimsFile:
    """Return the claims of a TOML file. Paths in it are relative to it, where they exist there.

    Raises:
        InputNotFoundError: It cannot be read.
        ClaimError: It is no TOML, or a claim cannot be understood.
    """
    from moeprof.analyzers.claims.written import claim_of

    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputNotFoundError(f"cannot read the claims: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise ClaimError("the file is not UTF-8", path=path, byte=error.start) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ClaimError(f"the file is not TOML: {error}", path=path) from error
    for key in data:
        if key not in _KEYS:
            raise ClaimError(f"unknown key {key!r}", path=path, hint=f"the keys are {', '.join(_KEYS)}")
    tables = data.get("claim")
    if not isinstance(tables, list) or not tables:
        raise ClaimError("the file has no claim", path=path, hint='[[claim]] with text = "+6.72 % output throughput"')
    claims = tuple(claim_of(table, number, metrics, path) for number, table in enumerate(tables, 1))
    return ClaimsFile(claims, *(_place(data, key, path) for key in ("base", "candidate", "store")))


def _place(data: Mapping[str, object], key: str, path: str) -> str | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ClaimError(f"{key} is {value!r}, not a name or a path", path=path)
    beside = Path(path).parent / value
    return str(beside) if key == "store" or beside.exists() else value
