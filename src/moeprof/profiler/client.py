"""The built-in load client: streams of completions with token ids as prompts, closed loop or Poisson arrivals.

For where neither ``vllm bench serve`` nor ``vllm-rs bench serve`` is at hand. Its result has their keys, by their definitions: latencies over
completed requests, a request's clock from before it connects to its last chunk with output, TPOT by the server's count of tokens.
"""

from __future__ import annotations

import asyncio
import json
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

from moeprof.errors import PassFailedError
from moeprof.profiler import speculation
from moeprof.profiler.completion import Completion, complete
from moeprof.profiler.http import Address, HttpError, request
from moeprof.profiler.load import Load
from moeprof.profiler.results import PassResult, problems, statistics

Progress = Callable[[int, int], None]
_Result = TypeVar("_Result")
_LOOK_S = 0.1
_METRICS_S = 5.0
_SPARE_FILES = 128


def run_pass(
    address: str,
    model: str,
    load: Load,
    output: Path,
    *,
    timeout_s: float,
    cancelled: threading.Event | None = None,
    progress: Progress | None = None,
) -> PassResult:
    """Send a load and measure it.

    Args:
        address: Base address of the server.
        model: Its name in requests.
        load: What to send; with a vocabulary.
        output: JSON file for the result with its values per request; its folder and name are the result's ``file``.
        timeout_s: Limit of the whole pass.
        cancelled: When set from another thread, the pass ends soon.
        progress: Called with requests done and all requests.

    Raises:
        PassFailedError: Not finished in time, cancelled, or not one request completed.
    """
    bodies = [body(load, model, index) for index in range(load.prompts)]  # before the clock runs
    _allow_files(load.concurrency or load.prompts)
    done: list[Completion] = []

    async def work() -> tuple[float, dict[str, object]]:
        server = Address.of(address)
        before = speculation.read(await metrics(server))
        began = time.perf_counter()
        await _send(server, bodies, load, timeout_s, done, progress)
        duration = time.perf_counter() - began
        return duration, speculation.difference(before, speculation.read(await metrics(server)))

    duration, drafts = asyncio.run(
        bounded(work(), timeout_s, cancelled, lambda: f"{len(done)} of {load.prompts} requests")
    )
    raw = summary(done, load, model, duration) | drafts
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(raw | _details(done), indent=1) + "\n", encoding="utf-8")
    if raw["completed"] == 0:
        raise PassFailedError(
            f"all {load.prompts} requests failed: {reasons(done)}", path=str(output), hint="look at the server's log"
        )
    failed = int(raw["failed"])
    return PassResult(raw, f"{output.parent.name}/{output.name}", "builtin", failed, _problems(raw, done, load))


