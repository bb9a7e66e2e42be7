"""Find the markers of iterations: pick one family, on one thread, and tell the kind of each iteration."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

import polars as pl

from moeprof.analyzers.tables import KIND
from moeprof.errors import UsageError
from moeprof.findings import Finding
from moeprof.traces.schema import Schema
from moeprof.traces.trace import RankTrace

#: Markers of the family in use, by start: label, step number (null where the label has none), kind (null likewise).
FOUND: Schema = {
    "label": pl.String,
    "number": pl.String,
    "kind": KIND,
    "track": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
}

#: Host events that a user's own marker may be, besides annotations.
_USER_CATEGORIES = r"^(user_annotation|cpu_op|Operator|python_function|nvtx(:.*)?)$"
#: NVTX ranges; the name of their domain follows where they have one.
NVTX_CATEGORY = r"^nvtx(:|$)"


@dataclass(frozen=True, slots=True)
class Family:
    """One way to mark iterations; see the head of ``rules/markers.toml``."""

    name: str
    pattern: re.Pattern[str]
    forward: bool
    threads: str
    kinds: tuple[tuple[re.Pattern[str], str], ...] = ()

    def kind(self, label: str) -> str | None:
        """Return the kind that a label tells, if any."""
        return next((kind for pattern, kind in self.kinds if pattern.fullmatch(label)), None)


@dataclass(frozen=True, slots=True)
class MarkerRules:
    """All families in order of preference, the scopes that tell phases, and the anchor kernels."""

    families: tuple[Family, ...]
    scopes: tuple[tuple[re.Pattern[str], str], ...]
    anchors: tuple[re.Pattern[str], ...]

    def scope_phase(self, label: str) -> str | None:
        """Return the phase that a nested scope tells, if it is one."""
        return next((phase for pattern, phase in self.scopes if pattern.fullmatch(label)), None)


@dataclass(frozen=True, slots=True)
class FoundMarkers:
    """The family in use (None: no marker), its markers and what was found on the way."""

    family: Family | None
    markers: pl.DataFrame
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class MarkerChoice:
    """What the user asked for: a pattern of their own, or one family by name (instead of the first that is there)."""

    pattern: str | None = None
    family: str | None = None
    compiled: re.Pattern[str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        names = [*(family.name for family in marker_rules().families), "user", "anchor"]
        if self.family is not None and self.family not in names:
            raise UsageError(f"unknown marker family {self.family!r}: one of {', '.join(names)}")
        if self.family == "user" and self.pattern is None:
            raise UsageError("marker family 'user' needs a pattern", hint="give --marker REGEX")
        if self.pattern is not None and self.family not in (None, "user"):
            raise UsageError(
                f"a marker pattern and marker family {self.family!r} exclude each other",
                hint="leave out --marker or --marker-family",
            )
        if self.pattern is not None:
            try:
                object.__setattr__(self, "compiled", re.compile(self.pattern))
            except re.error as error:
                raise UsageError(f"the marker pattern is not a regular expression: {error}") from error


@cache
def marker_rules() -> MarkerRules:
    """Return the marker families, scopes and anchors of the package."""
    file = resources.files("moeprof.analyzers") / "rules" / "markers.toml"
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    families = tuple(
        Family(
            name=entry["name"],
            pattern=re.compile(entry["pattern"]),
            forward=entry["forward"],
            threads=entry["threads"],
            kinds=tuple((re.compile(pattern), kind) for kind, pattern in entry.get("kinds", {}).items()),
        )
        for entry in data["family"]
    )
    scopes = tuple((re.compile(entry["pattern"]), entry["phase"]) for entry in data["scope"])
    anchors = tuple(re.compile(entry["pattern"]) for entry in data["anchor"])
    return MarkerRules(families, scopes, anchors)


def marker_labels(names: pl.Series) -> list[str]:
    """Return those of some names that mark an iteration, or are a scope that tells a phase."""
    rules = marker_rules()
    return matching_labels(
        names, [*(family.pattern for family in rules.families), *(scope for scope, _ in rules.scopes)]
    )


def find_markers(rank: RankTrace, choice: MarkerChoice) -> FoundMarkers:
    """Return the markers of the first family that a rank holds, or of the family asked for.

    Anchor kernels are not looked for here: they are launches, not annotations.
    """
    findings: list[Finding] = []
    families = [family for family in marker_rules().families if choice.family in (None, family.name)]
    annotations = rank.markers.select("name", "track", "start_ns", "end_ns")
    labels = matching_labels(annotations["name"], [family.pattern for family in marker_rules().families])
    annotations = annotations.filter(pl.col("name").is_in(labels))
    for family in families:
        found = _matching(annotations, family)
        if found.is_empty():
            continue
        if family.name == "moeprof":
            found = _kinds_from_nested(found, annotations)
        found, more = _one_thread(_merge_steps(found), rank)
        findings += [*more, *_overlaps(found, rank)]
        if choice.pattern is not None:
            findings.append(
                Finding(
                    "marker-not-used",
                    "warning",
                    f"the pattern {choice.pattern!r} was not used: {family.name} markers come first; "
                    "--marker-family user uses it all the same",
                    rank.key,
                )
            )
        return FoundMarkers(family, found, tuple(findings))
    if choice.compiled is not None and choice.family in (None, "user"):
        family = Family("user", choice.compiled, forward=False, threads="own")
        found = _matching(_user_candidates(rank), family, search=True)
        if not found.is_empty():
            found, more = _one_thread(_merge_steps(found), rank)
            return FoundMarkers(family, found, more)
        findings.append(
            Finding("marker-not-found", "warning", f"no host range matches the pattern {choice.pattern!r}", rank.key)
        )
    return FoundMarkers(None, pl.DataFrame(schema=FOUND), tuple(findings))


def last_is_whole(found: FoundMarkers, rank: RankTrace) -> bool:
    """Tell whether our own markers prove that the last iteration ran to its end.

    Its last phase (sampling; the forward of a dummy batch) must end before it does: a profiler that stops inside a step
    ends all open ranges at one instant.
    """
    if found.family is None or found.family.name != "moeprof" or found.markers.is_empty():
        return False
    last = found.markers.row(len(found.markers) - 1, named=True)
    if last["end_ns"] is None:
        return False
    closing = "moeprof.target" if last["kind"] == "idle" else "moeprof.sample"
    inside = rank.markers.filter(
        pl.col("name").cast(pl.String) == closing,
        pl.col("track") == last["track"],
        pl.col("start_ns") >= last["start_ns"],
        pl.col("end_ns") < last["end_ns"],
    )
    return not inside.is_empty()


def matching_labels(names: pl.Series, patterns: Sequence[re.Pattern[str]]) -> list[str]:
    """Return the distinct names that one of the patterns matches in full, sorted.

    A capture may hold a million distinct names of ranges; all but few are left aside without a look from Python.
    """
    union = "|".join(f"(?:{re.sub(r'[(][?]P<[a-z]+>', '(?:', pattern.pattern)})" for pattern in patterns)
    likely = names.filter(names.str.contains(f"^(?:{union})$")).unique()
    return sorted(label for label in likely.drop_nulls().to_list() if any(p.fullmatch(label) for p in patterns))


def _matching(candidates: pl.DataFrame, family: Family, *, search: bool = False) -> pl.DataFrame:
    """Return `FOUND` for the annotations of a family (a user's pattern is searched, ours match in full)."""
    rows = []
    for label in candidates["name"].unique().to_list():
        match = family.pattern.search(label) if search else family.pattern.fullmatch(label)
        if match:
            rows.append((label, match.groupdict().get("number"), family.kind(label)))
    labels = pl.DataFrame(rows, schema={"label": pl.String, "number": pl.String, "kind": KIND}, orient="row")
    return (
        candidates.filter(pl.col("start_ns").is_not_null())
        .join(labels, left_on="name", right_on="label", how="inner")
        .rename({"name": "label"})
        .select(list(FOUND))
        .sort("start_ns", "end_ns", "track", "label", descending=[False, True, False, False], nulls_last=True)
    )


def _user_candidates(rank: RankTrace) -> pl.DataFrame:
    host = rank.events.filter(
        pl.col("category").cast(pl.String).str.contains(_USER_CATEGORIES), pl.col("ph").cast(pl.String) == "X"
    )
    return host.select(
        pl.col("name").cast(pl.String),
        "track",
        "start_ns",
        (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
    )


def _kinds_from_nested(found: pl.DataFrame, annotations: pl.DataFrame) -> pl.DataFrame:
    """Take the kind of our own markers from the engine's marker nested in them; one without any is a dummy batch."""
    engine = next(family for family in marker_rules().families if family.name == "vllm")
    inner = _matching(annotations, engine).select("track", "start_ns", pl.col("kind").alias("inner"))
    if inner.is_empty():
        return found
    nested = (
        inner.sort("start_ns", "track", "inner")
        .join_asof(
            found.select("track", pl.col("start_ns").alias("outer_ns"), "end_ns").sort("outer_ns"),
            left_on="start_ns",
            right_on="outer_ns",
            by="track",
            strategy="backward",
            check_sortedness=False,
        )
        .filter(pl.col("outer_ns").is_not_null() & (pl.col("start_ns") <= pl.col("end_ns").fill_null(2**62)))
        .group_by("track", "outer_ns")
        .agg(pl.col("inner").first())
    )
    joined = found.join(
        nested, left_on=["track", "start_ns"], right_on=["track", "outer_ns"], how="left", maintain_order="left"
    )
    return joined.with_columns(
        pl.coalesce("kind", "inner", pl.lit("idle", dtype=KIND)).alias("kind"),
    ).drop("inner")


def _merge_steps(found: pl.DataFrame) -> pl.DataFrame:
    """Make one iteration of adjacent markers with one step number; drop a marker that lies inside its predecessor."""
    found = found.sort("track", "start_ns", "end_ns", "label", descending=[False, False, True, False], nulls_last=True)
    same = (
        pl.col("number").is_not_null()
        & (pl.col("number") == pl.col("number").shift(1))
        & (pl.col("label") == pl.col("label").shift(1))
        & (pl.col("track") == pl.col("track").shift(1))
    ).fill_null(value=False)
    steps = (
        found.with_columns((~same).cum_sum().alias("step"))
        .group_by("step", maintain_order=True)
        .agg(
            pl.col("label", "number", "kind", "track", "start_ns").first(),
            pl.when(pl.col("end_ns").is_null().any()).then(None).otherwise(pl.col("end_ns").max()).alias("end_ns"),
        )
        .select(list(FOUND))
    )
    before = pl.col("end_ns").cum_max().shift(1).over("track")
    inside = (pl.col("end_ns") <= before).fill_null(value=False) & (pl.col("start_ns") < before)
    return steps.filter(~inside.fill_null(value=False))


def _overlaps(found: pl.DataFrame, rank: RankTrace) -> list[Finding]:
    """Tell of markers that begin before the one before them has ended, as ranges of NVTX that start and end freely may."""
    before = pl.col("end_ns").cum_max().shift(1)
    late = found.sort("start_ns").filter((pl.col("start_ns") < before).fill_null(value=False)).height
    if not late:
        return []
    message = (
        f"{late} of {len(found)} markers begin before the one before them has ended: an iteration owns what is launched"
        " until the next marker begins"
    )
    return [Finding("markers-overlap", "note", message, rank.key, {"overlapping": late, "markers": len(found)})]


def _operator_tracks(rank: RankTrace) -> pl.Series:
    category = pl.col("category").cast(pl.String)
    operators = category.is_in(["cpu_op", "Operator"]) | category.str.contains(NVTX_CATEGORY)
    return rank.events.filter(operators)["track"]


def _one_thread(found: pl.DataFrame, rank: RankTrace) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """Keep one thread and count what the others hold: one that launches, with the most markers, that starts first."""
    works = rank.launches["track"] if not rank.launches.is_empty() else _operator_tracks(rank)
    threads = (
        found.group_by("track")
        .agg(pl.len(), pl.col("start_ns").min())
        .with_columns(pl.col("track").is_in(works.unique().to_list()).alias("works"))
        .sort("works", "len", "start_ns", "track", descending=[True, True, False, False])
    )
    kept = found.filter(pl.col("track") == threads["track"][0]).sort("start_ns")
    others = int(threads["len"].sum()) - len(kept)
    if not others:
        return kept, ()
    message = (
        f"{others} markers on {len(threads) - 1} other threads were left out: "
        f"iterations are those of the launching thread with the most markers ({len(kept)})"
    )
    finding = Finding("markers-on-other-threads", "warning", message, rank.key, {"left_out": others, "used": len(kept)})
    return kept, (finding,)
