"""The family of a kernel's name: what stays the same where tiles, template arguments or numbers of generated code change."""

from __future__ import annotations

import re

from moeprof.wording import core

# Generated code says in its name which operators it fuses; these change at the borders of a compiled graph.
_GENERATED = re.compile(r"^(triton_[a-z]+_fused)(_.*)?$")
_TILE = re.compile(r"_(?:MT)?\d+x\d+.*$")
_NUMBER = re.compile(r"(_\d+)+$")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
# Templates that do anything: the family is that of the functor in them.
_FUNCTOR = re.compile(r"[fF]unctor|_kernel_cuda|Ops$|_copy_kernel|gpu_kernel_impl")
_GENERIC = re.compile(r"(?:^|::)(?:\w*elementwise_kernel\w*|reduce_kernel|device_kernel|Kernel2?|kernel)$")


def family(name: str) -> str:
    """Return the family of a kernel or operator name.

    >>> family("void humming<MmaOpClass, Shape<0u, 1024u, 512u>>(int*)"), family("triton_poi_fused_add_1")
    ('humming', 'triton_poi_fused')
    >>> family("nvjet_sm90_tst_24x64_64x16_4x2_h_bz_TNN"), family("aten::mm")
    ('nvjet_sm90_tst', 'aten::mm')
    """
    generated = _GENERATED.match(name)
    if generated:
        return generated.group(1)
    text = core(name).replace("(anonymous namespace)::", "")
    head, _, arguments = text.partition("<")
    if arguments and _GENERIC.search(head):
        head = f"{head}<{_inner(arguments)}>"
    short = _NUMBER.sub("", _TILE.sub("", head))
    return short or text


def _inner(arguments: str) -> str:
    """Return the identifier among template arguments that tells what a general kernel does."""
    words = _IDENTIFIER.findall(arguments)
    for word in words:
        last = word.rsplit("::", 1)[-1]
        if _FUNCTOR.search(last):
            return _NUMBER.sub("", last)
    named = next((word for word in words if "::" in word), "")
    return named.rsplit("::", 1)[-1]