def body(load: Load, model: str, index: int) -> bytes:
    """Return the request of a prompt.

    Args:
        load: Where it belongs.
        model: Name in requests.
        index: Which prompt.
    """
    content = {
        "model": model,
        "prompt": load.prompt(index),
        "max_tokens": load.output_len,
        "temperature": load.temperature,
        "ignore_eos": load.ignore_eos,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return json.dumps(content, separators=(",", ":")).encode()


def summary(done: Sequence[Completion], load: Load, model: str, duration_s: float) -> dict[str, Any]:
    """Return vLLM's result keys of a pass.

    Args:
        done: All requests, failed ones too.
        load: What was asked.
        model: Name in requests.
        duration_s: From the first request's start to the last one's end.
    """
    good = [item for item in done if item.failure is None]
    inputs = sum(item.input_tokens or 0 for item in good)
    outputs = sum(item.output_tokens or 0 for item in good)
    return {
        "backend": "vllm",
        "model_id": model,
        "num_prompts": load.prompts,
        "request_rate": "inf" if load.rate is None else load.rate,
        "max_concurrency": load.concurrency,
        "duration": duration_s,
        "completed": len(good),
        "failed": len(done) - len(good),
        "total_input_tokens": inputs,
        "total_output_tokens": outputs,
        "request_throughput": _per_second(len(good), duration_s),
        "output_throughput": _per_second(outputs, duration_s),
        "total_token_throughput": _per_second(inputs + outputs, duration_s),
        **statistics("ttft", [item.ttft_s for item in good]),
        **statistics("tpot", [item.tpot_s for item in good if item.tpot_s is not None]),
        **statistics("itl", [gap for item in good for gap in item.itls_s]),
        **statistics("e2el", [item.e2el_s for item in good]),
    }


def reasons(done: Sequence[Completion]) -> str:
    """Return why requests failed, the commonest reason first.

    >>> reasons([Completion(0.0, failure="HTTP 500"), Completion(0.0, failure="HTTP 500")])
    'HTTP 500 (2)'
    """
    counts = Counter(item.failure for item in done if item.failure is not None)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    more = [f"and {len(ordered) - 3} other reasons"] if len(ordered) > 3 else []
    return "; ".join([f"{reason} ({count})" for reason, count in ordered[:3]] + more)


async def bounded(
    work: Coroutine[Any, Any, _Result], timeout_s: float, cancelled: threading.Event | None, so_far: Callable[[], str]
) -> _Result:
    """Await work until its end, its limit, or a word from another thread; it is over when this returns.

    Args:
        work: What to do.
        timeout_s: Limit.
        cancelled: The word.
        so_far: Says for the error what was done by then.

    Raises:
        PassFailedError: The limit or the word came first.
    """
    task = asyncio.ensure_future(work)
    deadline = time.monotonic() + timeout_s
    try:
        while not task.done():
            left = deadline - time.monotonic()
            if cancelled is not None and cancelled.is_set():
                raise PassFailedError(f"the pass was stopped after {so_far()}")
            if left <= 0:
                raise PassFailedError(
                    f"the pass did not finish within {timeout_s:g} s: {so_far()} were done",
                    hint="raise passes.timeout_s, or send less",
                )
            await asyncio.wait({task}, timeout=min(_LOOK_S, left))
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})


async def metrics(server: Address) -> str | None:
    """Return the Prometheus text of a server; None if it does not answer.

    Args:
        server: The server.
    """
    try:
        async with asyncio.timeout(_METRICS_S), request(server, "GET", "/metrics") as reply:
            return (await reply.body()).decode("utf-8", "replace") if reply.status == 200 else None
    except (TimeoutError, HttpError):
        return None


async def _send(
    server: Address,
    bodies: Sequence[bytes],
    load: Load,
    limit_s: float,
    done: list[Completion],
    progress: Progress | None,
) -> None:
    gate = nullcontext() if load.concurrency is None else asyncio.Semaphore(load.concurrency)

    async def one(content: bytes, at_s: float) -> None:
        if at_s > 0:
            await asyncio.sleep(at_s)
        async with gate:
            done.append(await complete(server, content, limit_s))
        if progress is not None:
            progress(len(done), len(bodies))

    async with asyncio.TaskGroup() as group:
        for content, at_s in zip(bodies, load.arrivals(), strict=True):
            group.create_task(one(content, at_s))


def _problems(raw: dict[str, Any], done: Sequence[Completion], load: Load) -> tuple[str, ...]:
    found = problems(raw, load)
    return (*found, f"reasons of failure: {reasons(done)}") if raw["failed"] else found


def _per_second(count: int, duration_s: float) -> float | None:
    return count / duration_s if duration_s > 0 else None


def _details(done: Sequence[Completion]) -> dict[str, Any]:
    """Return the lists that vLLM's client adds with --save-detailed, in order of the requests' starts; times in seconds."""
    ordered = sorted(done, key=lambda item: item.started_s)
    return {
        "input_lens": [item.input_tokens for item in ordered],
        "output_lens": [item.output_tokens for item in ordered],
        "ttfts": [item.ttft_s if item.chunks_s else None for item in ordered],
        "itls": [item.itls_s for item in ordered],
        "start_times": [item.started_s for item in ordered],
        "errors": [item.failure or "" for item in ordered],
    }


def _allow_files(connections: int) -> None:
    """Raise the soft limit of open files where that many connections would not fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        room = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, room), hard))
