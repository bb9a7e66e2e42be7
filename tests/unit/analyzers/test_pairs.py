"""Pairs of dispatch and combine, and of expert GEMMs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moeprof.analyzers.pairs import pair_findings, pairs
from moeprof.analyzers.results import AgRsPairs, GemmPairs
from moeprof.analyzers.tables import Attribution
from moeprof.findings import Finding
from tests.unit.analyzers.attributions import attribution, launches, shuffled

LAYER = "T AG G moe_act G C RS "
CPU_LAYER = "T 3*AG GG RS "


def _iterations(*words: str, phase: str = "target") -> Attribution:
    """Return an attribution with one sequence of launches per iteration."""
    rows = [row for number, text in enumerate(words) for row in launches(text, iteration=number, phase=phase)]
    return attribution(rows, len(words))


def _ag_rs(words: str) -> tuple[int | None, ...]:
    """Return pairs, unmatched dispatch and combine ends, and equivalents of one iteration."""
    found = pairs(_iterations(words)).ag_rs
    return found.per_iteration, found.unmatched_ag, found.unmatched_rs, found.equivalents


def _gemm(words: str) -> tuple[int | None, int | None]:
    found = pairs(_iterations(words)).moe_gemm
    return found.per_iteration, found.unmatched


def _slugs(findings: Sequence[Finding]) -> list[str]:
    return [finding.slug for finding in findings]


class TestWholeIterations:
    def test_target_layers_and_three_drafts(self) -> None:
        # GIVEN two iterations of 42 target layers and one layer in each of three drafts
        rows = [
            row
            for number in range(2)
            for row in [
                *launches(LAYER * 42, iteration=number),
                *launches("sampling", iteration=number, phase="sample"),
                *launches(LAYER * 3, iteration=number, phase="draft"),
            ]
        ]
        # WHEN
        found = pairs(attribution(rows))
        # THEN
        assert found.ag_rs == AgRsPairs(42, 3, 0, 45, 90, 0, 0, 0, constant=True)
        assert found.moe_gemm == GemmPairs(42, 3, 0, 45, 90, 0, constant=True)
        assert pair_findings(attribution(rows)) == ()

    def test_three_gathers_per_dispatch_and_operators_that_do_both_gemms(self) -> None:
        # GIVEN a CPU-only iteration: 9 all-gathers and 3 reduce-scatters in either phase
        rows = [*launches(CPU_LAYER * 3), *launches(CPU_LAYER * 3, phase="draft")]
        # WHEN
        found = pairs(attribution(rows, cpu_only=True))
        # THEN
        assert found.ag_rs == AgRsPairs(3, 3, 0, 6, 6, 0, 0, 0, constant=True)
        assert found.moe_gemm == GemmPairs(3, 3, 0, 6, 6, 0, constant=True)

    def test_fused_target_leaves_the_pairs_of_the_drafts(self) -> None:
        # GIVEN fused target layers
        rows = [*launches("T F " * 42), *launches(LAYER * 3, phase="draft")]
        # WHEN
        found = pairs(attribution(rows))
        # THEN
        assert found.ag_rs == AgRsPairs(0, 3, 0, 3, 3, 0, 0, 0, constant=True)
        assert found.moe_gemm == GemmPairs(0, 3, 0, 3, 3, 0, constant=True)

    def test_pair_does_not_cross_a_phase(self) -> None:
        # GIVEN a dispatch at the end of the target and a combine at the start of the draft
        rows = [*launches("AG G"), *launches("G RS", phase="draft")]
        # WHEN
        found = pairs(attribution(rows))
        # THEN
        assert found.ag_rs == AgRsPairs(0, 0, 0, 0, 0, 1, 1, 0, constant=True)
        assert found.moe_gemm == GemmPairs(0, 0, 0, 0, 0, 2, constant=True)

    def test_pair_does_not_cross_an_iteration(self) -> None:
        # GIVEN a dispatch in iteration 0 and its combine in iteration 1
        found = pairs(_iterations("AG G", "G RS"))
        # THEN
        assert found.ag_rs.total == 0
        assert found.moe_gemm.total == 0

    def test_start_decides_and_then_the_event(self) -> None:
        # GIVEN a combine first in the file but last in time, and a dispatch and a GEMM of one start
        rows = [
            {"class": "reduce_scatter", "start_ns": 90},
            {"class": "broadcast", "start_ns": 50},
            {"class": "moe_gemm", "start_ns": 50},
        ]
        # WHEN
        found = pairs(attribution(rows)).ag_rs
        # THEN the GEMM lies within, because its event number is higher
        assert (found.total, found.equivalents) == (1, 1)

    def test_only_counted_iterations_enter(self) -> None:
        # GIVEN a prefill, a decode and a partial decode iteration
        rows = [row for number in range(3) for row in launches(LAYER, iteration=number)]
        # WHEN
        found = pairs(attribution(rows, [{"kind": "prefill"}, {}, {"partial": True}]))
        # THEN
        assert found.ag_rs == AgRsPairs(1, 0, 0, 1, 1, 0, 0, 0, constant=True)

    def test_nothing_launched_is_zero_per_iteration(self) -> None:
        # GIVEN two iterations without launches
        found = pairs(attribution([], 2))
        # THEN
        assert found.ag_rs == AgRsPairs(0, 0, 0, 0, 0, 0, 0, 0, constant=True)
        assert found.moe_gemm == GemmPairs(0, 0, 0, 0, 0, 0, constant=True)

    def test_no_counted_iteration_is_no_data(self) -> None:
        # GIVEN a family whose only iteration is partial
        source = attribution(launches(LAYER), [{"partial": True}])
        # WHEN / THEN
        assert pairs(source).ag_rs == AgRsPairs(None, None, None, None, 0, None, None, None, None)
        assert pairs(source).moe_gemm == GemmPairs(None, None, None, None, 0, None, None)
        assert pair_findings(source) == ()

    def test_no_family_gives_the_total_of_the_window(self) -> None:
        # GIVEN a trace without markers
        found = pairs(attribution(launches(LAYER * 5), family=None))
        # THEN
        assert found.ag_rs == AgRsPairs(None, None, None, None, 5, None, None, None, None)
        assert found.moe_gemm == GemmPairs(None, None, None, None, 5, None, None)


class TestDispatchAndCombine:
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("AG RS", (1, 0, 0, 0)),  # no expert on record: adjacency alone decides
            ("AG moe_route norm AG G G RS", (1, 0, 0, 0)),  # other classes do not part a run
            ("AG T AG T AG T AG T", (0, 4, 0, 0)),  # logits, gathered between layers
            ("AG C AG G RS", (1, 1, 0, 0)),
            ("AG F AG RS", (0, 2, 1, 0)),  # experts elsewhere: this gather and scatter are of no MoE layer
            ("AG T RS AG G G RS AG T RS AG G G RS", (2, 2, 2, 0)),  # sequence-parallel attention beside two MoE layers
            ("AG dense_gemm RS AG G G RS", (1, 1, 1, 0)),  # a dense layer first
            ("AG G AG G RS", (1, 1, 0, 0)),
            ("3*AG T 3*AG G RS", (1, 1, 0, 0)),  # an end is a run, not a launch
            ("RS", (0, 0, 1, 0)),
            ("RS RS AG G RS RS", (1, 0, 3, 0)),
            ("AG RS AG RS AG", (2, 1, 0, 0)),
        ],
    )
    def test_gathers_and_scatters(self, words: str, expected: tuple[int, ...]) -> None:
        # GIVEN one iteration / WHEN / THEN
        assert _ag_rs(words) == expected

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("B G G D", (1, 0, 0, 1)),
            ("3*B GG 3*D", (1, 0, 0, 1)),  # runs of either spelling are one end
            ("B G G RS", (1, 0, 0, 1)),
            ("AG G G D", (1, 0, 0, 1)),
            ("B G G D AG G G RS", (2, 0, 0, 1)),  # both spellings in one iteration
            ("B G RS AG G D AG G RS B G D", (4, 0, 0, 3)),
        ],
    )
    def test_equivalents(self, words: str, expected: tuple[int, ...]) -> None:
        # GIVEN broadcasts and reduces around expert GEMMs / WHEN / THEN
        assert _ag_rs(words) == expected

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("B", (0, 0, 0, 0)),
            ("D", (0, 0, 0, 0)),
            ("B D", (0, 0, 0, 0)),
            ("B F D", (0, 0, 0, 0)),  # a fused launch is no expert GEMM
            ("G B D G", (0, 0, 0, 0)),
            ("B AG G G RS D", (1, 0, 0, 0)),
            ("AG B RS", (1, 0, 0, 0)),
            ("AG D RS", (1, 0, 0, 0)),
            ("AG G G B RS", (1, 0, 0, 0)),
            ("AG D G G RS", (1, 0, 0, 0)),
            ("AG B AG RS", (1, 0, 0, 0)),  # nor does it part a run
            ("B T AG G RS", (1, 0, 0, 0)),
        ],
    )
    def test_bystanders_are_ignored(self, words: str, expected: tuple[int, ...]) -> None:
        # GIVEN broadcasts and reduces that enclose no expert GEMM / WHEN / THEN
        assert _ag_rs(words) == expected

    def test_broadcast_and_reduce_of_two_phases_do_not_meet(self) -> None:
        # GIVEN a broadcast and an expert GEMM in the target, a reduce in the draft
        rows = [*launches("B G"), *launches("G D", phase="draft")]
        # WHEN / THEN
        assert pairs(attribution(rows)).ag_rs == AgRsPairs(0, 0, 0, 0, 0, 0, 0, 0, constant=True)


class TestExpertGemms:
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("G G", (1, 0)),
            ("G moe_act quant G", (1, 0)),
            ("4*G", (2, 0)),
            ("3*G", (1, 1)),
            ("GG GG", (2, 0)),
            ("GG G G", (2, 0)),
            ("G T G", (0, 2)),
            ("G C G", (0, 2)),
            ("G F G", (0, 2)),
            ("G AG G", (0, 2)),
            ("G RS G", (0, 2)),
            ("3*G T 3*G", (2, 2)),  # odd ones of two runs do not make a pair
            ("B 3*G D G", (1, 2)),  # an equivalent end parts a run
            ("G B D G", (1, 0)),  # a bystander does not
        ],
    )
    def test_runs(self, words: str, expected: tuple[int, int]) -> None:
        # GIVEN one iteration / WHEN / THEN
        assert _gemm(words) == expected


class TestVarying:
    def test_commonest_value_and_not_constant(self) -> None:
        # GIVEN three iterations, one with a layer less
        found = pairs(_iterations(LAYER * 4, LAYER * 3, LAYER * 4))
        # THEN
        assert found.ag_rs == AgRsPairs(4, 0, 0, 4, 11, 0, 0, 0, constant=False)
        assert found.moe_gemm == GemmPairs(4, 0, 0, 4, 11, 0, constant=False)

    def test_per_iteration_is_taken_over_sums_not_over_phases(self) -> None:
        # GIVEN iterations of equal sum whose pairs lie in different phases
        rows = [*launches("AG RS"), *launches("AG RS", iteration=1, phase="draft"), *launches("AG RS", iteration=2)]
        # WHEN
        found = pairs(attribution(rows)).ag_rs
        # THEN
        assert found == AgRsPairs(1, 0, 0, 1, 3, 0, 0, 0, constant=False)

    def test_leftovers_alone_make_it_not_constant(self) -> None:
        # GIVEN equal pairs and one leftover
        found = pairs(_iterations("AG RS", "AG RS", "AG RS T AG")).ag_rs
        # THEN
        assert (found.target, found.unmatched_ag, found.constant) == (1, 0, False)

    def test_spelling_alone_leaves_it_constant(self) -> None:
        # GIVEN the same pairs in two spellings
        found = pairs(_iterations("AG G G RS", "B G G D", "AG G G RS")).ag_rs
        # THEN
        assert found == AgRsPairs(1, 0, 0, 1, 3, 0, 0, 0, constant=True)

    def test_finding_names_the_iterations(self) -> None:
        # GIVEN iteration 1 with an AG/RS pair less and the same GEMM pairs
        both, one = "AG G RS AG G RS", "G AG G RS"
        findings = [f for f in pair_findings(_iterations(both, one, both)) if f.evidence.get("pairs") == "ag_rs"]
        # THEN
        (finding,) = findings
        assert (finding.slug, finding.severity, finding.rank) == ("pairs-not-constant", "warning", "rank0")
        assert finding.evidence == {
            "pairs": "ag_rs",
            "commonest": {"target": 2},
            "iterations": {"1": {"target": 1}},
        }
        assert "AG/RS pairs differ in 1 of 3 iterations (iteration 1: target 1 instead of 2)" in finding.message


class TestUnmatchedFindings:
    def test_gathers_without_any_scatter_get_an_explanation(self) -> None:
        # GIVEN a tensor-parallel arm: one gather in the target, three in the drafts, no reduce-scatter
        rows = [
            row
            for number in range(2)
            for row in [
                *launches("T G G T AG", iteration=number),
                *launches("AG T " * 3, iteration=number, phase="draft"),
            ]
        ]
        # WHEN
        (finding,) = pair_findings(attribution(rows))
        # THEN
        assert (finding.slug, finding.severity) == ("unmatched-pairs", "warning")
        assert finding.evidence == {
            "class": "all_gather",
            "commonest": 4,
            "total": 8,
            "phases": {"target": 2, "draft": 6},
            "iterations": {"0": 4, "1": 4},
        }
        assert "4 all-gather dispatches without a combine per iteration" in finding.message
        assert "belong to no MoE layer" in finding.message

    def test_no_explanation_where_the_trace_has_scatters(self) -> None:
        # GIVEN a leftover gather beside a pair
        (finding,) = pair_findings(_iterations("AG RS AG"))
        # THEN
        assert finding.evidence["class"] == "all_gather"
        assert "MoE layer" not in finding.message

    def test_leftover_scatter(self) -> None:
        # GIVEN one iteration of two with a combine alone
        findings = pair_findings(_iterations("AG RS RS", "AG RS"))
        # THEN
        assert _slugs(findings) == ["unmatched-pairs", "pairs-not-constant"]
        assert findings[0].evidence == {
            "class": "reduce_scatter",
            "commonest": 0,
            "total": 1,
            "phases": {"target": 1},
            "iterations": {"0": 1},
        }

    def test_leftover_gemm(self) -> None:
        # GIVEN an odd expert GEMM
        (finding,) = pair_findings(_iterations("3*G"))
        # THEN
        assert finding.evidence["class"] == "moe_gemm"
        assert finding.evidence["total"] == 1

    def test_leftovers_of_a_window_without_iterations_are_told(self) -> None:
        # GIVEN a trace without markers
        (finding,) = pair_findings(attribution(launches("AG T AG G G RS"), family=None))
        # THEN
        assert finding.evidence == {
            "class": "all_gather",
            "commonest": None,
            "total": 1,
            "phases": {"target": 1},
            "iterations": {},
        }


class TestEquivalentsFinding:
    def test_note_says_how_many(self) -> None:
        # GIVEN three pairs, two of them in another spelling
        (finding,) = pair_findings(_iterations("B G G D AG G G RS B G G D"))
        # THEN
        assert (finding.slug, finding.severity) == ("ag-rs-equivalents", "note")
        assert finding.evidence == {"equivalents": 2, "pairs": 3, "commonest": 2}
        assert "2 of 3 AG/RS pairs" in finding.message

    def test_bystanders_are_no_equivalents(self) -> None:
        # GIVEN a broadcast and a reduce that enclose nothing
        # WHEN / THEN
        assert pair_findings(_iterations("B AG G G RS D")) == ()


WORDS = ("AG", "AG", "RS", "B", "D", "G", "GG", "F", "C", "T", "norm")


def _plain(words: Sequence[str]) -> tuple[int, int, int, int, int, int]:
    """Read one place slowly: pairs, unmatched dispatch, unmatched combine, equivalents, GEMM pairs, odd GEMMs."""
    kept = [word for word in words if word != "norm"]
    for last in (False, True):
        ends: list[tuple[str, list[int], int]] = []  # word, positions, GEMMs before
        gemms, previous = 0, ""
        for position, word in enumerate(kept):
            if word in ("AG", "B", "D") and word == previous:
                ends[-1][1].append(position)
            elif word in ("AG", "B", "D", "RS"):
                ends.append((word, [position], gemms))
            gemms += word in ("G", "GG")
            previous = word
        paired = [
            (left, left + 1)
            for left in range(len(ends) - 1)
            if ends[left][0] in ("AG", "B")
            and ends[left + 1][0] in ("RS", "D")
            and (ends[left + 1][2] > ends[left][2] or not {"G", "GG", "F"} & set(words))
        ]
        if not last:
            around = {end for pair in paired if ends[pair[1]][2] > ends[pair[0]][2] for end in pair}
            gone = {p for n, end in enumerate(ends) if end[0] in ("B", "D") and n not in around for p in end[1]}
            kept = [word for position, word in enumerate(kept) if position not in gone]
    in_pairs = {end for pair in paired for end in pair}
    single = [end[0] for number, end in enumerate(ends) if number not in in_pairs]
    runs = "".join({"G": "1", "GG": "2"}.get(word, " ") for word in kept).split()
    return (
        len(paired),
        single.count("AG"),
        single.count("RS"),
        sum(ends[left][0] == "B" or ends[right][0] == "D" for left, right in paired),
        sum(run.count("2") + run.count("1") // 2 for run in runs),
        sum(run.count("1") % 2 for run in runs),
    )


@settings(deadline=None)
@given(words=st.lists(st.sampled_from(WORDS), max_size=24))
def test_agrees_with_a_plain_reading(words: list[str]) -> None:
    # GIVEN any sequence of launches
    found = pairs(_iterations(" ".join(words)))
    ag_rs, gemm = found.ag_rs, found.moe_gemm
    # WHEN / THEN
    assert _plain(words) == (
        ag_rs.total,
        ag_rs.unmatched_ag,
        ag_rs.unmatched_rs,
        ag_rs.equivalents,
        gemm.total,
        gemm.unmatched,
    )


@settings(deadline=None)
@given(
    iterations=st.lists(st.lists(st.sampled_from(WORDS), max_size=8), min_size=1, max_size=4),
    step_ns=st.sampled_from([0, 100]),
    seed=st.integers(0, 2**16),
)
def test_order_of_rows_does_not_matter(iterations: list[list[str]], step_ns: int, seed: int) -> None:
    # GIVEN an attribution, at times with all starts equal, and the same one with rows in another order
    rows = [row for number, words in enumerate(iterations) for row in launches(" ".join(words), iteration=number)]
    straight = attribution([{**row, "start_ns": step_ns * n} for n, row in enumerate(rows)], len(iterations))
    mixed = shuffled(straight, random.Random(seed))
    # WHEN / THEN
    assert pairs(mixed) == pairs(straight)
    assert pair_findings(mixed) == pair_findings(straight)
