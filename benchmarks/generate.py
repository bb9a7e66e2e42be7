"""Write Kineto traces of any size, as vLLM's decode of a mixture-of-experts model leaves them. Standard library only.

    python -m benchmarks.generate OUT.json --megabytes 500 --layout v213 --mode graph --stacks

The same arguments give the same bytes. Layouts: v211 (torch up to 2.11, two lines for the head of an event) and v213 (one
field a line). Modes: eager (one launch call and one flow pair per kernel) and graph (one launch call per graph replay). With
--stacks there are python_function frames, whose names carry addresses, as real ones do. A name that ends in .gz is compressed.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PROCESS, WORKER = 4100, 4100
BASE_NS = 5_214_564_660_786_765  # since the base time; such an offset needs 16 + 3 digits in us
LAYERS, DENSE, DRAFTS = 42, 1, 3

GRIDS = (132, 64, 5, 1024, 16, 33)

Pairs = list[tuple[str, str]]


class Sink(Protocol):
    """What takes the bytes."""

    def write(self, data: bytes, /) -> int:
        """Take some bytes and return how many."""


#: What kineto writes before some keys of args; a comma and a blank before the others.
BEFORE = {
    "Record function id": ",",
    **dict.fromkeys(
        [
            *(
                "cbid",
                "stream",
                "registers per thread",
                "shared memory",
                "blocks per SM",
                "warps per SM",
                "grid",
                "block",
            ),
            "est. achieved occupancy %",
        ],
        ",      ",
    ),
}


def us(ns: int) -> str:
    """Return ns as the decimal us that the format uses."""
    return f"{ns // 1000}.{ns % 1000:03d}"


@dataclass(frozen=True, slots=True)
class Layout:
    """How an event becomes text: v211 packs the head into two lines, v213 gives each field a line."""

    packed: bool

    def event(self, head: Pairs, args: Pairs) -> str:
        """Return one event; values are JSON text already."""
        inner = "".join(
            f'{BEFORE.get(key, ", ") if number else ""}"{key}": {value}' for number, (key, value) in enumerate(args)
        )
        if args and args[0][0] == "queued":
            inner = "      " + inner
        fields = [f'"{key}": {value}' for key, value in head]
        if self.packed:
            second = {'"X"': "ts", '"M"': ""}.get(dict(head)["ph"], "cat")  # what begins the second line
            split = next((i for i, (key, _) in enumerate(head) if key == second), len(fields))
            lines = ",\n    ".join(filter(None, [", ".join(fields[:split]), ", ".join(fields[split:])]))
            tail = f',\n    "args": {{\n      {inner}\n    }}' if args else ""
        else:
            lines = ",\n    ".join(fields)
            if dict(head)["ph"] in ('"s"', '"f"'):
                lines = lines.replace(",\n", ",\n    \n", 1)  # as kineto leaves a line for what it did not write
            tail = f'\n    ,\n    "args": {{\n      {inner}\n    }}' if args else "\n    "
        return f"  {{\n    {lines}{tail}\n  }}"


@dataclass(slots=True)
class Writer:
    """State of a trace being written: clock, ids, random numbers."""

    layout: Layout
    graph: bool
    stacks: bool
    random: random.Random
    host: int = BASE_NS
    device: int = BASE_NS
    correlation: int = 0
    external: int = 0
    frame: int = 0

    def span(self, category: str, name: str, thread: tuple[int, int], start: int, length: int, args: Pairs) -> str:
        """Return an X event."""
        process, number = thread
        head = [
            ("ph", '"X"'),
            ("cat", f'"{category}"'),
            ("name", f'"{name}"'),
            ("pid", str(process)),
            ("tid", str(number)),
            ("ts", us(start)),
            ("dur", us(length)),
        ]
        return self.layout.event(head, args)

    def flow(self, phase: str, thread: tuple[int, int], start: int) -> str:
        """Return an s or f event of the present correlation id."""
        head = [
            ("ph", f'"{phase}"'),
            ("id", str(self.correlation)),
            ("pid", str(thread[0])),
            ("tid", str(thread[1])),
            ("ts", us(start)),
            ("cat", '"ac2g"'),
            ("name", '"ac2g"'),
        ]
        return self.layout.event([*head, ("bp", '"e"')] if phase == "f" else head, [])

    def call(self, name: str, length: int) -> Iterator[str]:
        """Yield a launch call, and in eager mode the operator and the frames around it."""
        self.correlation += 1
        start = self.host
        if not self.graph:
            self.external += 1
            args = [("External id", str(self.external)), ("Record function id", "0"), ("Ev Idx", str(self.external))]
            yield self.span("cpu_op", "vllm::moe_forward_shared", (PROCESS, WORKER), start, length + 2000, args)
        if self.stacks:
            for depth in range(3):
                self.frame += 1
                address = 0x7F00_0000_0000 + self.random.randrange(1 << 20) * 16
                text = (
                    f"<built-in method apply of FunctionMeta object at 0x{address:x}>"
                    if depth == 2
                    else f"moe/layer.py({200 + depth}): forward"
                )
                args = [
                    ("Python id", str(self.frame)),
                    ("Python parent id", str(self.frame - 1)),
                    ("Ev Idx", str(self.frame)),
                ]
                yield self.span("python_function", text, (PROCESS, WORKER), start, length + 3000 - depth, args)
        yield self.span(
            "cuda_runtime",
            name,
            (PROCESS, WORKER),
            start + 500,
            length,
            [("External id", str(self.external)), ("cbid", "311"), ("correlation", str(self.correlation))],
        )
        yield self.flow("s", (PROCESS, WORKER), start + 500)
        self.host += length + 3500
        self.device = max(self.device, start + 4000)

    def kernel(self, name: str, length: int, stream: int, extra: Pairs) -> Iterator[str]:
        """Yield a kernel of the present launch call and its flow end."""
        start = self.device
        args = [
            ("queued", "0"),
            ("device", "0"),
            ("context", "1"),
            ("stream", str(stream)),
            ("correlation", str(self.correlation)),
            ("registers per thread", "168"),
            ("shared memory", "102400"),
            ("blocks per SM", "1.000000"),
            ("warps per SM", "12.000000"),
            ("grid", f"[{GRIDS[len(name) % len(GRIDS)]}, 1, 1]"),
            ("block", "[384, 1, 1]"),
            ("est. achieved occupancy %", "19"),
            *extra,
        ]
        yield self.span("kernel", name, (0, stream), start, length, args)
        yield self.flow("f", (0, stream), start)
        self.device += length + 300


GEMM = (
    "void grouped_gemm<" + "cute::tuple<cute::C<128>, cute::C<256>, cute::C<64>>, " * 6 + "Policy>(GroupedGemmParams)"
)
GATHER = [
    ("Collective name", '"_allgather_base"'),
    ("In msg nelems", "262144"),
    ("Out msg nelems", "524288"),
    ("Group size", "2"),
    ("dtype", '"BFloat16"'),
]
SCATTER = [
    ("Collective name", '"_reduce_scatter_base"'),
    ("In msg nelems", "524288"),
    ("Out msg nelems", "262144"),
    ("Group size", "2"),
    ("dtype", '"BFloat16"'),
]
ATTENTION: list[tuple[str, int, int, Pairs]] = [
    ("void rms_norm_kernel<__nv_bfloat16, 8, true>(__nv_bfloat16*)", 2200, 17, []),
    ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", 4100, 17, []),
    ("_rotary_embedding_kernel", 1900, 17, []),
    ("void reshape_and_cache_flash_kernel<__nv_bfloat16>(__nv_bfloat16 const*)", 1700, 17, []),
    ("void flash_fwd_splitkv_kernel<FlashFwdParams, 128, 64>(FlashFwdParams)", 9300, 17, []),
    ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNN", 3900, 17, []),
]
MOE: list[tuple[str, int, int, Pairs]] = [
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 8000, 25, GATHER),
    ("void moe_topk_softmax_kernel<float, 32, 4>(float const*)", 1800, 17, []),
    ("void moe_align_block_size_kernel<int>(int const*)", 2100, 17, []),
    (GEMM, 11000, 17, []),
    ("void silu_and_mul_kernel<__nv_bfloat16>(__nv_bfloat16*)", 1600, 17, []),
    (GEMM, 9000, 17, []),
    ("void moe_sum_kernel<__nv_bfloat16, 4>(__nv_bfloat16*)", 1500, 17, []),
    ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 7000, 25, SCATTER),
]
DENSE_MLP: list[tuple[str, int, int, Pairs]] = [("nvjet_sm90_tst_128x8_64x12_2x1_v_bz_TNT", 5200, 17, [])]


def passes(layers: int, dense: int) -> list[tuple[str, int, int, Pairs]]:
    """Return the kernels of one forward pass."""
    return [*(ATTENTION + DENSE_MLP) * dense, *(ATTENTION + MOE) * layers]


def iteration(writer: Writer) -> Iterator[str]:
    """Yield one decode step: target, sampling, drafts."""
    start = writer.host
    for number, kernels in enumerate([passes(LAYERS, DENSE), *[passes(1, 0)] * DRAFTS]):
        if writer.graph:
            yield from writer.call("cudaGraphLaunch", 150_000 if number == 0 else 20_000)
        for name, length, stream, extra in kernels:
            if not writer.graph:
                yield from writer.call("cudaLaunchKernel", 5_000)
            yield from writer.kernel(name, length + writer.random.randrange(1000), stream, extra)
        if number == 0:
            writer.external += 1
            args = [
                ("External id", str(writer.external)),
                ("Record function id", "0"),
                ("Ev Idx", str(writer.external)),
            ]
            name = "execute_context_0(0)_generation_32(128)"
            yield writer.span("user_annotation", name, (PROCESS, WORKER), start, writer.host - start, args)
    writer.host = max(writer.host, writer.device) + 50_000


def metadata(layout: Layout) -> Iterator[str]:
    """Yield the metadata events."""
    for process, thread, key, value in (
        (PROCESS, 0, "process_name", '"VLLM::Worker_DP0_EP0"'),
        (0, 0, "process_name", '"python3"'),
        (0, 17, "thread_name", '"stream 17 "'),
        (0, 25, "thread_name", '"stream 25 "'),
    ):
        head = [("name", f'"{key}"'), ("ph", '"M"'), ("ts", us(BASE_NS)), ("pid", str(process)), ("tid", str(thread))]
        yield layout.event(head, [("name", value)])


HEAD = """
  {
    "schemaVersion": 1,
    "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132
    }
    ],
      "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
