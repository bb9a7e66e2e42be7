"""Structures that differ in a known way: what is said, with which counts."""

from __future__ import annotations

from moeprof.analyzers.layers.changes import layer_changes, representative, variant_changes
from moeprof.analyzers.layers.findings import layer_findings
from moeprof.analyzers.layers.results import LayerRow
from moeprof.analyzers.layers.sequences import sequences
from moeprof.analyzers.layers.structure import layer_rows
from tests.unit.analyzers.layers.captures import (
    ATTENTION,
    DENSE,
    DRAFT,
    EXPERTS,
    HEAD,
    MEGA,
    MOE,
    TAIL,
    Launch,
    capture,
    structure,
    target,
)

LAYERS = 42


def sentences(base: tuple[LayerRow, ...], candidate: tuple[LayerRow, ...]) -> list[str]:
    """Return what is said, without the times."""
    said = [change.sentence for change in layer_changes(base, candidate) if change.sentence]
    return [line.split("; kernel busy")[0] for line in said] + list(variant_changes(base, candidate))


class TestStructure:
    def test_rows_of_a_capture(self) -> None:
        # GIVEN a dense layer, 42 layers with experts and three draft passes WHEN folded
        rows = structure([MOE] * LAYERS)
        # THEN roles, counts and times are those of the capture
        assert [(row.phase, row.repeat, row.role, len(row.sequence)) for row in rows] == [
            ("target", 1, "other", len(HEAD)),
            ("target", 1, "dense_layer", len(DENSE)),
            ("target", LAYERS, "moe_layer", len(MOE)),
            ("target", 1, "other", len(TAIL)),
            ("draft", 3, "pass", len(DRAFT)),
        ]
        layer = rows[2]
        assert layer.sequence == tuple(class_ for class_, _ in MOE)
        assert (layer.alike, layer.launches, layer.variants) == (LAYERS, LAYERS * len(MOE), ())
        assert (layer.kernel_sum_ns, layer.kernel_busy_ns, set(layer.duration_ns)) == (1500, 1500, {100})
        assert sum(row.share or 0 for row in rows if row.phase == "target") == 1.0
        assert (layer.iterations, layer.iterations_counted) == (3, 3)

    def test_an_iteration_that_differs_is_named(self) -> None:
        # GIVEN one of three iterations with a launch more
        usual = (target([MOE] * 5), DRAFT)
        odd = ([("memcpy", "copy_in"), *target([MOE] * 5)], DRAFT)
        # WHEN the sequences are taken
        first, second = sequences(capture([usual, odd, usual]))
        # THEN it is not the one that stands for all, and what it has more is told
        assert (first.iterations, first.counted, first.differing) == (2, 3, 1)
        assert [(one.iteration, one.differences[0][1]) for one in first.others] == [(1, 1)]
        assert (second.iterations, second.differing) == (3, 0)

    def test_tiles_of_a_gemm_do_not_matter(self) -> None:
        # GIVEN layers whose GEMMs were tuned differently
        other = [(class_, name.replace("128x64", "256x32").replace("humming<1>", "humming<9>")) for class_, name in MOE]
        # WHEN folded THEN they are one body
        assert [row.repeat for row in structure([MOE, other] * 5) if row.phase == "target"] == [1, 1, 10, 1]

    def test_no_launches(self) -> None:
        assert layer_rows(sequences(capture([([], [])]))) == ()

    def test_most_ranks_stand_for_a_side(self) -> None:
        usual, odd = structure([MOE] * 5), structure([MOE] * 4)
        assert representative([odd, usual, usual]) == usual
        assert representative([]) == ()


