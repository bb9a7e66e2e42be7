"""The MoE layer of a model, from its config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from moeprof.errors import ConfigError
from moeprof.profiler.kernels.site.moeprof_kernels.request import Shape

_HIDDEN = ("hidden_size", "d_model", "n_embd")
_INTERMEDIATE = ("moe_intermediate_size", "expert_intermediate_size", "intermediate_size", "ffn_hidden_size")
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
_TOP_K = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "top_k_experts")
_BLOCK = [128, 128]


def layer_shape(model: str, *, ranks: int = 1) -> Shape:
    """Return the MoE layer that one rank of expert parallelism holds.

    Args:
        model: Folder of the model, or its config.json.
        ranks: Ranks that share the experts.

    Raises:
        ConfigError: The file is missing or says no MoE layer, or its weights are in a format that is not built here.
    """
    file = Path(model)
    file = file / "config.json" if file.is_dir() else file
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"the model's layer sizes are read from its config.json: {error.strerror or error}",
            path=str(file),
            hint="name a folder of this machine that holds it: --model DIR",
        ) from error
    except ValueError as error:
        raise ConfigError(f"the model's config.json is no JSON: {error}", path=str(file)) from error
    if not isinstance(config, dict):
        raise ConfigError("the model's config.json is no JSON object", path=str(file))
    text = config.get("text_config")
    sizes = {**config, **text} if isinstance(text, dict) else config
    experts = _first(sizes, _EXPERTS, "number of experts", file)
    if ranks < 1 or experts % ranks:
        raise ConfigError(f"{experts} experts cannot be shared by {ranks} ranks", path=str(file))
    return Shape(
        hidden=_first(sizes, _HIDDEN, "hidden size", file),
        intermediate=_first(sizes, _INTERMEDIATE, "width of an expert", file),
        experts=experts // ranks,
        top_k=min(_first(sizes, _TOP_K, "number of experts per token", file), experts // ranks),
        weights=_weights(config, file),
    )


def _first(sizes: Mapping[str, object], keys: tuple[str, ...], what: str, file: Path) -> int:
    for key in keys:
        value = sizes.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    raise ConfigError(f"no {what} (one of {', '.join(keys)}), so there is no MoE layer to build", path=str(file))


def _weights(config: Mapping[str, object], file: Path) -> str:
    quantisation = config.get("quantization_config")
    if not isinstance(quantisation, dict):
        return "bf16"
    if quantisation.get("quant_method") == "fp8" and quantisation.get("weight_block_size") == _BLOCK:
        return "fp8_block"
    raise ConfigError(
        f"weights in {quantisation.get('quant_method') or 'an unnamed format'} are not built here",
        path=str(file),
        hint="bf16 and block-wise fp8 (128 x 128) are; others: profile with ncu and give the report with --from",
    )
