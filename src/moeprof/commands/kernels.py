"""``moeprof kernels``: hardware metrics of the MoE kernels of each arm."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moeprof.commands.capturing import say_to
from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.options import FORMATS, Reading, Shared, targets
from moeprof.commands.output import emit
from moeprof.commands.store_options import configuration, store_of
from moeprof.commands.streams import Streams, write
from moeprof.config.load import find_arm
from moeprof.errors import UsageError
from moeprof.findings import Finding
from moeprof.profiler.kernels.drive import launch, run
from moeprof.profiler.kernels.order import FLOOR, LayerOrder, floor_order, layer_order
from moeprof.profiler.kernels.shape import layer_shape
from moeprof.profiler.kernels.tools import choose, find_tools
from moeprof.store import redact

if TYPE_CHECKING:
    from moeprof.analyzers.kernel_metrics.arm import Measured

_HELP = """Measure the MoE kernels of each arm with Nsight Compute: time, tensor and DRAM utilisation, occupancy, FLOP/s and bytes/s against
the device's roof.

One MoE layer of the arm's model is built in a process of its own, with the arm's expert backend and random weights, and launched once
per batch size under ncu; no server runs. torch's own grouped GEMM on the same layer is measured as the floor. With --from, reports
that exist (.ncu-rep, or CSV of ncu --csv) are read instead. The first arm is what the others are held against.
"""


@dataclass(frozen=True, slots=True)
class _Values:
    """The options as click hands them over."""

    arm: tuple[str, ...]
    from_: tuple[str, ...]
    batch: str
    runs: int
    ep_size: int
    floor: bool
    driver: str
    python: str | None
    limit: float
    model: str | None
    plot: Path | None
    keep: bool
    config: Path | None
    store: Path | None
    rules: str | None
    format_: str | None
    output: tuple[str, ...]
    wide: bool
    color: str
    dry_run: bool
    debug: bool


def _run(**given: object) -> int:
    values = _Values(**given)  # type: ignore[arg-type]
    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    reading = Reading(recover=False, rules=values.rules, marker=None, marker_family=None)
    shared = Shared(targets(values.format_, values.output), values.color, values.wide, reading)
    if not values.arm and not values.from_:
        raise UsageError("no arm was named", hint="moeprof kernels ARM, or --from ARM=FILE for a report that exists")
    orders = _orders(values)
    if values.dry_run:
        write(streams.stdout, _dry_run(orders, values))
        return 0
    from moeprof.analyzers.classify import load_classifier
    from moeprof.analyzers.kernel_metrics.arm import arm_kernels
    from moeprof.analyzers.kernel_metrics.compare import gather
    from moeprof.reports.render import render_kernels

    measured, findings = _reports(values)
    measured += _measure(orders, values, streams)
    classifier = load_classifier(values.rules)
    arms = []
    for item in measured:
        arm, found = arm_kernels(item, classifier)
        arms.append(arm)
        findings += found
    result = gather(arms, findings)
    if values.keep and orders:
        from moeprof.store.kernel_results import keep

        store = store_of(values.store, configuration(values.config)).root
        for arm in arms:
            keep(store, arm.arm, gather([arm]).to_dict())
    if values.plot is not None:
        from moeprof.reports.roofline import draw

        draw(result, values.plot)
    emit(shared, streams, lambda fmt, look: render_kernels(result, fmt, look))
    return 0


def _orders(values: _Values) -> list[LayerOrder]:
    if not values.arm:
        return []
    batches = _batches(values.batch)
    loaded = configuration(values.config)
    orders: list[LayerOrder] = []
    for name in values.arm:
        arm = find_arm(loaded, name)
        shape = layer_shape(values.model or arm.server.model or "", ranks=values.ep_size)
        orders.append(layer_order(arm, shape, batches, runs=values.runs, python=values.python))
    if values.floor and not any(order.arm == FLOOR for order in orders):
        orders.append(floor_order(orders[0], orders[0].shape, batches, runs=values.runs, python=values.python))
    return orders


def _batches(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(f"--batch {text} is no list of numbers of tokens", hint="--batch 16,64,256,1024") from error
    if any(batch < 1 for batch in found) or len(set(found)) < len(found):
        raise UsageError(f"--batch {text}: numbers of tokens are 1 or more, each once")
    return sorted(found)


def _measure(orders: Sequence[LayerOrder], values: _Values, streams: Streams) -> list[Measured]:
    from moeprof.analyzers.kernel_metrics.arm import Measured
    from moeprof.analyzers.kernel_metrics.results import LayerShape
    from moeprof.traces.ncu.open import open_kernel_metrics
    from moeprof.traces.ncu.table import WANTED

    say = say_to(streams)
    found = []
    with tempfile.TemporaryDirectory(prefix="moeprof-kernels-") as folder:
        for order in orders:
            tools = find_tools(order.python, {**os.environ, **order.env})
            driver = choose(values.driver, tools)
            say(f"{order.arm}: {order.backend} layer, batches {', '.join(map(str, order.batches))}, through {driver}")
            report = run(order, launch(order, driver, tools, WANTED, Path(folder)), values.limit, say)
            kernels = open_kernel_metrics(report).kernels
            say(f"{order.arm}: {kernels.height} kernels measured")
            shape = LayerShape(**asdict(order.shape))
            found.append(Measured(order.arm, f"{driver}, {order.runs} runs", kernels, order.backend, shape))
    return found


def _reports(values: _Values) -> tuple[list[Measured], list[Finding]]:
    from moeprof.analyzers.kernel_metrics.arm import Measured
    from moeprof.analyzers.kernel_metrics.results import LayerShape
    from moeprof.traces.ncu.open import open_kernel_metrics

    shape = layer_shape(values.model, ranks=values.ep_size) if values.model else None
    found: list[Measured] = []
    findings: list[Finding] = []
    for text in values.from_:
        arm, sign, path = text.partition("=")
        if not sign or not arm or not path:
            raise UsageError(f"--from {text} is not ARM=FILE", hint="for example --from base=base.ncu-rep")
        if any(item.arm == arm for item in found):
            raise UsageError(f"two reports are of arm {arm}", hint="give each --from a name of its own")
        metrics = open_kernel_metrics(path)
        findings += metrics.findings
        found.append(Measured(arm, path, metrics.kernels, None, LayerShape(**asdict(shape)) if shape else None))
    return found, findings


def _dry_run(orders: Sequence[LayerOrder], values: _Values) -> str:
    from moeprof.traces.ncu.table import WANTED

    parts = []
    for order in orders:
        tools = replace(find_tools(order.python, {**os.environ, **order.env}))
        driver = choose(values.driver, tools) if tools.ncu else "ncu"
        command = launch(order, driver, tools, WANTED, Path("FOLDER"))
        secrets = redact.secrets(command.env)
        env = [f"{name}={shlex.quote(value)} \\" for name, value in sorted(redact.env(dict(command.env)).items())]
        missing = [] if tools.ncu else ["# no ncu was found here: the command as it would be with one on PATH"]
        parts += [f"# {order.arm}", *missing, *env, shlex.join(redact.argv(list(command.argv), known=secrets))]
        parts += [f"# {command.request_file}:", command.request, ""]
    return "\n".join(parts) + "\n"


command = GroupedCommand(
    "kernels",
    callback=lambda **given: _run(**given),
    help=_HELP,
    params=[
        click.Argument(["arm"], nargs=-1, metavar="ARM..."),
        GroupedOption(
            "--from",
            "from_",
            multiple=True,
            metavar="ARM=FILE",
            heading="Measuring",
            help="Read a report that exists; may be repeated.",
        ),
        GroupedOption(
            "--batch",
            default="16,64,256,1024",
            metavar="N,N,...",
            heading="Measuring",
            help="Tokens that enter the layer (16,64,256,1024).",
        ),
        GroupedOption(
            "--runs",
            type=click.IntRange(min=1),
            default=5,
            metavar="N",
            heading="Measuring",
            help="Launches per batch; medians are shown (5).",
        ),
        GroupedOption(
            "--ep-size",
            type=click.IntRange(min=1),
            default=1,
            metavar="N",
            heading="Measuring",
            help="Ranks that share the experts: each then holds the N-th part (1).",
        ),
        GroupedOption(
            "--floor/--no-floor", default=True, heading="Measuring", help="Measure torch's grouped GEMM too (default)."
        ),
        GroupedOption(
            "--driver",
            type=click.Choice(("auto", "nsight-python", "ncu")),
            default="auto",
            metavar="NAME",
            heading="Measuring",
            help="What drives ncu: nsight-python, ncu itself, or auto, the first that is there and fits.",
        ),
        GroupedOption(
            "--python", metavar="FILE", heading="Measuring", help="Python with torch and vLLM (default: the arm's)."
        ),
        GroupedOption(
            "--model", metavar="DIR", heading="Measuring", help="Take the layer's sizes from this model's config.json."
        ),
        GroupedOption(
            "--limit",
            type=click.FloatRange(min=1),
            default=900.0,
            metavar="SECONDS",
            heading="Measuring",
            help="Longest time per arm (900).",
        ),
        GroupedOption(
            "--dry-run", is_flag=True, heading="Measuring", help="Print exactly what would be run, and run nothing."
        ),
        GroupedOption(
            "--config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            heading="Configuration",
            help="moeprof.toml to read (default: the nearest).",
        ),
        GroupedOption(
            "--store",
            type=click.Path(path_type=Path),
            envvar="MOEPROF_STORE",
            metavar="DIR",
            heading="Configuration",
            help="Where results are kept (default: the configuration's, else .moeprof).",
        ),
        GroupedOption(
            "--keep/--no-keep",
            default=True,
            heading="Configuration",
            help="Keep what was measured in the store, for diff (default).",
        ),
        GroupedOption("--rules", metavar="FILE", heading="Output", help="Kernel rules (TOML) to use."),
        GroupedOption(
            "--format",
            "format_",
            type=click.Choice(FORMATS),
            heading="Output",
            help="What goes to stdout (default: text).",
        ),
        GroupedOption(
            "--output",
            multiple=True,
            metavar="FORMAT=PATH",
            heading="Output",
            help="Write a file as well; may be repeated.",
        ),
        GroupedOption(
            "--plot",
            type=click.Path(path_type=Path),
            metavar="FILE",
            heading="Output",
            help="Draw the roofline: .svg, .png or .pdf.",
        ),
        GroupedOption("--wide", is_flag=True, heading="Output", help="Every kernel of the layer, with its full name."),
        GroupedOption(
            "--color",
            type=click.Choice(("auto", "always", "never")),
            default="auto",
            heading="Output",
            help="Colour on stdout.",
        ),
        GroupedOption("--debug", is_flag=True, help="Show the traceback of an error."),
    ],
)
command.examples = (
    "moeprof kernels base mega --batch 16,64,256",
    "moeprof kernels --from base=base.ncu-rep --from mega=mega.csv --plot roofline.svg",
)
