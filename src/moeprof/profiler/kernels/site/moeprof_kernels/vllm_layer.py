"""A MoE layer of the installed vLLM, with the expert backend that an arm names, alone on one device."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from .request import Shape


def build(shape: Shape, backend: str, device: str) -> Callable[[Any, Any], Any]:
    """Return a function from tokens (batch, hidden) and router logits (batch, experts) to the layer's output.

    The layer is made as a model makes it: under a configuration that names the backend, weights random, then processed as after loading.
    """
    import torch
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.config.kernel import KernelConfig
    from vllm.distributed import init_distributed_environment, initialize_model_parallel
    from vllm.forward_context import set_forward_context
    from vllm.model_executor.layers import fused_moe

    config = VllmConfig(kernel_config=KernelConfig(moe_backend=backend))
    torch.set_default_dtype(torch.bfloat16)
    with set_current_vllm_config(config), torch.device(device):
        group = "nccl" if device == "cuda" else "gloo"
        init_distributed_environment(1, 0, f"tcp://127.0.0.1:{_free_port()}", 0, group)
        initialize_model_parallel(1)
        _workspace(torch.device(device))
        make = getattr(fused_moe, "FusedMoEFactory", None) or fused_moe.FusedMoE  # its name up to vLLM 0.26
        layer = make(
            num_experts=shape.experts,
            top_k=shape.top_k,
            hidden_size=shape.hidden,
            intermediate_size=shape.intermediate,
            params_dtype=torch.bfloat16,
            quant_config=_quantisation(shape.weights),
            prefix="model.layers.0.mlp.experts",
        )
        _fill(layer)
        _process(layer)

    def run(tokens: Any, logits: Any) -> Any:
        with set_current_vllm_config(config), set_forward_context(None, config, num_tokens=tokens.shape[0]):
            return layer(tokens, logits)

    return run


def _quantisation(weights: str) -> Any:
    if weights == "bf16":
        return None
    from vllm.model_executor.layers.quantization.fp8 import Fp8Config

    return Fp8Config(is_checkpoint_fp8_serialized=True, activation_scheme="dynamic", weight_block_size=[128, 128])


def _workspace(device: Any) -> None:
    try:
        from vllm.v1.worker.workspace import init_workspace_manager
    except ImportError:  # versions before it had one
        return
    init_workspace_manager(device)


def _fill(layer: Any) -> None:
    """Give every weight random values of a sensible size; scales one value."""
    import torch

    for name, parameter in layer.named_parameters():
        if parameter.dtype.itemsize == 1:
            values = torch.randn(parameter.shape, device=parameter.device, dtype=torch.float32) * 16
            parameter.data.copy_(values.to(parameter.dtype))
        elif "scale" in name:
            parameter.data.fill_(0.001)
        elif parameter.is_floating_point():
            parameter.data.normal_(0, 0.02)


def _process(layer: Any) -> None:
    """Do what vLLM's loader does once the weights are there."""
    from vllm.model_executor.layers.quantization.base_config import QuantizeMethodBase

    for module in layer.modules():
        method = getattr(module, "quant_method", None)
        if isinstance(method, QuantizeMethodBase):
            method.process_weights_after_loading(module)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
