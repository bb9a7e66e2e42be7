"""Write an nsys export as SQLite of any size, shaped like eager decode of a mixture-of-experts model. Standard library only.

    python -m benchmarks.generate_nsys OUT.sqlite --kernels 344000 --ranges 1700000 --calls 580000

The same arguments give the same rows. Ranges nest in the iteration's, as those of ``emit_nvtx`` do, and carry an operator number in
their names: ``--names`` says how many distinct ones each process writes (emit_nvtx itself numbers on without end). Two processes work,
one device each.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from pathlib import Path

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, cuDevice INTEGER);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL,
    mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
    gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
    staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
    localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER,
    sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,
    nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (
    start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT,
    globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER,
    doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
"""
CALLS = ("cudaLaunchKernel_v7000", "cudaStreamIsCapturing_v10000", "cudaEventRecordWithFlags_v11010")
KERNELS = (
    "void (anonymous namespace)::fused_moe_kernel<__nv_bfloat16, 128, 64>(int, float*)",
    "nvjet_sm90_tst_256x64_64x5_2x1_v_bz_NNT",
    "void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel, std::array<char*, 2> >(int)",
    "flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4> >",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, float, int, int)",
)
OPERATORS = (
    "aten::mm",
    "aten::silu",
    "aten::copy_",
    "aten::_to_copy",
    "vllm::moe_forward",
    "aten::empty_strided",
    "aten::mul",
)
PER_ITERATION = 200  # kernels
STEP_NS, LAG_NS = 7_000, 40_000


def process_id(number: int) -> int:
    """Return the global id of a process."""
    return (1 << 48) | ((4100 + number) << 24)


def kernels(count: int, number: int) -> Iterator[tuple[int, ...]]:
    """Yield the kernels of one process."""
    for index in range(count):
        start = index * STEP_NS + LAG_NS
        name = 100 + index % len(KERNELS)
        yield (
            *(start, start + 3_000 + index % 1_000, number, 1), *(0, 7, 10 + index, process_id(number), name, name), *(name, 0, 0, 40),
            *(132, 1 + index % 8, 1, 128, 1, 1), *(0, 65_536, 0, 0, index, 102_400, 0, 0),
        )  # fmt: skip


def calls(count: int, launches: int, number: int) -> Iterator[tuple[int, ...]]:
    """Yield the host calls of one process: one launch for each kernel, and others spread between."""
    thread = process_id(number) | (4100 + number)
    others = max(0, count - launches)
    for index in range(launches):
        start = index * STEP_NS
        yield start, start + 2_500, 0, thread, 10 + index, 1, 0, 0
        for extra in range(others * index // launches, others * (index + 1) // launches):
            yield start + 2_600, start + 2_900, 0, thread, 10 + launches + extra, 2 + extra % 2, 0, 0


def ranges(count: int, launches: int, number: int, names: int) -> Iterator[tuple[object, ...]]:
    """Yield the ranges of one process: iterations, and operators around each launch."""
    thread = process_id(number) | (4100 + number)
    iterations = max(1, launches // PER_ITERATION)

    def row(start: int, end: int, text: str) -> tuple[object, ...]:
        return (start, end, 59, None, None, None, text, thread, None, None, 0, *(None,) * 9)

    for iteration in range(iterations):
        begin = iteration * PER_ITERATION * STEP_NS
        yield row(begin - 500, begin + (PER_ITERATION - 10) * STEP_NS, "execute_context_0(0)_generation_32(128)")
    rest = count - iterations
    for index in range(launches):
        begin = index * STEP_NS
        for depth in range(rest * (index + 1) // launches - rest * index // launches):
            number_of = (rest * index // launches + depth) % names
            yield row(
                begin - 400 + 20 * depth, begin + 4_000 - 20 * depth, f"{OPERATORS[number_of % 7]}, op_id = {number_of}"
            )


def write(
    path: Path, *, kernel_rows: int, call_rows: int, range_rows: int, names: int = 8391, processes: int = 2
) -> None:
    """Write the export."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = OFF")
    database.executescript(SCHEMA)
    words = [*enumerate(CALLS, 1), *enumerate(KERNELS, 100)]
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", words)
    database.executemany(
        "INSERT INTO META_DATA_EXPORT VALUES (?, ?)",
        [("EXPORT_PRODUCT_VERSION", "2025.3.2.0"), ("EXPORT_SCHEMA_VERSION", "3.20.3")],
    )
    database.execute("INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Node')")
    database.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1796072070328841047, '', '')")
    for number in range(processes):
        pid = process_id(number)
        own = [rows // processes for rows in (kernel_rows, call_rows, range_rows)]
        database.execute("INSERT INTO PROCESSES VALUES (?, ?, 'python3')", (pid, 4100 + number))
        database.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, ?, 'NVIDIA H200', ?)", (number, number))
        for table, width, rows in (
            ("CUPTI_ACTIVITY_KIND_KERNEL", 28, kernels(own[0], number)),
            ("CUPTI_ACTIVITY_KIND_RUNTIME", 8, calls(own[1], own[0], number)),
            ("NVTX_EVENTS", 20, ranges(own[2], own[0], number, names)),
        ):
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", rows)
    database.commit()
    database.close()


def main() -> None:
    """Read the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--kernels", type=int, default=344_000)
    parser.add_argument("--calls", type=int, default=580_000)
    parser.add_argument("--ranges", type=int, default=1_700_000)
    parser.add_argument("--names", type=int, default=8391)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    write(
        given.output,
        kernel_rows=given.kernels,
        call_rows=given.calls,
        range_rows=given.ranges,
        names=given.names,
        processes=given.processes,
    )


if __name__ == "__main__":
    main()
