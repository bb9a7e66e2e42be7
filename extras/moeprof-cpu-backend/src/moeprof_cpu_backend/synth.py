"""Plugin ``moeprof_cpu_synth``: accept drafts at stated rates on the CPU, as ``"rejection_sample_method": "synthetic"`` does elsewhere.

A model with random weights rejects nearly every draft. vLLM can draw acceptance instead; its CPU sampler refuses to. Greedy
requests (temperature 0) only.
"""

from __future__ import annotations

from typing import Any

KERNEL = "vllm.v1.sample.rejection_sampler.rejection_greedy_sample_kernel"


def register() -> None:
    """Put the synthetic case before vLLM's CPU kernel. Safe to call again."""
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    from vllm.triton_utils import HAS_TRITON
    from vllm.utils import cpu_triton_utils

    plain = cpu_triton_utils._rejection_greedy_sample_kernel_impl
    if hasattr(plain, "_moeprof"):
        return

    def sample(
        output: Any,
        ends: Any,
        drafts: Any,
        targets: Any,
        bonus: Any,
        greedy: Any,
        longest: int,
        uniform_probs: Any = None,
        synthetic_conditional_rates: Any = None,
        SYNTHETIC_MODE: bool = False,  # noqa: N803 - the caller's name
    ) -> None:
        if not SYNTHETIC_MODE:
            plain(output, ends, drafts, targets, bonus, greedy, longest)
            return
        accept(output, ends, drafts, targets, bonus, greedy, uniform_probs, synthetic_conditional_rates)

    sample._moeprof = True  # type: ignore[attr-defined]
    cpu_triton_utils._rejection_greedy_sample_kernel_impl = sample
    if not HAS_TRITON:  # the dispatcher resolves names once
        from vllm.triton_utils.dispatcher import register_kernels

        register_kernels({KERNEL: sample})


def accept(output: Any, ends: Any, drafts: Any, targets: Any, bonus: Any, greedy: Any, luck: Any, rates: Any) -> None:
    """Fill each greedy row of `output`: drafts while luck lasts, then the target's own token, or the bonus token after all.

    Args:
        output: Tokens by request and position, written in place.
        ends: Where each request's drafts end in the flat arrays.
        drafts: Draft tokens; -1 is padding and never accepted.
        targets: The target model's tokens at the same places.
        bonus: Token after the last draft, by request.
        greedy: True by request where it samples greedily; None: all do.
        luck: Uniform numbers by draft.
        rates: Acceptance by position, given that all before were accepted.
    """
    limits, flat_bonus = ends.tolist(), bonus.flatten().tolist()
    flat = list(zip(drafts.tolist(), targets.tolist(), luck.tolist(), strict=True))
    chances = rates.tolist()
    for row, (begin, end) in enumerate(zip([0, *limits], limits, strict=False)):
        if greedy is not None and not bool(greedy[row]):
            continue
        for position, (draft, target, drawn) in enumerate(flat[begin:end]):
            kept = draft >= 0 and drawn < chances[position]
            output[row, position] = draft if kept else target
            if not kept:
                break
        else:
            output[row, end - begin] = flat_bonus[row]
