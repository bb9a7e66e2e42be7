"""vLLM's own load clients: run in a session of their own, their output kept and read.

``vllm bench serve`` (Python) and ``vllm-rs bench serve`` (Rust) write the same JSON keys; one process per pass.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from moeprof.errors import PassFailedError
from moeprof.profiler.find_client import ChosenClient, Client
from moeprof.profiler.load import Load
from moeprof.profiler.results import PassResult, measures, problems

_LOOK_S = 0.1
_END_S = 5.0
_PER_REQUEST = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "generated_texts", "errors")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TAIL_LINES = 5
_TAIL_BYTES = 16 * 1024


def command_line(
    client: ChosenClient, address: str, model: str, load: Load, output: Path, *, tokenizer: str
) -> tuple[str, ...]:
    """Compose a client's command line for one pass.

    Args:
        client: One of vLLM's.
        address: Base address of the server.
        model: Its name in requests.
        load: What to send.
        output: JSON file to write.
        tokenizer: Folder or name of the tokenizer: the server's model.
    """
    words = [*client.words, "--backend", "vllm", "--base-url", address, "--endpoint", "/v1/completions"]
    words += ["--model", tokenizer, "--served-model-name", model, "--tokenizer", tokenizer]
    words += ["--dataset-name", "random", "--random-input-len", str(load.input_len)]
    words += ["--random-output-len", str(load.output_len), "--num-prompts", str(load.prompts)]
    words += [] if load.concurrency is None else ["--max-concurrency", str(load.concurrency)]
    words += [] if load.rate is None else ["--request-rate", f"{load.rate:g}"]
    words += ["--seed", str(load.seed), "--temperature", f"{load.temperature:g}"]
    words += ["--ignore-eos"] if load.ignore_eos else []
    words += ["--prompt-token-ids"] if client.name == "vllm-rs" else []  # exact input lengths
    words += ["--percentile-metrics", ",".join(measures()), "--metric-percentiles", "50,90,99", "--disable-tqdm"]
    words += ["--save-result", "--result-dir", str(output.parent), "--result-filename", output.name]
    return tuple(words)


def run_bench(
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
) -> PassResult:
    """Run a client for one pass; what it printed is kept beside its JSON, as ``.txt``.

    Args:
        client: One of vLLM's.
        address: Base address of the server.
        model: Its name in requests.
        load: What to send.
        output: JSON file that it writes.
        tokenizer: Folder or name of the tokenizer.
        env: Its whole environment: the server's.
        timeout_s: Limit of the pass, with the client's own start.
        cancelled: When set from another thread, the client is ended.

    Raises:
        PassFailedError: It could not be started, failed, was too slow, was cancelled, or left no JSON.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    text = output.with_suffix(".txt")
    words = command_line(client, address, model, load, output, tokenizer=tokenizer)
    code = _run(words, text, env, timeout_s, cancelled)
    name = f"{client.name} bench serve"
    if code != 0:
        raise PassFailedError(f"{name} ended with code {code}{_said(text)}", path=str(text), hint=_OTHER)
    if not output.exists():
        raise PassFailedError(f"{name} wrote no result{_said(text)}", path=str(text), hint=_OTHER)
    return read_result(output, client.name, load)


_OTHER = 'read its output there; passes.client = "builtin" needs no other program'


def read_result(path: Path, client: Client, load: Load) -> PassResult:
    """Read a client's JSON.

    Args:
        path: The file.
        client: Who wrote it.
        load: What was asked, to check it against.

    Raises:
        PassFailedError: It is no JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PassFailedError(f"the result of {client} bench serve is no JSON: {error}", path=str(path)) from error
    if not isinstance(content, dict):
        raise PassFailedError(f"the result of {client} bench serve is no JSON object", path=str(path))
    raw: dict[str, Any] = {key: value for key, value in content.items() if key not in _PER_REQUEST and key != "date"}
    if raw.get("request_rate") == float("inf"):
        raw["request_rate"] = "inf"
    failed = raw.get("failed")
    if failed is None and isinstance(raw.get("completed"), int):  # early releases wrote no such key
        failed = raw["failed"] = load.prompts - raw["completed"]
    found = problems(raw, load, exact_input=client != "vllm")
    date = parse_date(content.get("date"))
    return PassResult(raw, f"{path.parent.name}/{path.name}", client, int(failed or 0), found, date)


def parse_date(text: object) -> str | None:
    """Return a client's date as ISO 8601: local time without a zone from the Python client, UTC from the Rust one; None if it is neither.

    >>> parse_date("20261130-203730"), parse_date("2026-11-30T20:34:56Z")
    ('2026-11-30T20:37:30', '2026-11-30T20:34:56+00:00')
    """
    if not isinstance(text, str):
        return None
    for form in ("%Y%m%d-%H%M%S", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z"):
        try:
            return datetime.strptime(text, form).isoformat()
        except ValueError:
            continue
    return None


def _run(
    words: Sequence[str], text: Path, env: Mapping[str, str], timeout_s: float, cancelled: threading.Event | None
) -> int:
    try:
        with text.open("wb") as stream:
            process = subprocess.Popen(
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=dict(env),
                start_new_session=True,
            )
    except OSError as error:
        raise PassFailedError(f"{words[0]} cannot be started: {error.strerror}", hint=_OTHER) from error
    deadline = time.monotonic() + timeout_s
    try:
        while True:
            try:
                return process.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                if cancelled is not None and cancelled.is_set():
                    raise PassFailedError("the pass was stopped before its end", path=str(text)) from None
                if time.monotonic() > deadline:
                    raise PassFailedError(
                        f"the pass did not finish within {timeout_s:g} s{_said(text)}",
                        path=str(text),
                        hint="raise passes.timeout_s, or send less",
                    ) from None
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the client's process group; one that is over has left nobody, or is told to go as well."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            continue


def _said(text: Path) -> str:
    """Return the last lines of a client's output, as the end of a sentence."""
    try:
        with text.open("rb") as file:
            file.seek(max(0, text.stat().st_size - _TAIL_BYTES))
            content = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in re.split(r"[\r\n]+", _ANSI.sub("", content)) if line.strip()]
    return ": " + " | ".join(line[:200] for line in lines[-_TAIL_LINES:]) if lines else ""
