"""Take secrets out of command lines, environments, log lines and manifests before they are stored.

A name tells (``HF_TOKEN``, ``--api-key``) or the look of a value does (``hf_...``, ``Bearer ...``, ``user:password@``). In doubt a
value goes: a manifest without a path is a nuisance, one with a password is an accident.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from moeprof.findings import JsonValue

REDACTED = "<redacted>"

_WORDS = "KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTH|COOKIE"
_SECRET_NAME = re.compile(_WORDS, re.IGNORECASE)
# Words of everyday serving that hold one of the above by chance.
_HARMLESS = re.compile(r"tokenizers?|detokeniz\w*|KeyError|keyword|keyboard|author(?:s|ed)?(?![a-z])", re.IGNORECASE)
# Counts of tokens and ids of tokens are numbers; a number under such a name is no secret, any other value is.
_COUNT_NAME = re.compile(r"tokens|token[_.-]?ids?(?![a-z])", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[kKmMgG]?")
# Identifiers that begin like a token of the Hugging Face hub.
_HUB_WORDS = (
    r"(?:\w+_)?config(?:_path|_cls)?|overrides|token|home|hub\w*|model\w*|processor\w*|tokenizer\w*|weights?\w*|transfer\w*"
    r"|xet\w*|datasets?\w*|cache\w*|utils|revision|prefix\w*|name\w*|to_vllm\w*"
)
_LOOKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        REDACTED,
    ),
    (re.compile(r"(?i)\b(bearer|basic)(\s+)(?![\s<])[^\s\"',;]{6,}"), rf"\1\2{REDACTED}"),
    (
        re.compile(
            r"([a-zA-Z][a-zA-Z0-9+.-]{0,30}://)(?:[^\s/\"'<>]{1,500}|[^\s/:@\"'<>]{1,200}:[^\s@\"'<>]{0,500}+)@"
        ),
        rf"\1{REDACTED}@",
    ),
    (re.compile(rf"\bhf_(?!(?:{_HUB_WORDS})\b)[A-Za-z0-9_-]{{6,}}"), REDACTED),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{6,}"), REDACTED),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|npm_|pypi-)[A-Za-z0-9_-]{6,}"), REDACTED),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}\b"), REDACTED),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"), REDACTED),
)
# A name is a whole run of its letters, taken at once: trying its parts would take the square of a long line, or worse.
_HOLDS = rf"(?=[\w.-]*?(?:{_WORDS}))"
_NAME = rf"(?<![\w.-]){_HOLDS}[\w.-]++"
_HEADER = re.compile(r"(?i)((?<![\w-])(?=[\w-]*?(?:authorization|cookie))[\w-]++\s*:\s*+)[^\r\n\"'<]+")
_ASSIGNED = re.compile(
    rf"""(?P<name>{_NAME})(?P<sign>\\?["']?\s*[=:]\s*)(?P<value>\[[^\]\n]*\]?|\\?"[^"\n]*"?|'[^'\n]*'?|[^\s,;&)}}\]"']+)""",
    re.IGNORECASE,
)
_OPTION = re.compile(
    rf"""(?P<name>(?<![\w-])--?{_HOLDS}[\w.-]++)(?P<sign>\s+)(?P<value>(?!--)(?:"[^"\n]*"?|'[^'\n]*'?|[^\s"']+))""",
    re.IGNORECASE,
)
_WORD_ASSIGNED = re.compile(r"(?P<name>-{0,2}[\w.-]+)=(?P<value>.*)", re.DOTALL)
_LEAST_KNOWN = 6


def is_secret_name(name: str) -> bool:
    """Tell whether what stands under a name is to be kept out.

    >>> [is_secret_name(name) for name in ("HF_TOKEN", "--api-key", "TOKENIZERS_PARALLELISM", "PATH")]
    [True, True, False, False]
    """
    return _SECRET_NAME.search(_HARMLESS.sub("", name)) is not None


