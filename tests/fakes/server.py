"""A stand-in for ``vllm serve``: standard library only, up in a fraction of a second, with faults to order.

Run it as a script, alone or as the server command of a configuration::

    python tests/fakes/server.py --port 8264 --traces /abs/dir
    python tests/fakes/server.py --ready-after 0.2 serve MODEL --host 127.0.0.1 --port 8264 --profiler-config '{...}'

Flags of vLLM that it obeys: ``--host``, ``--port``, ``--served-model-name`` (first name), ``--max-num-seqs`` (256, per engine),
``--max-model-len`` (32768), ``--data-parallel-size``, ``--tensor-parallel-size``, ``--moe-backend`` (what the log claims),
``--speculative-config`` (num_speculative_tokens, synthetic_acceptance_rates), ``--profiler-config`` (torch_profiler_dir,
max_iterations; without it and without ``--traces`` the profile routes answer 404) and ``--enable-logging-iteration-details``.
Every other flag is accepted and ignored, except one that starts with ``--no-such``: that ends it with code 2, as a wrong flag does.
``VLLM_USE_V2_MODEL_RUNNER=0`` leaves the line about the V2 runner out of the log.

Its own options:

=====================  =================================================================================================
``--ready-after S``    /health answers 503 until S seconds after the start (0)
``--ranks R``          ranks that write traces (data x tensor parallel size, or 2 when neither is given)
``--traces DIR``       where traces go when --profiler-config does not say it
``--samples DIR``      folder of traces that are copied out, rank by rank in order of their names (samples/cpu/base)
``--step-ms MS``       duration of an engine step (5)
``--drafts K``         draft tokens per step when --speculative-config does not say it (3; 0 turns speculation off)
``--workers N``        child processes in the same process group, as vLLM's workers (0)
``--write-s S``        pause in the middle of writing each trace (0)
``--stop-s S``         how long a slow /stop_profile takes (3600)
``--extra-log TEXT``   one more line in the log, may be repeated
=====================  =================================================================================================

Faults, several with commas, in ``--fail`` or the environment variable ``FAKE_FAIL``:

====================  ==================================================================================================
``start``             ends with code 1 at once
``load``              logs a worker's traceback while loading and ends with code 1; never ready
``never-ready``       lives, and /health answers 503 for ever
``500``               every completion is answered 500
``500-after=N``       the same after N completions were answered
``hang-after=N``      no token any more once N were generated: requests stay running, routes still answer
``die-after=N``       ends with code 1 and a worker's traceback once N tokens were generated; its workers stay
``no-trace``          /stop_profile answers 200 and writes nothing
``tiny-trace``        traces of some hundred bytes, complete
``cut-trace``         the last rank's trace ends in the middle
``tmp-trace``         the last rank's trace keeps the name of an unfinished one (.tmp)
``one-rank-missing``  the last rank writes nothing
``slow-stop``         /stop_profile takes --stop-s seconds
``ignore-term``       SIGTERM does nothing
``wrong-tokens``      every completion ends one token early
``nan-logprobs``      logprobs are not finite
``drop-after=N``      every connection is cut in the middle of its stream after N completions
====================  ==================================================================================================

A completion without ``ignore_eos`` ends after half its tokens. Requests with a wrong model name get 404, those that do not fit 400.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "cpu" / "base"
RATES = (0.8, 0.6, 0.5)
ROUTES = ("/v1/completions", "/start_profile", "/stop_profile")
TINY = '{"traceEvents":[{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":1.0}],"traceName":"t"}\n'


class Request:
    """A completion that an engine works on."""

    def __init__(self, prompt: int, wanted: int) -> None:
        self.prompt = prompt
        self.wanted = wanted
        self.made = 0
        self.out: asyncio.Queue[int] = asyncio.Queue()  # tokens of each step

    @property
    def done(self) -> bool:
        return self.made >= self.wanted


class Engine:
    """One engine core: a queue, running requests, and the counters of /metrics."""

    def __init__(self, server: Server, index: int) -> None:
        self.server = server
        self.index = index
        self.running: list[Request] = []
        self.waiting: deque[Request] = deque()
        self.wake = asyncio.Event()
        self.steps = 0
        self.generated = 0
        self.prompted = 0
        self.drafts = 0
        self.accepted = [0] * server.drafts
        self.random = random.Random(index)

    def add(self, request: Request) -> None:
        self.waiting.append(request)
        self.wake.set()

    def drop(self, request: Request) -> None:
        if request in self.running:
            self.running.remove(request)
        if request in self.waiting:
            self.waiting.remove(request)

    async def run(self) -> None:
        while True:
            if not self.running and not self.waiting:
                self.wake.clear()
                await self.wake.wait()
            began = time.perf_counter()
            await asyncio.sleep(self.server.step_s)
            if self.server.hanging():
                await asyncio.Event().wait()
            self._step(began)

    def _step(self, began: float) -> None:
        generating = list(self.running)
        context = []
        while self.waiting and len(self.running) < self.server.seats:
            context.append(self.waiting.popleft())
            self.running.append(context[-1])
        for request in generating:
            self._emit(request, 1 + self._accept())
        for request in context:
            self.prompted += request.prompt
            self._emit(request, 1)
        self.running = [request for request in self.running if not request.done]
        self.steps += 1
        self.server.stepped(self, generating, context, began)

    def _accept(self) -> int:
        if not self.server.drafts:
            return 0
        self.drafts += 1
        throw = self.random.random()
        kept = sum(throw < rate for rate in self.server.rates)
        for position in range(kept):
            self.accepted[position] += 1
        return kept

    def _emit(self, request: Request, tokens: int) -> None:
        tokens = min(tokens, request.wanted - request.made)
        request.made += tokens
        self.generated += tokens
        request.out.put_nowait(tokens)


class Profile:
    """What the profiler of the server does: a window of steps, and the traces it leaves."""

    def __init__(self, server: Server, folder: Path, limit: int) -> None:
        self.server = server
        self.folder = folder
        self.limit = limit
        self.left: dict[int, int] | None = None  # steps left of each engine; None: not active
        self.written: set[int] = set()

    def start(self) -> None:
        if self.left is None:
            self.left = dict.fromkeys(range(len(self.server.engines)), self.limit)
            self.written = set()

    async def stop(self) -> None:
        if self.left is not None:
            for engine in self.left:
                await self._write(engine)
        self.left = None

    async def step(self, engine: int) -> None:
        if self.left and self.limit and self.left[engine] > 0:
            self.left[engine] -= 1
            if self.left[engine] == 0:
                await self._write(engine)

    async def _write(self, engine: int) -> None:
        if engine in self.written:
            return
        self.written.add(engine)
        per_engine = self.server.ranks // len(self.server.engines)
        for rank in range(engine * per_engine, (engine + 1) * per_engine):
            await self._write_rank(engine, rank, rank % per_engine)

    async def _write_rank(self, engine: int, rank: int, tensor: int) -> None:
        fails, last = self.server.fails, rank == self.server.ranks - 1
        if "no-trace" in fails or ("one-rank-missing" in fails and last):
            return
        content = gzip.compress(TINY.encode()) if "tiny-trace" in fails else self.server.sample(rank)
        if "cut-trace" in fails and last:
            content = content[: len(content) // 2]
        name = f"dp{engine}_pp0_tp{tensor}_dcp0_ep{rank}_rank{tensor}.{time.time_ns()}.pt.trace.json.gz"
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / (name + ".tmp" if "tmp-trace" in fails and last else name)
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            await asyncio.sleep(self.server.write_s)
            file.write(content[len(content) // 2 :])


class Server:
    """The HTTP front and everything behind it."""

    def __init__(self, options: argparse.Namespace, rest: list[str]) -> None:
        self.options = options
        self.fails = _fails(options.fail or os.environ.get("FAKE_FAIL", ""))
        speculative = json.loads(options.speculative_config or "{}")
        self.drafts = int(speculative.get("num_speculative_tokens", options.drafts))
        given = speculative.get("synthetic_acceptance_rates", RATES)
        self.rates: list[float] = [*given, *[0.0] * self.drafts][: self.drafts]
        data, tensor = options.data_parallel_size, options.tensor_parallel_size
        self.ranks: int = options.ranks or ((data or 1) * (tensor or 1) if data or tensor else 2)
        engines = data or (1 if tensor else self.ranks)
        self.seats: int = options.max_num_seqs
        self.step_s: float = options.step_ms / 1000
        self.write_s: float = options.write_s
        model = rest[rest.index("serve") + 1] if "serve" in rest[:-1] else "model"
        self.name = (options.served_model_name or [model])[0]
        self.born = time.monotonic()
        self.completions = 0
        self.engines = [Engine(self, index) for index in range(engines)]
        config = json.loads(options.profiler_config or "{}")
        folder = config.get("torch_profiler_dir") or options.traces
        self.profile = Profile(self, Path(folder), int(config.get("max_iterations", 0))) if folder else None
        self.samples = sorted(p for p in Path(options.samples).glob("*.json.gz") if "async_llm" not in p.name)
        self.tasks: set[asyncio.Task[Any]] = set()
        self.workers: list[subprocess.Popen[bytes]] = []

    # What happens by itself.

    def hanging(self) -> bool:
        return "hang-after" in self.fails and self.generated() >= self.fails["hang-after"]

    def generated(self) -> int:
        return sum(engine.generated for engine in self.engines)

    def sample(self, rank: int) -> bytes:
        return self.samples[rank % len(self.samples)].read_bytes()

    def stepped(self, engine: Engine, generating: list[Request], context: list[Request], began: float) -> None:
        if self.options.enable_logging_iteration_details:
            tokens = sum(request.prompt for request in context)
            log(
                f"(EngineCore_DP{engine.index} pid={os.getpid()})",
                f"[core.py:419] Engine {engine.index:03d}: Iteration({engine.steps}): {len(context)} context requests, "
                f"{tokens} context tokens, {len(generating)} generation requests, "
                f"{len(generating) * (1 + self.drafts)} generation tokens, "
                f"iteration elapsed time: {(time.perf_counter() - began) * 1000:.2f} ms",
            )
        if self.profile is not None:
            self.background(self.profile.step(engine.index))
        if "die-after" in self.fails and self.generated() >= self.fails["die-after"]:
            self.die()

    def background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def die(self) -> None:
        for line in (
            "Traceback (most recent call last):",
            '  File "/opt/vllm/v1/worker/gpu_worker.py", line 1, in execute_model',
            "RuntimeError: CUDA error: an illegal memory access was encountered",
        ):
            log(f"(Worker_DP0_EP0 pid={os.getpid()})", line, level="ERROR")
        log(f"(APIServer pid={os.getpid()})", "[launcher.py:99] Shutting down FastAPI HTTP server.")
        os._exit(1)

    def terminate(self) -> None:
        if "ignore-term" in self.fails:
            log(f"(APIServer pid={os.getpid()})", "SIGTERM is ignored", level="WARNING")
            return
        for worker in self.workers:
            worker.kill()
        log(f"(APIServer pid={os.getpid()})", "[launcher.py:99] Shutting down FastAPI HTTP server.")
        os._exit(0)

    def ready(self) -> bool:
        return "never-ready" not in self.fails and time.monotonic() - self.born >= self.options.ready_after

    def proofs(self) -> None:
        options = self.options
        for index in range(self.ranks):
            who = f"(Worker_DP{index}_EP{index} pid={os.getpid()})"
            if self.ranks > 1 and not options.tensor_parallel_size:
                log(who, "[cuda_communicator.py:201] Using AgRsAll2AllManager all2all manager.")
            if os.environ.get("VLLM_USE_V2_MODEL_RUNNER") != "0":
                log(who, "[gpu_worker.py:378] Using V2 Model Runner")
            backend = options.moe_backend.upper()
            log(who, f"[fp8.py:325] Using {backend} Fp8 MoE backend out of potential backends: ['TRITON', 'HUMMING'].")
        for text in options.extra_log:
            log(f"(APIServer pid={os.getpid()})", text)

    async def serve(self) -> None:
        api = f"(APIServer pid={os.getpid()})"
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.terminate)
        for _ in range(self.options.workers):
            self.workers.append(subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL))
        log(api, "[api_server.py:1] vLLM API server version 0.0.0 (a stand-in)")
        if "load" in self.fails:
            await asyncio.sleep(self.options.ready_after / 2)
            self.die()
        try:
            listening = await asyncio.start_server(self.connection, self.options.host, self.options.port, backlog=1024)
        except OSError as error:
            log(api, f"OSError: {error}", level="ERROR")
            os._exit(1)
        self.proofs()
        port = listening.sockets[0].getsockname()[1]
        log(api, f"[launcher.py:37] Starting vLLM API server on http://{self.options.host}:{port}")
        for engine in self.engines:
            self.background(engine.run())
        await asyncio.Event().wait()

    # HTTP.

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                verb, target, _ = lines[0].split(" ", 2)
                fields = {
                    k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)
                }
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                await self.route(verb, target.partition("?")[0], body, reader, writer)
                if fields.get("connection", "").lower() == "close":
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def route(
        self, verb: str, path: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if (verb == "POST") != (path in ROUTES):
            await answer(writer, 405 if path in ROUTES else 404, {"detail": "Not Found"})
        elif path == "/health":
            await answer(writer, 200 if self.ready() else 503, None)
        elif not self.ready():
            await answer(writer, 503, {"detail": "loading"})
        elif path == "/metrics":
            await answer(writer, 200, self.metrics())
        elif path == "/v1/models":
            entry = {"id": self.name, "object": "model", "max_model_len": self.options.max_model_len}
            await answer(writer, 200, {"object": "list", "data": [entry]})
        elif path == "/v1/completions":
            await self.completion(json.loads(body), reader, writer)
        elif path in ROUTES and self.profile is not None:
            await self.profiling(path, writer, self.profile)
        else:
            await answer(writer, 404, {"detail": "Not Found"})

    async def profiling(self, path: str, writer: asyncio.StreamWriter, profile: Profile) -> None:
        api = f"(APIServer pid={os.getpid()})"
        if path == "/start_profile":
            log(api, "[api_router.py:23] Starting profiler...")
            profile.start()
            log(api, "[api_router.py:25] Profiler started.")
        else:
            log(api, "[api_router.py:31] Stopping profiler...")
            if "slow-stop" in self.fails:
                await asyncio.sleep(self.options.stop_s)
            await profile.stop()
            log(api, "[api_router.py:33] Profiler stopped.")
        await answer(writer, 200, None)

    async def completion(
        self, asked: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        prompt, wanted = asked.get("prompt"), int(asked.get("max_tokens", 16))
        if "500" in self.fails or self.completions >= self.fails.get("500-after", sys.maxsize):
            await answer(writer, 500, failure(500, "EngineCore encountered an issue.", "InternalServerError"))
        elif asked.get("model") not in (None, self.name):
            await answer(writer, 404, failure(404, f"The model `{asked['model']}` does not exist.", "NotFoundError"))
        elif not isinstance(prompt, (list, str)) or len(prompt) + wanted > self.options.max_model_len:
            await answer(writer, 400, failure(400, "the request does not fit max_model_len", "BadRequestError"))
        else:
            tokens = wanted if asked.get("ignore_eos") else max(1, wanted // 2)
            request = Request(len(prompt), max(1, tokens - ("wrong-tokens" in self.fails)))
            engine = min(self.engines, key=lambda item: len(item.running) + len(item.waiting))
            engine.add(request)
            try:
                if asked.get("stream"):
                    await self.stream(asked, request, reader, writer)
                else:
                    await self.whole(asked, request, writer)
            finally:
                engine.drop(request)
            self.completions += 1

    async def stream(
        self, asked: dict[str, Any], request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        usage = bool((asked.get("stream_options") or {}).get("include_usage"))
        dropping = self.completions >= self.fails.get("drop-after", sys.maxsize)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        made = 0
        while made < request.wanted:
            tokens = await request.out.get()
            if reader.at_eof() or writer.is_closing():
                raise ConnectionResetError
            made += tokens
            finish = "length" if made >= request.wanted else None
            event(writer, self.chunk([{"index": 0, "text": " t" * tokens, "logprobs": None, "finish_reason": finish}]))
            await writer.drain()
            if dropping and made * 2 > request.wanted:
                writer.transport.abort()
                raise ConnectionResetError
        if usage:
            event(writer, {**self.chunk([]), "usage": _usage(request)})
        event(writer, None)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def whole(self, asked: dict[str, Any], request: Request, writer: asyncio.StreamWriter) -> None:
        made = 0
        while made < request.wanted:
            made += await request.out.get()
        logprobs = None
        if asked.get("logprobs") is not None:
            value = float("nan") if "nan-logprobs" in self.fails else -0.5
            logprobs = {
                "tokens": [" t"] * made,
                "token_logprobs": [value] * made,
                "top_logprobs": [{" t": value}] * made,
                "text_offset": list(range(0, 2 * made, 2)),
            }
        choice = {"index": 0, "text": " t" * made, "logprobs": logprobs, "finish_reason": "length"}
        await answer(writer, 200, {**self.chunk([choice]), "usage": _usage(request)})

    def chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": "cmpl-0", "object": "text_completion", "created": 0, "model": self.name, "choices": choices}

    def metrics(self) -> str:
        lines: list[str] = []

        def put(name: str, kind: str, engine: Engine, value: float, more: str = "") -> None:
            if not any(line.startswith(f"# TYPE vllm:{name.removesuffix('_count')} ") for line in lines):
                lines.append(f"# TYPE vllm:{name.removesuffix('_count')} {kind}")
            lines.append(f'vllm:{name}{{engine="{engine.index}",model_name="{self.name}"{more}}} {float(value)}')

        for engine in self.engines:
            put("num_requests_running", "gauge", engine, len(engine.running))
            put("num_requests_waiting", "gauge", engine, len(engine.waiting))
            put("prompt_tokens_total", "counter", engine, engine.prompted)
            put("generation_tokens_total", "counter", engine, engine.generated)
            put("iteration_tokens_total_count", "histogram", engine, engine.steps)
            if self.drafts:
                put("spec_decode_num_drafts_total", "counter", engine, engine.drafts)
                put("spec_decode_num_draft_tokens_total", "counter", engine, engine.drafts * self.drafts)
                put("spec_decode_num_accepted_tokens_total", "counter", engine, sum(engine.accepted))
                for position, count in enumerate(engine.accepted):
                    name = "spec_decode_num_accepted_tokens_per_pos_total"
                    put(name, "counter", engine, count, f',position="{position}"')
        return "\n".join(lines) + "\n"


def _usage(request: Request) -> dict[str, int]:
    total = request.prompt + request.made
    return {"prompt_tokens": request.prompt, "total_tokens": total, "completion_tokens": request.made}


def _fails(text: str) -> dict[str, int]:
    pairs = (item.partition("=") for item in text.split(",") if item)
    return {name.strip(): int(value or 0) for name, _, value in pairs}


def log(who: str, text: str, level: str = "INFO") -> None:
    print(f"{who} {level} {time.strftime('%m-%d %H:%M:%S')} {text}", flush=True)


def failure(code: int, message: str, kind: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def event(writer: asyncio.StreamWriter, value: dict[str, Any] | None) -> None:
    text = b"data: " + (b"[DONE]" if value is None else json.dumps(value).encode()) + b"\n\n"
    writer.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")


async def answer(writer: asyncio.StreamWriter, status: int, content: dict[str, Any] | str | None) -> None:
    body = b"" if content is None else content.encode() if isinstance(content, str) else json.dumps(content).encode()
    kind = "text/plain; version=0.0.4" if isinstance(content, str) else "application/json"
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name", nargs="+")
    parser.add_argument("--max-num-seqs", type=int, default=256)
    parser.add_argument("--max-model-len", type=int, default=32768)
    parser.add_argument("--data-parallel-size", "-dp", type=int)
    parser.add_argument("--tensor-parallel-size", "-tp", type=int)
    parser.add_argument("--moe-backend", default="humming")
    parser.add_argument("--speculative-config")
    parser.add_argument("--profiler-config")
    parser.add_argument("--enable-logging-iteration-details", action="store_true")
    parser.add_argument("--ready-after", type=float, default=0.0)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--traces")
    parser.add_argument("--samples", default=str(SAMPLES))
    parser.add_argument("--step-ms", type=float, default=5.0)
    parser.add_argument("--drafts", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--write-s", type=float, default=0.0)
    parser.add_argument("--stop-s", type=float, default=3600.0)
    parser.add_argument("--extra-log", action="append", default=[])
    parser.add_argument("--fail", default="")
    options, rest = parser.parse_known_args(argv)
    wrong = [word for word in rest if word.startswith("--no-such")]
    if wrong:
        print(f"usage: vllm serve\nvllm: error: unrecognized arguments: {' '.join(wrong)}", file=sys.stderr, flush=True)
        return 2
    server = Server(options, rest)
    if "start" in server.fails:
        log(f"(APIServer pid={os.getpid()})", "ImportError: libcudart.so.13: cannot open shared object", level="ERROR")
        return 1
    try:
        asyncio.run(server.serve())
    except KeyboardInterrupt:
        server.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
