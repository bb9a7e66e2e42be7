"""Put the environments into a diff: what differs and matters leaves nothing to compare, unless it was allowed."""

from __future__ import annotations

from dataclasses import replace

from moeprof.analyzers.claims.results import ClaimRow
from moeprof.analyzers.environment.compare import EnvironmentComparison
from moeprof.analyzers.environment.results import EnvironmentRow
from moeprof.analyzers.results import Diff, Report
from moeprof.analyzers.serving.results import ArmSamples
from moeprof.findings import Finding, in_order


def with_environment(diff: Diff, found: EnvironmentComparison) -> Diff:
    """Return a diff with what differs between the environments, and the verdict that follows from it too."""
    environment = (*diff.environment, *found.rows)
    diff = replace(diff, environment=environment, findings=in_order([*diff.findings, *found.findings]))
    if found.obstacle is None:
        return diff
    unsaid = ClaimRow("an effect of the change: the arms ran on different ground", "never", found.obstacle, "not-said")
    return replace(
        diff,
        verdict="not_comparable",
        summary=(f"not comparable: {found.obstacle}", *diff.summary),
        claims=(*(claim for claim in diff.claims if claim.kind != "sentence"), unsaid),
    )


def with_devices(diff: Diff, base: Report, candidate: Report) -> Diff:
    """Return a diff of two traces with a row and a warning where they come from different devices.

    Traces alone tell little of where they come from, and whoever names two of them wants them compared: it is no obstacle.
    """
    before, after = (_devices(report) for report in (base, candidate))
    if before is None or after is None or before == after:
        return diff
    message = f"the traces come from different devices: {before} against {after}; some counts depend on the device"
    row = EnvironmentRow("hardware.gpus", before, after, matters=True, between="traces")
    warning = Finding("devices-differ", "warning", message, evidence={"base": before, "candidate": after})
    return replace(diff, environment=(*diff.environment, row), findings=in_order([*diff.findings, warning]))


def marked(samples: ArmSamples, rows: tuple[EnvironmentRow, ...], side: str) -> ArmSamples:
    """Return an arm whose blocks that differ from its first in what matters have a fingerprint of their own: no A/B/A then."""
    apart = {
        row.blocks[1] for row in rows if row.matters and row.between == f"{side} blocks" and row.blocks is not None
    }
    blocks = tuple(
        replace(block, fingerprint=f"{block.fingerprint} (block {block.number})") if block.number in apart else block
        for block in samples.blocks
    )
    return replace(samples, blocks=blocks)


def _devices(report: Report) -> str | None:
    names = sorted({rank.device for rank in report.ranks if rank.device is not None})
    return ", ".join(names) or None
