"""Written claims against raw passes: interval arithmetic on printed digits."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeprof.analyzers.claims.check import check
from moeprof.analyzers.claims.digits import certain, mean, median, printed, quotient
from moeprof.analyzers.claims.results import ClaimRow
from moeprof.analyzers.claims.sentences import sentences
from moeprof.analyzers.claims.written import claim_of
from moeprof.analyzers.serving.compare import compare_serving
from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.analyzers.serving.results import ArmSamples
from moeprof.errors import ClaimError
from tests.unit.analyzers.serving.arms import arm, decode, sample

METRICS = load_metrics()


def checked(*tables: dict[str, object]) -> tuple[ClaimRow, ...]:
    claims = [claim_of(table, number, METRICS, "check.toml") for number, table in enumerate(tables, 1)]
    return check(claims, decode("base", 0, 2), decode("mega", 1), METRICS).rows


@pytest.mark.parametrize(
    ("table", "word", "computed"),
    [
        ({"text": "+6.72 % output throughput"}, "confirmed", (6.71657, 6.71687)),
        ({"text": "TPOT p50 -18.16 %"}, "consistent", (-18.26369, -18.13266)),
        ({"text": "TPOT p50 \u221218.16 %"}, "consistent", (-18.26369, -18.13266)),
        ({"text": "TTFT p50 +26.81 %"}, "confirmed", (26.80802, 26.80960)),
        ({"text": "base output throughput 7040.49", "arm": "base"}, "confirmed", (7040.485, 7040.495)),
        ({"text": "base TPOT p50 13.87", "arm": "base"}, "consistent", (13.87, 13.88)),
        ({"text": "base TTFT p50 1440.10", "arm": "base"}, "consistent", (1440.10, 1440.11)),
        ({"text": "output throughput +6.90 %"}, "contradicted", (6.71657, 6.71687)),
        ({"metric": "output_throughput", "value": "1.07x"}, "confirmed", (1.0671657, 1.0671687)),
        ({"metric": "output_throughput", "value": "+6.904 %", "statistic": "mean"}, "confirmed", (6.903547, 6.903842)),
        ({"metric": "output_throughput", "value": "+6.9037 %", "statistic": "mean"}, "consistent", (6.903547, 6.903842)),
        ({"metric": "output_throughput", "value": "+6.9036 %", "statistic": "mean"}, "contradicted", (6.903547, 6.903842)),
    ],
)  # fmt: skip
def test_the_published_figures(table: dict[str, object], word: str, computed: tuple[float, float]) -> None:
    # GIVEN what was published THEN each claim has the outcome that the two-decimal inputs allow
    (row,) = checked(table)
    assert row.label == word
    assert row.computed == pytest.approx(computed, abs=6e-6)


def test_a_claim_that_the_printed_inputs_do_not_give() -> None:
    # GIVEN -18.16 % WHEN the printed inputs give -18.20 % THEN both are said, with every definition that fits
    (row,) = checked({"text": "TPOT p50 -18.16 %"})
    assert "consistent with unrounded inputs but not reproducible from the printed ones (-18.20 %)" in row.because
    assert row.fits == ("median of passes against mean of passes",)


def test_a_claim_by_another_definition() -> None:
    # GIVEN the change of the means THEN it contradicts the medians, and is named as what fits
    (row,) = checked({"text": "output throughput +6.90 %"})
    assert row.fits == ("mean of passes against mean of passes",)
    assert "fits instead" in row.because


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"text": "0 requests failed"}, "confirmed"),
        ({"text": "1 request failed"}, "contradicted"),
        ({"text": "131072 output tokens in every pass"}, "confirmed"),
        ({"text": "33554432 input tokens"}, "confirmed"),
        ({"text": "9 timed runs"}, "confirmed"),
        ({"text": "45 timed runs"}, "contradicted"),
        ({"text": "6 passes", "arm": "base"}, "confirmed"),
        ({"text": "+1 % mean E2EL"}, "no_data"),
        ({"text": "+6.72 % output throughput", "workload": "c64"}, "no_data"),
    ],
)
def test_counts_and_missing_data(table: dict[str, object], word: str) -> None:
    # GIVEN exact counts, and what the excerpts do not hold
    assert checked(table)[0].label == word


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"text": "+5 % faster"}, "claim 1 names no metric"),
        ({"text": "output throughput rose"}, "claim 1 names no figure"),
        ({"text": "+5 % or +6 % output throughput"}, "claim 1 names more than one figure"),
        ({"text": "output throughput 7040.49"}, "claim 1 is a value, and names no arm"),
        ({"metric": "speed", "value": "+1 %"}, "claim 1 is about 'speed', which is no known metric"),
        ({"metric": "output_throughput", "value": 6.72}, "claim 1 has a value 6.72 that is no text"),
        ({"text": "x", "colour": "red"}, "claim 1 has an unknown key 'colour'"),
        ({"text": "TPOT p50 13", "arm": "left"}, "claim 1 is about arm 'left'"),
        ("no table", "claim 1 is no table"),
    ],
)
def test_a_claim_that_cannot_be_understood(table: object, message: str) -> None:
    with pytest.raises(ClaimError) as caught:
        claim_of(table, 1, METRICS, "check.toml")
    assert caught.value.message.startswith(message)


NUMBERS = st.lists(st.decimals("0.5", "999", places=4), min_size=1, max_size=7)


@given(NUMBERS, NUMBERS)
def test_the_raw_figures_lie_in_what_their_digits_allow(base: list[object], candidate: list[object]) -> None:
    # GIVEN raw values that were printed with two decimals THEN medians, means and quotients lie within the computed ranges
    sides = [[Fraction(str(value)) for value in values] for values in (base, candidate)]
    ranges = [[printed(f"{float(value):.2f}") for value in values] for values in sides]
    for of in (median, mean):
        raw = [of([certain(float(value)) for value in values]).point for values in sides]
        found = [of(items) for items in ranges]
        for value, allowed in zip(raw, found, strict=True):
            assert allowed.low <= value <= allowed.high
        ratio = quotient(found[1], found[0])
        assert ratio is not None
        assert ratio.low <= raw[1] / raw[0] <= ratio.high


def test_a_report_that_contradicts_itself() -> None:
    # GIVEN a report whose throughput was edited
    from dataclasses import replace

    base = decode("base", 0, 2)
    first = base.samples[0]
    edited = replace(
        first,
        values={**first.values, "output_throughput": 9000.0},
        printed={**first.printed, "output_throughput": "9000.00"},
    )
    claims = [claim_of({"text": "+6.72 % output throughput"}, 1, METRICS, "x")]
    found = check(claims, replace(base, samples=(edited, *base.samples[1:])), decode("mega", 1), METRICS)
    # THEN it is found, and the untouched ones are not
    assert [finding.slug for finding in found.findings] == ["report-inconsistent"]
    assert "base0_pass0.txt" in found.findings[0].message


def test_what_may_be_said() -> None:
    # GIVEN the decode passes WHEN sentences are made THEN each has its label, and a drifted one gives no size
    rows = sentences(compare_serving(decode("base", 0, 2), decode("mega", 1), METRICS).rows)
    said = [(row.label, row.text) for row in rows if row.kind == "sentence"]
    assert said == [
        ("A/B/A complete", "output_throughput at c128 rose by 6.72 %"),
        ("A/B/A complete", "median_tpot_ms at c128 fell by 18.20 %"),
        (
            "A/B/A, drifted",
            "median_ttft_ms at c128 rose, by +11.57 % to +34.80 %, against the base block before and after",
        ),
    ]
    unsaid = [row.text for row in rows if row.kind == "not-said"]
    assert unsaid[0] == "that median_ttft_ms at c128 changed by +26.81 %"
    assert "several throughputs as confirmations of each other" in unsaid


def test_what_may_not_be_said_of_three_passes() -> None:
    # GIVEN an A/B of three passes THEN it is preliminary, and no significance is claimed
    compared = compare_serving(arm({0: (100.0, 101.0, 99.0)}), arm({1: (120.0, 121.0, 119.0)}), METRICS)
    rows = sentences(compared.rows)
    assert rows[0].text.startswith("preliminary: output_throughput at c8 rose by 20.00 %")
    assert any(row.text == "significance at 5 %" and "0.1" in row.because for row in rows)


def test_nothing_shown_is_neither_change_nor_none() -> None:
    # GIVEN passes that overlap THEN neither a change nor its absence may be claimed
    compared = compare_serving(arm({0: (100.0, 90.0, 110.0)}), arm({1: (101.0, 92.0, 111.0)}), METRICS)
    rows = sentences(compared.rows)
    assert not any(row.kind == "sentence" for row in rows)
    assert rows[0].text == "that output_throughput at c8 changed, or that it did not"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("TPOT fell by 18.2 %", "consistent"),
        ("TPOT p50 18.2 % lower", "consistent"),
        ("TPOT is 18.2 percent faster", "consistent"),
        ("TPOT rose by 18.2 %", "contradicted"),
        ("median TTFT is 27 % higher", "confirmed"),
        ("median TTFT got 27 % worse", "confirmed"),
        ("output throughput improved by 6.7 %", "confirmed"),
        ("output throughput 6.7 % lower", "contradicted"),
        ("TPOT fell by -18.2 %", "consistent"),
    ],
)
def test_words_tell_the_direction(text: str, word: str) -> None:
    # GIVEN a change without a sign THEN the verb tells where it goes; a sign that is written comes first
    assert checked({"text": text})[0].label == word


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TPOT 1.2x faster", "may mean either ratio"),
        ("+" + "9" * 5000 + " % output throughput", "a figure of 5000 digits"),
        ("TPOT 18.2 %", "says no direction"),
        ("output throughput higher, latency lower: 6.7 %", "says no direction"),
        ("+9,000.5 % output throughput", "has the figure '9,0'"),
        ("output throughput +6,72 %", "has the figure '6,7'"),
    ],
)
def test_a_claim_that_may_mean_two_things(text: str, message: str) -> None:
    # GIVEN a claim that can be read in two ways THEN it is refused, never guessed
    with pytest.raises(ClaimError, match=message):
        checked({"text": text})


def test_counts_hold_for_passes_that_failed_a_gate() -> None:
    # GIVEN three passes, in one of which three requests failed
    base = ArmSamples("a", "a", tuple(sample(0, number, {}, failed=3 * (number == 1)) for number in range(3)))
    candidate = arm({1: [1.0, 2.0]})
    texts = ("0 requests failed", "5 timed runs", "64 completed")
    claims = [claim_of({"text": text}, 1, METRICS, "c.toml") for text in texts]
    # WHEN claims about every pass are checked THEN what a gate took out is still a pass that ran
    rows = check(claims, base, candidate, METRICS).rows
    assert [row.label for row in rows] == ["contradicted", "confirmed", "contradicted"]
    assert "of which 1 failed a gate" in rows[1].because


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"metric": "output_throughput", "value": "+6.7 %", "arm": "base"}, "is a change, and names an arm"),
        ({"metric": "output_throughput", "value": "+6.7 %", "block": 2}, "has a block, and names no arm"),
    ],
)
def test_a_key_that_would_do_nothing_is_refused(table: dict[str, object], message: str) -> None:
    # GIVEN a key that does not go with the kind of claim THEN it is refused, not passed over
    with pytest.raises(ClaimError, match=message):
        checked(table)
