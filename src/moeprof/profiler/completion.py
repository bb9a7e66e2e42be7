"""One streamed completion: when its chunks came, and how many tokens the server counted."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

from moeprof.profiler.http import Address, HttpError, Reply, request
from moeprof.profiler.sse import EventStream

_SAID = 200


@dataclass(frozen=True, slots=True)
class Completion:
    """What became of a request. Times are seconds of ``time.perf_counter``.

    Attributes:
        started_s: When it was sent.
        chunks_s: When each chunk with output came; with speculative decoding a chunk holds several tokens.
        input_tokens, output_tokens: As the server counted; None when it did not say.
        failure: Why it failed; None when it did not.
    """

    started_s: float
    chunks_s: tuple[float, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    failure: str | None = None

    @property
    def ttft_s(self) -> float:
        """Return the time to the first chunk."""
        return self.chunks_s[0] - self.started_s

    @property
    def e2el_s(self) -> float:
        """Return the time to the last chunk with output."""
        return self.chunks_s[-1] - self.started_s

    @property
    def itls_s(self) -> list[float]:
        """Return the times between chunks."""
        return [after - before for before, after in zip(self.chunks_s, self.chunks_s[1:], strict=False)]

    @property
    def tpot_s(self) -> float | None:
        """Return the mean time of a token after the first, by the server's count of tokens; None for a single token."""
        if self.output_tokens is None or self.output_tokens < 2:
            return None
        return (self.chunks_s[-1] - self.chunks_s[0]) / (self.output_tokens - 1)


async def complete(address: Address, body: bytes, limit_s: float) -> Completion:
    """Stream one completion to its end.

    Args:
        address: The server.
        body: The request, with ``stream`` and ``include_usage``.
        limit_s: Limit of the whole request.

    Returns:
        The completion; a failure is said there, never raised.
    """
    started = time.perf_counter()
    chunks: list[float] = []
    usage: dict[str, object] = {}
    try:
        async with asyncio.timeout(limit_s), request(address, "POST", "/v1/completions", body) as reply:
            if reply.status != 200:
                raise HttpError(await _refusal(reply))
            await _read(reply, chunks, usage)
    except TimeoutError:
        return Completion(started, tuple(chunks), failure=f"no end within {limit_s:g} s")
    except HttpError as error:
        return Completion(started, tuple(chunks), failure=str(error))
    counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not chunks:
        return Completion(started, failure="the stream ended without output")
    if not isinstance(counts[0], int) or not isinstance(counts[1], int):
        return Completion(started, tuple(chunks), failure="the stream ended without a count of tokens (usage)")
    return Completion(started, tuple(chunks), counts[0], counts[1])


async def _read(reply: Reply, chunks: list[float], usage: dict[str, object]) -> None:
    events = EventStream()
    ended = False
    async for piece in reply.pieces():
        now = time.perf_counter()
        try:
            for text in events.feed(piece):
                ended = ended or text == "[DONE]"
                if text != "[DONE]":
                    _take(json.loads(text), now, chunks, usage)
        except ValueError as error:
            raise HttpError("an event of the stream is no JSON") from error
    if not ended:
        raise HttpError("the stream ended without [DONE]")


def _take(event: object, now: float, chunks: list[float], usage: dict[str, object]) -> None:
    if not isinstance(event, dict):
        raise HttpError("an event of the stream is no JSON object")
    if "error" in event:
        raise HttpError(f"the stream said: {_message(event)}")
    if event.get("choices"):
        chunks.append(now)
    if isinstance(event.get("usage"), dict):
        usage.update(event["usage"])


async def _refusal(reply: Reply) -> str:
    text = (await reply.body()).decode("utf-8", "replace")
    try:
        text = _message(json.loads(text))
    except ValueError:
        pass  # not JSON: shown as it is
    return f"HTTP {reply.status}: {' '.join(text.split())[:_SAID]}".rstrip(": ")


def _message(content: object) -> str:
    error = content.get("error", content) if isinstance(content, dict) else content
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)
