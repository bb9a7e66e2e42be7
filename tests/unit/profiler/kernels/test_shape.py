from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeprof.errors import ConfigError
from moeprof.profiler.kernels.shape import layer_shape
from moeprof.profiler.kernels.site.moeprof_kernels.request import Shape

GLM = {
    "hidden_size": 1024,
    "moe_intermediate_size": 512,
    "intermediate_size": 2048,
    "n_routed_experts": 32,
    "num_experts_per_tok": 4,
}


def model(tmp_path: Path, **values: object) -> str:
    (tmp_path / "config.json").write_text(json.dumps(values))
    return str(tmp_path)


def test_sizes_come_from_the_keys_that_model_families_use(tmp_path: Path) -> None:
    # GIVEN the keys of DeepSeek and GLM WHEN read THEN the experts' width is theirs, not the dense layers'
    assert layer_shape(model(tmp_path, **GLM)) == Shape(1024, 512, 32, 4, "bf16")
    # GIVEN the keys of Mixtral
    mixtral = {"hidden_size": 4096, "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2}
    assert layer_shape(model(tmp_path, **mixtral)) == Shape(4096, 14336, 8, 2, "bf16")
    # GIVEN a model with a text part
    assert layer_shape(model(tmp_path, text_config=GLM)) == Shape(1024, 512, 32, 4, "bf16")


def test_ranks_share_the_experts(tmp_path: Path) -> None:
    # GIVEN 32 experts on 16 ranks WHEN read THEN two are held, and no token goes to more than are there
    assert layer_shape(model(tmp_path, **GLM), ranks=16) == Shape(1024, 512, 2, 2, "bf16")
    with pytest.raises(ConfigError, match="32 experts cannot be shared by 5 ranks"):
        layer_shape(model(tmp_path, **GLM), ranks=5)


def test_block_wise_fp8_is_known_and_other_formats_are_refused(tmp_path: Path) -> None:
    # GIVEN block-wise fp8 WHEN read THEN so are the weights
    fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert layer_shape(model(tmp_path, **GLM, quantization_config=fp8)).weights == "fp8_block"
    # GIVEN another format THEN it is named
    with pytest.raises(ConfigError, match="weights in awq are not built here"):
        layer_shape(model(tmp_path, **GLM, quantization_config={"quant_method": "awq"}))


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "no JSON"), ("[]", "no JSON object"), ('{"hidden_size": 8}', "no number of experts")],
)
def test_a_config_without_a_layer_says_what_is_missing(tmp_path: Path, text: str, said: str) -> None:
    # GIVEN a config.json that holds no MoE layer WHEN read THEN the sentence says so
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigError, match=said):
        layer_shape(str(tmp_path))


def test_a_model_that_is_no_folder_says_what_to_do(tmp_path: Path) -> None:
    # GIVEN a name of a hub WHEN read THEN the hint names the way out
    with pytest.raises(ConfigError) as caught:
        layer_shape("zai-org/GLM-4.5-Air")
    assert "--model" in str(caught.value.hint)
