"""Short forms of kernel names for sentences: the function without return type, template arguments and parameters."""

from __future__ import annotations

LONGEST = 60

_ANONYMOUS = "(anonymous namespace)::"
_CLOSING = {"<": ">", "(": ")", "{": "}"}


def shorten(name: str) -> str:
    """Return the function that a demangled kernel name names, cut at `LONGEST` characters.

    >>> shorten("void vllm::moe::moe_sum<float, 4>(float*, int)")
    'vllm::moe::moe_sum'
    >>> shorten("Memcpy HtoD (Pinned -> Device)")
    'Memcpy HtoD (Pinned -> Device)'
    """
    if name.startswith(("Memcpy ", "Memset ")):
        return _cut(name)
    bare, was_call = _without_brackets(name.replace(_ANONYMOUS, "").replace("->", "").removeprefix("void ").strip())
    # What stands before a blank is a return type; a name without brackets may be words of its own.
    short = bare.split()[-1] if was_call and bare.split() else bare
    return _cut(short or name)


def _without_brackets(name: str) -> tuple[str, bool]:
    kept: list[str] = []
    open_brackets: list[str] = []
    seen = False
    for character in name:
        if open_brackets:
            if character == open_brackets[-1]:
                open_brackets.pop()
            elif character in _CLOSING:
                open_brackets.append(_CLOSING[character])
        elif character == "(":  # the parameters, with which the name ends
            return "".join(kept).strip(), True
        elif character in _CLOSING:
            open_brackets.append(_CLOSING[character])
            seen = True
        else:
            kept.append(character)
    return "".join(kept).strip(), seen


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