def secrets(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of an environment that must not turn up anywhere else, longest first."""
    found = {value for name, value in variables.items() if _hides(name, value) and len(value) >= _LEAST_KNOWN}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def text(value: str, *, known: Collection[str] = ()) -> str:
    """Return text without what looks like a secret.

    Args:
        value: A log excerpt, a message, a value.
        known: Secrets that are known, as `secrets` finds them.

    >>> text("GET https://me:pw@host/x with HF_TOKEN=abc and max_tokens=5")
    'GET https://<redacted>@host/x with HF_TOKEN=<redacted> and max_tokens=5'
    """
    for secret in known:
        value = value.replace(secret, REDACTED)
    for pattern, instead in _LOOKS:
        value = pattern.sub(instead, value)
    value = _HEADER.sub(rf"\1{REDACTED}", value)
    value = _ASSIGNED.sub(_assigned, value)
    return _OPTION.sub(_assigned, value)


def env(variables: Mapping[str, str]) -> dict[str, str]:
    """Return an environment, sorted, without secrets.

    >>> env({"HF_TOKEN": "hf_dummy_value", "A": "1"})
    {'A': '1', 'HF_TOKEN': '<redacted>'}
    """
    known = secrets(variables)
    return {
        name: REDACTED if _hides(name, value) else text(value, known=known) for name, value in sorted(variables.items())
    }


def argv(words: Sequence[str], *, known: Collection[str] = ()) -> list[str]:
    """Return the words of a command line without secrets; every value after a telling option goes.

    >>> argv(["vllm", "serve", "m", "--api-key", "a", "b", "--max-num-batched-tokens", "8192"])
    ['vllm', 'serve', 'm', '--api-key', '<redacted>', '<redacted>', '--max-num-batched-tokens', '8192']
    """
    done: list[str] = []
    option: str | None = None
    first = False
    for word in words:
        is_option = word.startswith("--") or (word.startswith("-") and not first)
        if option is not None and not is_option:
            done.append(REDACTED if _hides(option, word) else _word(word, known))
            first = False
            continue
        option = word if word.startswith("-") and "=" not in word and is_secret_name(word) else None
        first = option is not None
        done.append(_word(word, known))
    return done


def value(item: JsonValue, *, known: Collection[str] = ()) -> JsonValue:
    """Return a JSON value without secrets; numbers stay, whatever they are called."""
    if isinstance(item, str):
        return text(item, known=known)
    if isinstance(item, list):
        return [value(each, known=known) for each in item]
    if isinstance(item, dict):
        return {name: _member(name, each, known) for name, each in item.items()}
    return item


def _member(name: str, item: JsonValue, known: Collection[str]) -> JsonValue:
    if is_secret_name(name):
        if isinstance(item, str):
            return REDACTED if _hides(name, item) else item
        if isinstance(item, list):
            return [_member(name, each, known) for each in item]
    return value(item, known=known)


def _word(word: str, known: Collection[str]) -> str:
    if word[:1] in ("{", "["):
        try:
            parsed: JsonValue = json.loads(word)
        except (ValueError, RecursionError):
            return text(word, known=known)
        clean = value(parsed, known=known)
        return word if clean == parsed else json.dumps(clean, ensure_ascii=False)
    match = _WORD_ASSIGNED.fullmatch(word)
    if match is None:
        return text(word, known=known)
    name, assigned = match["name"], match["value"]
    return f"{name}={REDACTED if _hides(name, assigned) else _word(assigned, known)}"


def _assigned(match: re.Match[str]) -> str:
    name, sign, assigned = match["name"], match["sign"], match["value"]
    quote = next((mark for mark in ('\\"', '"', "'") if assigned.startswith(mark)), "")
    bare = assigned.removeprefix(quote).removesuffix(quote) if quote else assigned
    if not bare or not _hides(name, bare):
        return match[0]
    return f"{name}{sign}{quote}{REDACTED}{quote}"


def _hides(name: str, assigned: str) -> bool:
    if not assigned or not is_secret_name(name):
        return False
    return not (_only_counts(name) and _are_numbers(re.split(r"[\s,]+", assigned.strip("[]() "))))


def _only_counts(name: str) -> bool:
    return not is_secret_name(_COUNT_NAME.sub("", name))


def _are_numbers(parts: Iterable[str]) -> bool:
    return all(_NUMBER.fullmatch(part) for part in parts)