class TestChanges:
    def test_nothing(self) -> None:
        rows = structure([MOE] * LAYERS)
        assert sentences(rows, rows) == []
        assert {change.change for change in layer_changes(rows, rows)} == {"same"}

    def test_experts_become_one_launch(self) -> None:
        # GIVEN 42 layers, then with a fused launch WHEN compared THEN one sentence with exact counts
        base, candidate = structure([MOE] * LAYERS), structure([MEGA] * LAYERS)
        assert sentences(base, candidate) == [
            "42 target MoE layers: AG + 2 GEMM + RS and 3 helpers replaced by 1 fused launch"
        ]
        change = next(one for one in layer_changes(base, candidate) if one.change == "changed")
        assert (change.repeat, len(change.base), len(change.candidate)) == (42, 15, 9)
        assert "not a saving of time" in (change.sentence or "")
        # AND the other way round
        assert sentences(candidate, base) == [
            "42 target MoE layers: 1 fused launch replaced by AG + 2 GEMM + RS and 3 helpers"
        ]

    def test_gemms_of_another_backend_are_the_same_gemms(self) -> None:
        # GIVEN another library's names for the experts' kernels
        names = {"humming<1>": "fused_moe_kernel", "humming<2>": "fused_moe_kernel", "mul_sum": "moe_sum"}
        triton: list[Launch] = [(class_, names.get(name, name)) for class_, name in MOE]
        # WHEN compared THEN class and order pair them
        assert sentences(structure([MOE] * LAYERS), structure([triton] * LAYERS)) == [
            "42 target MoE layers: 2 moe_gemm: humming -> fused_moe_kernel; 1 moe_combine: mul_sum -> moe_sum"
        ]

    def test_an_additional_all_reduce_in_each_layer(self) -> None:
        more = [*ATTENTION, ("all_reduce", "ncclDevKernel_AllReduce"), *EXPERTS]
        assert sentences(structure([MOE] * LAYERS), structure([more] * LAYERS)) == [
            "42 target MoE layers: 1 all-reduce added"
        ]

    def test_one_layer_fell_back_to_the_old_path(self) -> None:
        # GIVEN a fused arm of which one layer is as before WHEN compared with the fused arm
        base, candidate = structure([MEGA] * LAYERS), structure([*[MEGA] * 20, MOE, *[MEGA] * 21])
        # THEN it is one of 42
        assert sentences(base, candidate) == [
            "1 of 42 target MoE layers: 1 fused launch replaced by AG + 2 GEMM + RS and 3 helpers"
        ]

    def test_one_layer_was_not_fused(self) -> None:
        # GIVEN the same arm WHEN compared with the unfused one THEN 41 changed
        base, candidate = structure([MOE] * LAYERS), structure([*[MEGA] * 20, MOE, *[MEGA] * 21])
        assert sentences(base, candidate) == [
            "41 of 42 target MoE layers: AG + 2 GEMM + RS and 3 helpers replaced by 1 fused launch"
        ]

    def test_drafts_doubled(self) -> None:
        rows = structure([MOE] * LAYERS), structure([MOE] * LAYERS, drafts=6)
        assert sentences(*rows) == ["draft passes: 3 -> 6 per iteration (each AG + 2 GEMM + RS and 15 helpers)"]

    def test_a_launch_missing_in_one_layer(self) -> None:
        # GIVEN one layer without its activation
        short = [launch for launch in MOE if launch[0] != "moe_act"]
        candidate = structure([*[MOE] * 10, short, *[MOE] * 31])
        # WHEN compared THEN the bodies are the same, and that layer is named
        assert sentences(structure([MOE] * LAYERS), candidate) == [
            "1 of 42 target MoE layers (number 11) is without 1 moe_act"
        ]

    def test_reordered(self) -> None:
        # GIVEN the first two launches of a layer the other way round
        turned = [*ATTENTION, EXPERTS[0], EXPERTS[2], EXPERTS[1], *EXPERTS[3:]]
        assert sentences(structure([MOE] * LAYERS), structure([turned] * LAYERS)) == [
            "42 target MoE layers: AG in another order"
        ]


class TestFindings:
    def test_a_layer_unlike_the_others_is_named(self) -> None:
        # GIVEN 42 fused layers of which one is as before, and 42 of which one lacks a launch
        short = [launch for launch in MOE if launch[0] != "moe_act"]
        torn = layer_findings(structure([*[MEGA] * 20, MOE, *[MEGA] * 21]), "rank0")
        lacking = layer_findings(structure([*[MOE] * 10, short, *[MOE] * 31]), "rank0")
        # WHEN findings are made THEN each names the layer
        assert [one.message for one in torn] == [
            "target: MoE layer 21 of 42 is unlike the ones around it: AG + 2 GEMM + RS and 3 helpers in place of "
            "1 fused launch"
        ]
        assert [one.message for one in lacking] == ["target: MoE layer 11 of 42 is without 1 moe_act"]
        assert {one.slug for one in (*torn, *lacking)} == {"layer-differs"}

    def test_layers_that_are_alike(self) -> None:
        assert layer_findings(structure([MOE] * LAYERS), None) == ()
