"""What holds for any two reports: symmetry, no dependence on order, and nothing new against itself."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from moeprof.analyzers.comparison.compare import compare
from moeprof.analyzers.results import Change, Diff, KernelRow, PairChange, Report, StructureRow, TimeRow
from moeprof.findings import SEVERITIES, Finding, JsonValue
from tests.unit.analyzers.reports import Kernel, pairs, rank, report

_MIRROR: dict[Change | None, Change | None] = {
    "added": "removed",
    "removed": "added",
    "more": "fewer",
    "fewer": "more",
    "same": "same",
    None: None,
}
_SWAP = {"base": "candidate", "candidate": "base"}

_KERNELS = st.builds(
    Kernel,
    name=st.sampled_from(["a", "void b<1>(int)", "void b<2>(int)", "Memcpy HtoD (Pinned -> Device)"]),
    class_=st.sampled_from(["moe_gemm", "moe_fused", "all_gather", "norm", "memcpy"]),
    launches=st.integers(0, 3),
    phase=st.sampled_from(["target", "draft", "sample"]),
    backend=st.sampled_from([None, "HUMMING", "Triton"]),
    duration=st.integers(1, 5),
)
_TRIPLE = st.tuples(st.integers(0, 2), st.integers(0, 1), st.just(0))
_TIME = st.none() | st.integers(0, 3_000_000)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Draw a report of up to three ranks that may disagree, lack iterations or count over other kinds."""
    ranks = []
    for number in range(draw(st.integers(0, 3))):
        iterations = draw(st.sampled_from([0, 2, 3, 3]))
        ranks.append(
            rank(
                draw(
                    st.lists(_KERNELS, max_size=5, unique_by=lambda kernel: (kernel.name, kernel.class_, kernel.phase))
                ),
                key=f"rank{number}",
                iterations=iterations,
                counted=draw(st.sampled_from([-1, None])),
                counts_over=draw(st.sampled_from(["decode", "decode", "decode", "prefill"])),
                pairs=pairs(draw(_TRIPLE), draw(_TRIPLE)) if iterations else pairs(None),
                wall=draw(_TIME),
                kernel_sum=draw(_TIME),
            )
        )
    severities = draw(st.lists(st.sampled_from(SEVERITIES), max_size=2))
    findings = tuple(Finding(f"found-{severity}", severity, "It was found.") for severity in severities)
    return report(*ranks, source=draw(st.sampled_from(["here", "there"])), findings=findings)


def swapped_text(text: str) -> str:
    """Return a sentence with the sides' names exchanged."""
    return text.replace("base", "\0").replace("candidate", "base").replace("\0", "candidate")


def swapped_evidence(value: JsonValue) -> JsonValue:
    """Return evidence with the sides exchanged, both as keys and as the value of ``side``."""
    if not isinstance(value, dict):
        return value
    return {
        _SWAP.get(key, key): _SWAP[str(item)] if key == "side" else swapped_evidence(item)
        for key, item in value.items()
    }


def found(result: Diff, *, swap: bool) -> set[str]:
    """Return the findings without their sentences, as text, with the sides exchanged or not."""
    evidences = ((one, dict(one.evidence)) for one in result.findings)
    return {
        repr((one.slug, one.severity, one.rank, _sorted(swapped_evidence(evidence) if swap else evidence)))
        for one, evidence in evidences
    }


def _sorted(value: JsonValue) -> object:
    return sorted((key, _sorted(item)) for key, item in value.items()) if isinstance(value, dict) else value


def mirrored_time(row: TimeRow) -> tuple[object, ...]:
    """Return what of a time row must be equal after an exchange of sides; the ratio is held apart."""
    return row.metric, row.phase, row.candidate, row.base, row.method, sorted(swapped_text(row.note).split("; "))


@given(reports(), reports())
def test_swapping_the_sides_mirrors_the_diff_and_nothing_else(base: Report, candidate: Report) -> None:
    # GIVEN any two reports
    # WHEN compared both ways
    there, back = compare(base, candidate), compare(candidate, base)
    # THEN sides, changes and ratios are mirrored
    assert (back.base, back.candidate, back.verdict) == (there.candidate, there.base, there.verdict)
    assert back.structure == tuple(
        replace(row, base=row.candidate, candidate=row.base, change=_MIRROR[row.change]) for row in there.structure
    )
    assert back.kernels == tuple(
        KernelRow(
            row.name,
            row.class_,
            row.phase,
            row.candidate,
            row.base,
            row.candidate_kernel_sum,
            row.base_kernel_sum,
        )
        for row in there.kernels
    )
    assert back.pairs == replace(
        there.pairs,
        ag_rs=PairChange(there.pairs.ag_rs.candidate, there.pairs.ag_rs.base),
        moe_gemm=PairChange(there.pairs.moe_gemm.candidate, there.pairs.moe_gemm.base),
    )
    for row, other in zip(there.time, back.time, strict=True):
        kept = (other.metric, other.phase, other.base, other.candidate, other.method, sorted(other.note.split("; ")))
        assert kept == mirrored_time(row)
        assert (row.ratio is None) == (other.ratio is None)
        assert row.ratio is None or other.ratio is None or abs(row.ratio * other.ratio - 1) < 1e-9
    assert found(back, swap=True) == found(there, swap=False)
    assert len(back.summary) == len(there.summary)


@given(reports(), reports(), st.data())
def test_the_order_of_ranks_kernels_counts_and_findings_is_irrelevant(
    base: Report, candidate: Report, data: st.DataObject
) -> None:
    # GIVEN two reports, and the same in another order
    def shuffled(one: Report) -> Report:
        ranks = tuple(
            replace(
                each,
                counts=tuple(data.draw(st.permutations(each.counts))),
                kernels=tuple(data.draw(st.permutations(each.kernels))),
            )
            for each in data.draw(st.permutations(one.ranks))
        )
        return replace(one, ranks=ranks, findings=tuple(data.draw(st.permutations(one.findings))))

    # WHEN both are compared
    # THEN the diffs are equal to the last byte
    assert repr(compare(shuffled(base), shuffled(candidate)).to_dict()) == repr(compare(base, candidate).to_dict())


@given(reports())
def test_a_report_against_itself_is_unchanged(one: Report) -> None:
    # GIVEN any report
    # WHEN compared with itself
    result = compare(one, one)
    # THEN all rows are the same, unless there is nothing to compare
    launches = any(row.total for each in one.ranks for row in each.kernels)
    assert result.verdict == "unchanged" or (result.verdict == "not_comparable" and not launches)
    assert {row.change for row in result.structure} <= {"same", None}
    rows: list[StructureRow | KernelRow | TimeRow] = [*result.structure, *result.kernels, *result.time]
    assert all(row.base == row.candidate for row in rows)
    assert not [found for found in result.findings if found.slug in ("arms-equal", "backend-changed")]


@given(reports(), reports())
def test_every_verdict_has_its_reason(base: Report, candidate: Report) -> None:
    # GIVEN any two reports
    # WHEN compared
    result = compare(base, candidate)
    # THEN a change is named in a sentence with an arrow, and a refusal has its finding
    slugs = {one.slug for one in result.findings}
    assert ("not-comparable" in slugs) == (result.verdict == "not_comparable")
    told = [text for text in result.summary if "under the profiler" not in text and "kernels per iteration" not in text]
    assert (result.verdict == "changed") == any(
        " -> " in text or "removed" in text or "added" in text for text in told if not text.startswith("not comparable")
    )
