"""Events and answers that come in pieces, against the parsers and a server of a few lines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from moeprof.profiler.completion import Completion, complete
from moeprof.profiler.http import Address, HttpError, request
from moeprof.profiler.sse import EventStream

STREAM = b": comment\r\ndata: {\"a\":1}\r\n\r\nevent: x\ndata: one\ndata:two\n\ndata: \xc3\xa4\r\rdata: [DONE]\n\n"  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_events_do_not_depend_on_where_pieces_end(size: int) -> None:
    # GIVEN a stream with all three line ends WHEN it comes in pieces THEN the events are the same
    stream = EventStream()
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [event for piece in pieces for event in stream.feed(piece)] == ['{"a":1}', "one\ntwo", "ä", "[DONE]"]


def test_an_event_has_a_limit() -> None:
    # GIVEN a line that never ends THEN it is not kept for ever
    stream = EventStream()
    assert stream.feed(b"x" * 16 * 1024 * 1024) == []
    with pytest.raises(ValueError, match="16 MiB"):
        stream.feed(b"x")


@pytest.mark.parametrize("url", ["https://x", "http://", "127.0.0.1:80", "http://u@x:1", "http://x?q"])
def test_an_address_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        Address.of(url)


def test_addresses() -> None:
    assert Address.of("http://[::1]:80/base/") == Address("::1", 80, "/base")
    assert Address.of("http://[::1]:80").name == "[::1]:80"
    assert Address.of("http://x").port == 80


def against(answer: bytes, action: Callable[[Address], Awaitable[object]]) -> object:
    """Run an action against a server that gives one answer to whatever it is asked, and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def run() -> object:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            return await action(Address("127.0.0.1", server.sockets[0].getsockname()[1]))
        finally:
            server.close()
            await server.wait_closed()

    return asyncio.run(run())


async def fetch(address: Address) -> tuple[int, bytes]:
    async with request(address, "GET", "/") as reply:
        return reply.status, await reply.body()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (OK + b"Content-Length: 3\r\n\r\nabcdef", (200, b"abc")),
        (OK + b"\r\nto the end", (200, b"to the end")),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nt: u\r\n\r\n", (200, b"abc0123456789")),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", (503, b"")),
    ],
)  # fmt: skip
def test_bodies(answer: bytes, expected: tuple[int, bytes]) -> None:
    # WHEN an answer comes in any framing THEN its body is whole
    assert against(answer, fetch) == expected


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "ended before an answer"),
        (b"HTTP/1.1 200", "ended before an answer"),
        (b"SSH-2.0\r\n\r\n", "no valid HTTP"),
        (OK + b"Content-Length: 5\r\n\r\nabc", "in the middle"),
        (OK + b"Content-Length: x\r\n\r\nabc", "no valid HTTP"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", "in the middle"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab", "no valid HTTP"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcd", "no valid HTTP"),
    ],
)
def test_broken_answers(answer: bytes, message: str) -> None:
    # WHEN an answer is cut or no HTTP THEN that is said
    with pytest.raises(HttpError, match=message):
        against(answer, fetch)


CHUNK = b'data: {"choices":[{"text":"t"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("body", "chunks", "failure"),
    [
        (CHUNK * 2 + USAGE + DONE, 2, None),
        (CHUNK + USAGE, 1, "the stream ended without [DONE]"),
        (CHUNK + DONE, 1, "the stream ended without a count of tokens (usage)"),
        (USAGE + DONE, 0, "the stream ended without output"),
        (CHUNK + b'data: {"error":{"message":"out of memory"}}\n\n', 1, "the stream said: out of memory"),
        (b"data: {\n\n", 0, "an event of the stream is no JSON"),
        (b"data: 1\n\n", 0, "an event of the stream is no JSON object"),
    ],
)
def test_completions(body: bytes, chunks: int, failure: str | None) -> None:
    # WHEN a stream ends well or badly
    done = against(OK + b"\r\n" + body, lambda address: complete(address, b"{}", 30))
    # THEN the completion says so
    assert isinstance(done, Completion)
    assert (len(done.chunks_s), done.failure) == (chunks, failure)
    assert (done.input_tokens, done.output_tokens) == ((3, 5) if failure is None else (None, None))


def test_a_completion_is_refused() -> None:
    # WHEN the server says no THEN its words are kept
    body = b'{"error":{"message":"no\\n  such model"}}'
    done = against(b"HTTP/1.1 404 No\r\n\r\n" + body, lambda address: complete(address, b"{}", 30))
    assert isinstance(done, Completion) and done.failure == "HTTP 404: no such model"


def test_latencies_of_a_completion() -> None:
    # GIVEN three chunks with seven tokens THEN TPOT counts tokens and ITL counts chunks
    done = Completion(10.0, (10.5, 10.75, 11.5), 3, 7)
    assert (done.ttft_s, done.e2el_s, done.itls_s, done.tpot_s) == (0.5, 1.5, [0.25, 0.75], 1.0 / 6)
    assert Completion(10.0, (10.5,), 3, 1).tpot_s is None
