"""Rules: names of many libraries to classes; files that cannot be used; refinements by neighbours."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.iterations import attribute
from moeprof.errors import InputNotFoundError, RulesError
from tests.builders import kernel, rank

NAMES = {
    "void humming<MmaOpClass, Shape<0u, 1024u, 1024u>, Shape<56u> >(x)": ("moe_gemm", "HUMMING"),
    "fused_moe_kernel": ("moe_gemm", "Triton"),
    "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x256x128x1": ("moe_gemm", "Triton kernels"),
    "void marlin_moe_wna16::Marlin<half>(x)": ("moe_gemm", "Marlin"),
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<GroupProblemShape<x> > >(y)": (
        "moe_gemm",
        "CUTLASS",
    ),
    "bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x8x128u2_sm100f": ("moe_gemm", "TensorRT-LLM"),
    "void ck::kernel_moe_gemm<ck::GridwiseMoeGemm<x> >(y)": ("moe_gemm", "Composable Kernel"),
    "sm90_m_grouped_fp8_gemm_contiguous": ("moe_gemm", "DeepGEMM"),
    "_C::cpu_fused_moe": ("moe_gemm", "vLLM CPU"),
    "void sm90_fp8_mega_moe_fused_kernel<1024u>(MegaMoeParams)": ("moe_fused", "MegaMoE"),
    "kernel_cutlass_moe_dispatch_gemm_0": ("moe_fused", "FlashInfer CuTe DSL"),
    "kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel": ("norm", None),
    "void vllm::moe::grouped_topk_fused_small_expert_count_kernel<float>(x)": ("moe_route", "vLLM"),
    "void vllm::moe::moe_align_block_size_kernel<int>(x)": ("moe_route", "vLLM"),
    "moe_fused_mul_sum_kernel": ("moe_combine", "vLLM"),
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": ("all_gather", "NCCL"),
    "ncclSymkDevKernel_ReduceScatter_LD(x)": ("reduce_scatter", "NCCL"),
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": ("all_reduce", "NCCL"),
    "ncclDevKernel_Broadcast_RING_LL(x)": ("broadcast", "NCCL"),
    "ncclDevKernel_Reduce_Sum_bf16_RING_LL(x)": ("reduce", "NCCL"),
    "ncclDevKernel_Generic_4(x)": ("comm_other", "NCCL"),
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(x)": ("all_reduce", "custom all-reduce"),
    "void at::native::reduce_kernel<512, 1>(float)": ("elementwise", None),
    "void moe::finalize_gather_scatter_kernel<bf16>(int)": ("other", None),
    "nvjet_sm90_tst_64x16_64x16_4x1_v_bz_TNT": ("dense_gemm", None),
    "memcpy32_post": ("memcpy", None),
    "_prepare_prefill_inputs_kernel": ("sampling", "vLLM"),
    "c10d::allreduce_": ("all_reduce", "c10d"),
    "aten::add_": ("elementwise", None),
    "somebody_elses_kernel": ("other", None),
}


@pytest.mark.parametrize("name", NAMES)
def test_name_has_its_class_and_backend(name: str) -> None:
    explanation = load_classifier().explain(name)
    assert (explanation.class_, explanation.backend) == NAMES[name]
    assert (explanation.rule is None) is (explanation.class_ == "other")


def test_a_users_rules_come_first(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[[rule]]\nid = "mine"\nclass = "moe_fused"\nbackend = "Ours"\npattern = "somebody_elses"\n')
    explanation = load_classifier(file).explain("somebody_elses_kernel")
    assert (explanation.class_, explanation.rule, explanation.backend) == ("moe_fused", "mine", "Ours")
    assert explanation.source == str(file)
    assert load_classifier(file).explain("fused_moe_kernel").class_ == "moe_gemm"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[[rule]\n", "not valid TOML"),
        ('[[rule]]\nclass = "moe_gem"\npattern = "x"\n', "`class` is one of"),
        ('[[rule]]\nclass = "other"\n', "has no `pattern`"),
        ('[[rule]]\nclass = "other"\npattern = "("\n', "not a regular expression"),
        ('[[rule]]\nclass = "other"\npattern = "x"\nptern = "y"\n', "unknown key 'ptern'"),
        ('[[rule]]\nclass = "other"\npattern = "x"\nonly = "nowhere"\n', "`only` is one of"),
        ('[[rule]]\nclass = "moe_gemm"\npattern = "x"\ngemms = 3\n', "`gemms` is 1 or 2"),
        ("[rules]\n", "unknown key 'rules'"),
        ("version = 9\n", "version 9 is not known"),
        ("rule = 3\n", "rules are tables"),
        ("rule = [3]\n", "rule 1 is not a table"),
        ("collective = [1]\n", "collective 1 is not a table"),
        ('[[collective]]\nclass = "all_to_all"\npattern = "x"\nptern = "y"\n', "unknown key 'ptern' in collective 1"),
        ('[[collective]]\nclass = "all_to_al"\npattern = "x"\n', "collective 1: `class` is one of"),
        ('[[collective]]\nclass = "all_to_all"\n', "collective 1 has no `pattern`"),
        ('[[rule]]\nclass = "other"\npattern = "x"\nignore_case = "no"\n', "`ignore_case` is true or false"),
        ('[[rule]]\nclass = "other"\npattern = "x"\notherwise = 3\n', "`only` is one of"),
    ],
)
def test_a_rules_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, cause: str) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(text)
    with pytest.raises(RulesError, match=r".") as caught:
        load_classifier(file)
    assert cause in caught.value.message
    assert caught.value.path == str(file)


def test_missing_and_undecodable_rules_files(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError):
        load_classifier(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(RulesError, match="UTF-8"):
        load_classifier(tmp_path / "latin.toml")


def _classes(*names: str) -> list[str]:
    """Classes of kernels that run one after another."""
    events = [kernel(name, 10 * i, 5) for i, name in enumerate(names)]
    launches = attribute(rank(events), classifier=load_classifier()).launches
    return [str(class_) for class_ in launches["class"].cast(pl.String).to_list()]


ALIGN, HUMMING, SUM = (
    "vllm::moe::moe_align_block_size_kernel<int>",
    "humming<Shape<0u, 8u, 8u> >",
    "moe_fused_mul_sum_kernel",
)
ACT = "void vllm::act_and_mul_kernel<silu>(x)"


def test_humming_outside_a_moe_block_is_a_dense_gemm() -> None:
    assert _classes(HUMMING, ALIGN, HUMMING, HUMMING, SUM, HUMMING) == [
        "dense_gemm", "moe_route", "moe_gemm", "moe_gemm", "moe_combine", "dense_gemm",
    ]  # fmt: skip


def test_humming_is_a_moe_gemm_where_no_alignment_is_on_record() -> None:
    assert _classes(HUMMING, HUMMING) == ["moe_gemm", "moe_gemm"]


def test_one_activation_between_the_gemms_of_each_pair_is_the_experts() -> None:
    # GIVEN a dense MLP's activation, and the shared expert's beside the experts' own
    assert _classes(ACT, ALIGN, HUMMING, ACT, ACT, HUMMING, SUM, ACT) == [
        "elementwise", "moe_route", "moe_gemm", "elementwise", "moe_act", "moe_gemm", "moe_combine", "elementwise",
    ]  # fmt: skip


def test_batched_gemms_are_expert_gemms_only_where_tokens_are_routed() -> None:
    bmm = "bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x8x128"
    assert _classes(bmm, bmm) == ["dense_gemm", "dense_gemm"]
    assert _classes("moe::dev::routing::routingIndices", bmm, bmm) == ["moe_route", "moe_gemm", "moe_gemm"]


def test_a_lost_gemm_does_not_shift_the_activations_of_later_layers() -> None:
    layer = [ALIGN, HUMMING, ACT, HUMMING, SUM]
    cut = [ALIGN, ACT, HUMMING, SUM]
    classes = _classes(*cut, *layer, *layer)
    assert [i for i, class_ in enumerate(classes) if class_ == "moe_act"] == [6, 11]
