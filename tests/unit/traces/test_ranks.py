from __future__ import annotations

import pytest

from moeprof.traces.ranks import key_of, key_of_name, key_of_process, natural


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("dp0_pp0_tp0_dcp0_ep0_rank0.pt.trace.json.gz", "dp0_pp0_tp0_dcp0_ep0_rank0"),
        ("dp1_pp0_tp0_dcp0_ep1_rank0.1796074479206590682.pt.trace.json.gz", "dp1_pp0_tp0_dcp0_ep1_rank0"),
        ("base_dp1_pp0_tp0_dcp0_ep1_rank0.17.pt.trace.json.gz", "dp1_pp0_tp0_dcp0_ep1_rank0"),
        ("dp0_tp1_rank1.17.pt.trace.json", "dp0_tp1_rank1"),
        ("pp0_tp12.json", "pp0_tp12"),
        ("tp3.pt.trace.json", "tp3"),
        ("1782843274.7730265-TP-0-DECODE.trace.json.gz", "tp0"),
        ("1782843274.77-TP-0-DP-1-PP-2-EP-03-EXTEND.trace.json.gz", "tp0_dp1_pp2_ep3"),
        ("rank0.json", "rank0"),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", "rank34"),
        ("foo_rank_3.json", "rank3"),
        ("serving-rank0.trace.json.gz", "rank0"),
        ("Rank007.json", "rank7"),
        ("worker0.1623143089861.pt.trace.json.gz", None),
        ("worker3_step_12.1694128201557.pt.trace.json.gz", None),
        ("frank0.json", None),
        ("rank_not_found.json.gz", None),
        ("http2.json", None),
        ("model_tp8.json", None),
        ("graph_execution.json.gz", None),
    ],
)
def test_key_of_a_file_name(name: str, key: str | None) -> None:
    assert key_of_name(name) == key


def test_the_name_wins_over_the_metadata() -> None:
    assert key_of("dp1_pp0_tp0_dcp0_ep1_rank0.json", 5) == "dp1_pp0_tp0_dcp0_ep1_rank0"


@pytest.mark.parametrize(("rank", "key"), [(5, "rank5"), (0, "rank0"), (None, None)])
def test_without_a_rank_in_the_name_the_metadata_decides(rank: int | None, key: str | None) -> None:
    assert key_of("worker7.json", rank) == key


@pytest.mark.parametrize(
    ("process", "key"),
    [
        ("[TP00] 4100", "tp0"),
        ("[TP00-EP01] 1234", "tp0_ep1"),
        ("[DP12]x", "dp12"),
        ("4100", None),
        ("[TP] 1", None),
        ("Spans", None),
    ],
)
def test_key_of_a_process_in_a_merged_file(process: str, key: str | None) -> None:
    assert key_of_process(process) == key


def test_natural_order_puts_2_before_10_and_the_unknown_first() -> None:
    assert sorted(["rank10", None, "rank2", "dp10_tp0", "dp2_tp1"], key=natural) == [
        None,
        "dp2_tp1",
        "dp10_tp0",
        "rank2",
        "rank10",
    ]
