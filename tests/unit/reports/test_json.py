"""JSON output: the shape of the contract, the shipped schemas, and bytes that do not vary."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest

from moeprof.findings import JsonValue
from moeprof.reports import explanation
from moeprof.reports.json import dump
from moeprof.reports.look import Look
from moeprof.reports.outcome import Outcome
from moeprof.reports.render import render_diff, render_reports

from . import samples

REPORTS = (samples.report(1), samples.report(8), samples.unequal_report(), samples.cpu_report(), samples.empty_report())


def schema(kind: str) -> dict[str, object]:
    text = files("moeprof.reports").joinpath(f"schemas/{kind}-1.json").read_text(encoding="utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded


def unknown(value: JsonValue, shape: dict[str, object], whole: dict[str, object], path: str = "") -> list[str]:
    """Return the keys of a value that its schema does not name."""
    if "$ref" in shape:
        shape = whole["$defs"][str(shape["$ref"]).removeprefix("#/$defs/")]  # type: ignore[index]  # a schema is JSON
    for option in shape.get("anyOf", []):  # type: ignore[attr-defined]  # a schema is JSON
        if "$ref" in option and value is not None:
            return unknown(value, option, whole, path)
    found: list[str] = []
    if isinstance(value, list) and isinstance(shape.get("items"), dict):
        for item in value:
            found += unknown(item, shape["items"], whole, f"{path}[]")  # type: ignore[arg-type]  # a schema is JSON
    if isinstance(value, dict) and "properties" in shape:
        properties: dict[str, dict[str, object]] = shape["properties"]  # type: ignore[assignment]  # a schema is JSON
        for key, item in value.items():
            found += unknown(item, properties[key], whole, f"{path}.{key}") if key in properties else [f"{path}.{key}"]
    return found


@pytest.mark.parametrize("number", range(len(REPORTS)))
def test_a_report_obeys_its_schema(number: int) -> None:
    # GIVEN the shipped schema
    # WHEN a report is rendered THEN it is valid, and every key is described
    value = json.loads(render_reports([REPORTS[number]], "json", Look()))
    jsonschema.Draft202012Validator(schema("report")).validate(value)
    assert unknown(value, schema("report"), schema("report")) == []


def test_a_diff_obeys_its_schema() -> None:
    # GIVEN the shipped schema WHEN a diff is rendered THEN it is valid, and every key is described
    full = replace(
        samples.diff(),
        serving=(samples.serving_row(),),
        claims=(samples.claim_row(),),
        accuracy=(samples.accuracy_row(),),
        environment=(samples.environment_row(),),
        time=(samples.tested_time_row(),),
        kernel_times=(samples.kernel_time_row(),),
    )
    value = json.loads(render_diff(full, "json", Look(), Outcome(1, "")))
    jsonschema.Draft202012Validator(schema("diff")).validate(value)
    assert unknown(value, schema("diff"), schema("diff")) == []


def test_several_reports_and_an_explanation_obey_their_schemas() -> None:
    # GIVEN the shipped schemas WHEN two reports, or an explanation, are rendered THEN they are valid
    two = json.loads(render_reports([samples.report(1), samples.cpu_report()], "json", Look()))
    jsonschema.Draft202012Validator(schema("reports")).validate(two)
    none = dict.fromkeys(("rule", "pattern", "backend", "source"))
    explained = json.loads(explanation.render("k", {"class": "other", **none}, "json", Look()))
    jsonschema.Draft202012Validator(schema("explanation")).validate(explained)
    assert sorted(explained) == sorted(schema("explanation")["properties"])  # type: ignore[call-overload]  # JSON


def test_a_missing_key_breaks_the_schema() -> None:
    # GIVEN a report without coverage WHEN it is checked THEN it is refused
    value = json.loads(render_reports([samples.report(1)], "json", Look()))
    del value["ranks"][0]["coverage"]
    assert not jsonschema.Draft202012Validator(schema("report")).is_valid(value)


def test_one_report_is_plain_and_several_are_wrapped() -> None:
    # WHEN one report is rendered THEN it stands alone; WHEN two THEN in order inside moeprof.reports/1
    one = json.loads(render_reports([samples.report(1)], "json", Look()))
    two = json.loads(render_reports([samples.report(1), samples.cpu_report()], "json", Look()))
    assert one["schema"] == "moeprof.report/1"
    assert two["schema"] == "moeprof.reports/1"
    assert [item["subject"]["source"] for item in two["reports"]] == ["traces/h200/base", "cpu/base"]


def test_the_exit_code_is_in_the_json() -> None:
    # WHEN a diff is rendered with its outcome THEN exit_code is a key beside the contract's
    value = json.loads(render_diff(samples.diff(), "json", Look(), Outcome(1, "because")))
    assert value["exit_code"] == 1
    assert value["verdict"] == "changed"


def test_keys_are_sorted_and_the_text_ends_with_one_newline() -> None:
    # WHEN rendered THEN keys are in order at the top, and the file ends as text files do
    text = render_diff(samples.diff(), "json", Look())
    keys = list(json.loads(text))
    assert keys == sorted(keys)
    assert text.endswith("}\n")


def test_a_value_that_json_has_not_is_refused() -> None:
    # WHEN a figure is not a number THEN nothing is written in its place
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump({"ratio": float("nan")})