"""


def write(file: Sink, *, size: int, layout: str, mode: str, stacks: bool, seed: int = 0) -> tuple[int, int]:
    """Write whole iterations until `size` bytes are reached; return bytes and events written."""
    shape = Layout(packed=layout == "v211")
    writer = Writer(shape, graph=mode == "graph", stacks=stacks, random=random.Random(seed))
    written = file.write(HEAD.encode())
    rows = list(metadata(shape))
    written += file.write(",\n".join(rows).encode())
    events = len(rows)
    while written < size:
        rows = list(iteration(writer))
        written += file.write((",\n" + ",\n".join(rows)).encode())
        events += len(rows)
    return written + file.write(b'\n  ],\n  "traceName": "generated"\n}\n'), events


def create(target: Path, *, size: int, layout: str, mode: str, stacks: bool, seed: int = 0) -> tuple[int, int]:
    """Write a trace to a file, compressed when its name ends in .gz; return (uncompressed) bytes and events."""
    with target.open("wb") as raw:
        if target.suffix != ".gz":
            return write(raw, size=size, layout=layout, mode=mode, stacks=stacks, seed=seed)
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
            return write(packed, size=size, layout=layout, mode=mode, stacks=stacks, seed=seed)


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--layout", choices=["v211", "v213"], default="v211")
    parser.add_argument("--mode", choices=["graph", "eager"], default="eager")
    parser.add_argument("--stacks", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    options.target.parent.mkdir(parents=True, exist_ok=True)
    size, events = create(
        options.target,
        size=options.megabytes * 1_000_000,
        layout=options.layout,
        mode=options.mode,
        stacks=options.stacks,
        seed=options.seed,
    )
    print(f"{options.target}: {size} bytes, {events} events")
    return 0


if __name__ == "__main__":
    sys.exit(main())
