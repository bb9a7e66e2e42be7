"""Word the reader's notices as findings."""

from __future__ import annotations

from moeprof.findings import Finding, Severity

# One event of a kind, several of a kind, and the consequence.
_TEXTS: dict[str, tuple[Severity, str, str, str]] = {
    "invalid-utf8": ("warning", "text is", "texts are", "not valid UTF-8; the bad bytes were replaced"),
    "lone-surrogate": ("warning", "text holds", "texts hold", "half a surrogate pair; it was replaced"),
    "control-character": ("warning", "text holds", "texts hold", "a raw control character; it was kept"),
    "non-finite-number": ("warning", "number is", "numbers are", "not finite; they count as absent"),
    "bad-id": ("warning", "id is", "ids are", "negative, fractional or above 64 bits; they count as absent"),
    "missing-time": ("warning", "event has", "events have", "no readable time"),
    "dropped-event": ("warning", "broken event was", "broken events were", "left out"),
    "sub-nanosecond": ("note", "time has", "times have", "digits below 1 ns; they were rounded"),
    "trailing-comma": ("note", "comma stands", "commas stand", "before a closing bracket"),
    "empty-event": ("note", "element of traceEvents is", "elements of traceEvents are", "empty; skipped"),
}
_SENTENCES: dict[str, tuple[Severity, str]] = {
    "missing-end-mark": ("note", "the array of events has no closing bracket; every event is whole"),
    "trailing-data": ("note", "data follows the end of the document; ignored"),
    "truncated": ("warning", "the file ends early; what is whole was read"),
}


def finding(slug: str, count: int, first_byte: int, first_line: int, example: str) -> Finding:
    """Return the finding of one notice of the reader, under the same slug."""
    if slug in _SENTENCES:
        severity, text = _SENTENCES[slug]
    else:
        severity, one, many, rest = _TEXTS.get(slug, ("warning", f"case of {slug}", f"cases of {slug}", "in the file"))
        text = f"{count} {one if count == 1 else many} {rest}"
    return Finding(
        slug,
        severity,
        f"{text} (first at line {first_line}, byte {first_byte})",
        evidence={"count": count, "first_byte": first_byte, "first_line": first_line, "example": example},
    )
