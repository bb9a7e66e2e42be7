"""One timed pass, by whichever client was chosen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from moeprof.profiler.bench import run_bench
from moeprof.profiler.client import Progress, run_pass
from moeprof.profiler.find_client import ChosenClient
from moeprof.profiler.load import Load
from moeprof.profiler.results import PassResult

_LOOK_S = 0.1
_END_S = 5.0


def run_with(
    client: ChosenClient,
    address: str,
    model: str,
    load: Load,
    output: Path,
    *,
    tokenizer: str,
    env: Mapping[str, str],
    timeout_s: float,
    cancelled: threading.Event | None = None,
    progress: Progress | None = None,
) -> PassResult:
    """Run one pass.

    Args:
        client: Who sends it.
        address: Base address of the server.
        model: Its name in requests.
        load: What to send; with a vocabulary for the built-in client.
        output: JSON file of the result.
        tokenizer: Folder or name of the tokenizer, for vLLM's clients.
        env: The server's whole environment, for vLLM's clients.
        timeout_s: Limit of the pass.
        cancelled: When set from another thread, the pass ends soon.
        progress: Called with requests done and all requests, by the built-in client only.

    Raises:
        PassFailedError: Not finished in time, cancelled, or nothing was measured.
    """
    if client.name == "builtin":
        stop = cancelled or threading.Event()
        return _apart(
            lambda: run_pass(address, model, load, output, timeout_s=timeout_s, cancelled=stop, progress=progress), stop
        )
    return run_bench(
        client, address, model, load, output, tokenizer=tokenizer, env=env, timeout_s=timeout_s, cancelled=cancelled
    )


def _apart(work: Callable[[], PassResult], stop: threading.Event) -> PassResult:
    """Do the work in a thread of its own: a signal's exception comes in the main one, and must not tear an event loop apart.

    Args:
        work: What to do; ends soon once `stop` is set.
        stop: Set when this wait is interrupted.
    """
    results: list[PassResult] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name="moeprof-client", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LOOK_S)
    except BaseException:
        stop.set()
        thread.join(_END_S)
        raise
    if errors:
        raise errors[0]
    return results[0]
