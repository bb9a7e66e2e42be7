"""Sample the GPUs beside a block: clocks, power, temperature, memory, and who uses them.

Needs the package nvidia-ml-py; without it, or without a driver, there is no data, and the reason is kept.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from moeprof.findings import JsonValue

_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One look at one GPU; None: not told.

    Attributes:
        time: Seconds since 1970.
        gpu, uuid: Which one.
        sm_mhz, memory_mhz: Clocks.
        power_mw, temperature_c, memory_bytes, utilisation: As NVML tells them.
        pids: Processes that use it, sorted.
    """

    time: float
    gpu: int
    uuid: str | None
    sm_mhz: int | None
    memory_mhz: int | None
    power_mw: int | None
    temperature_c: int | None
    memory_bytes: int | None
    utilisation: int | None
    pids: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """What gates judge; None: no data, for the `reason`.

    Attributes:
        samples, in_passes: Looks in all; looks within timed passes.
        clock_deviation: Largest relative deviation of an SM clock from its GPU's median within timed passes.
        cotenants: Processes on the GPUs that are not the server's, sorted.
    """

    samples: int
    in_passes: int
    clock_deviation: float | None
    cotenants: tuple[int, ...] | None
    reason: str | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object."""
        return {
            "samples": self.samples,
            "in_passes": self.in_passes,
            "clock_deviation": self.clock_deviation,
            "cotenants": None if self.cotenants is None else list(self.cotenants),
            "reason": self.reason,
        }


class Sampler:
    """A thread that looks at every GPU again and again; a context manager.

    Args:
        period_s: Time between two looks.
        look: Takes one look; NVML by default.

    Attributes:
        reason: Why there is no data, None while there is.
    """

    def __init__(self, period_s: float, *, look: Callable[[], list[GpuSample]] | None = None) -> None:
        self.reason: str | None = None
        self._period_s = period_s
        self._look = look
        self._samples: list[GpuSample] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="moeprof-gpu-samples", daemon=True)

    @property
    def samples(self) -> tuple[GpuSample, ...]:
        """Return what was seen so far."""
        return tuple(self._samples)

    def __enter__(self) -> Self:
        if self._look is None:
            self._look, self.reason = _nvml()
        if self._look is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        look = self._look
        while look is not None:
            try:
                self._samples += look()
            except Exception as error:  # noqa: BLE001 - the block goes on without samples, and says why
                self.reason = f"sampling ended: {type(error).__name__}: {error}"
                return
            if self._end.wait(self._period_s):
                return


def summary(
    samples: Sequence[GpuSample],
    passes: Sequence[tuple[float, float]],
    server_pids: Collection[int],
    *,
    reason: str | None = None,
) -> SampleSummary:
    """Return what the samples say.

    Args:
        samples: All of them.
        passes: Start and end of each timed pass, in seconds since 1970.
        server_pids: Every process that was the server's at any time (see `tree`).
        reason: Why there are none.
    """
    inside = [s for s in samples if any(start <= s.time <= end for start, end in passes)]
    told = [sample.pids for sample in samples if sample.pids is not None]
    others = {pid for pids in told for pid in pids} - set(server_pids)
    return SampleSummary(
        samples=len(samples),
        in_passes=len(inside),
        clock_deviation=_deviation(inside),
        cotenants=tuple(sorted(others)) if told else None,
        reason=reason if reason is not None else None if inside else "no sample fell into a timed pass",
    )


def tree(root: int) -> set[int]:
    """Return a process and everything below it, as far as /proc tells."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after_name = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
                parents[int(entry.name)] = int(after_name.split()[1])
            except (OSError, IndexError, ValueError):
                continue  # it has ended
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def columns(samples: Sequence[GpuSample]) -> dict[str, list[Any]]:
    """Return samples as columns, in the order of `GpuSample`; ``pids`` are lists."""
    rows = [{**asdict(sample), "pids": None if sample.pids is None else list(sample.pids)} for sample in samples]
    return {item.name: [row[item.name] for row in rows] for item in fields(GpuSample)}


def write(samples: Sequence[GpuSample], folder: Path, table: Callable[[Mapping[str, list[Any]], Path], None]) -> Path:
    """Write samples as a whole.

    Args:
        samples: All of them.
        folder: Of the run.
        table: Writes columns as Parquet; that is the analysis' to do.
    """
    path = folder / "samples.parquet"
    _replace(path, lambda temporary: table(columns(samples), temporary))
    return path


def _replace(path: Path, make: Callable[[Path], object]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        make(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _deviation(samples: Sequence[GpuSample]) -> float | None:
    clocks: dict[int, list[int]] = {}
    for sample in samples:
        if sample.sm_mhz is not None:
            clocks.setdefault(sample.gpu, []).append(sample.sm_mhz)
    found = []
    for values in clocks.values():
        median = statistics.median(values)
        if median > 0:
            found.append(max(abs(value - median) for value in values) / median)
    return max(found, default=None)


def _nvml() -> tuple[Callable[[], list[GpuSample]] | None, str | None]:
    try:
        import pynvml  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None, "nvidia-ml-py is not installed"
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        return None, f"NVML does not answer: {error}"
    if not handles:
        return None, "NVML finds no GPU"
    return (lambda: [_sample(pynvml, number, handle) for number, handle in enumerate(handles)]), None


def _sample(nvml: Any, gpu: int, handle: Any) -> GpuSample:
    def ask(call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(handle, *arguments)
        except nvml.NVMLError:
            return None  # this GPU does not tell that

    memory = ask(nvml.nvmlDeviceGetMemoryInfo)
    rates = ask(nvml.nvmlDeviceGetUtilizationRates)
    uuid = ask(nvml.nvmlDeviceGetUUID)
    processes = ask(nvml.nvmlDeviceGetComputeRunningProcesses)
    return GpuSample(
        time=time.time(),
        gpu=gpu,
        uuid=uuid.decode() if isinstance(uuid, bytes) else uuid,
        sm_mhz=ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        memory_mhz=ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
        power_mw=ask(nvml.nvmlDeviceGetPowerUsage),
        temperature_c=ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        memory_bytes=None if memory is None else memory.used,
        utilisation=None if rates is None else rates.gpu,
        pids=None if processes is None else tuple(sorted({process.pid for process in processes})),
    )
