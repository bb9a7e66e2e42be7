"""The roofline plot: achieved FLOP/s of the expert GEMMs over their arithmetic intensity, beside the device's roofs."""

from __future__ import annotations

from pathlib import Path

from moeprof.analyzers.kernel_metrics.results import ArmKernels, KernelsResult
from moeprof.errors import UsageError

FORMATS = (".svg", ".png", ".pdf")
_MARKS = {"w13": "o", "w2": "s", "fused": "D"}


def draw(result: KernelsResult, path: Path) -> None:
    """Draw a plot into a file; its ending chooses the format.

    Args:
        result: Arms with a known layer; rows without FLOP/s or bytes are left out.
        path: The file.

    Raises:
        UsageError: matplotlib is not installed, the ending is unknown, or nothing can be drawn.
        OSError: The file cannot be written.
    """
    if path.suffix not in FORMATS:
        raise UsageError(f"a plot is written as {', '.join(FORMATS)}, not {path.suffix or 'without an ending'}")
    if not any(_points(arm) for arm in result.arms):
        raise UsageError(
            "nothing to plot: no expert GEMM has both FLOP/s and bytes",
            hint="the layer's sizes are needed: --config, or --model",
        )
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise UsageError(
            "a plot needs matplotlib, which is not installed", hint="pip install 'moeprof[plot]'"
        ) from error
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "moeprof"  # the same figures give the same bytes
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="FLOP per byte of DRAM traffic", ylabel="TFLOP/s")
    for number, arm in enumerate(result.arms):
        _draw(axes, arm, f"C{number}")
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _draw(axes: object, arm: ArmKernels, colour: str) -> None:
    points = _points(arm)
    for stage, mark in _MARKS.items():
        chosen = [(x, y, batch) for name, x, y, batch in points if name == stage]
        if not chosen:
            continue
        xs, ys, batches = zip(*chosen, strict=True)
        axes.plot(xs, ys, mark, color=colour, label=f"{arm.arm} {stage}")  # type: ignore[attr-defined]
        for x, y, batch in zip(xs, ys, batches, strict=True):
            axes.annotate(str(batch), (x, y), fontsize="x-small", textcoords="offset points", xytext=(4, 4))  # type: ignore[attr-defined]
    if arm.roof is not None and points:
        ridge = arm.roof.flops_per_s / arm.roof.bytes_per_s
        low, high = min(min(x for _, x, _, _ in points), ridge) / 2, max(max(x for _, x, _, _ in points), ridge) * 2
        corners = [low, ridge, high]
        heights = [min(arm.roof.flops_per_s, x * arm.roof.bytes_per_s) / 1e12 for x in corners]
        axes.plot(corners, heights, "-", color=colour, alpha=0.4, label=f"{arm.roof.device} {arm.roof.format}")  # type: ignore[attr-defined]


def _points(arm: ArmKernels) -> list[tuple[str, float, float, int | None]]:
    """Return stage, intensity, TFLOP/s and batch of every expert GEMM that has them."""
    return [
        (row.stage, row.flops / row.dram_bytes, row.flops_per_s / 1e12, row.batch)
        for row in arm.kernels
        if row.flops and row.dram_bytes and row.flops_per_s
    ]
