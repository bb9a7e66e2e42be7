"""A small HTTP/1.1 client on asyncio streams: one request a connection, plain or chunked answers, read piece by piece.

It serves the built-in load client only. Limits of time are the caller's (``asyncio.timeout``); limits of size are here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

_HEAD = 256 * 1024
_PIECE = 64 * 1024
_BODY = 64 * 1024 * 1024


class HttpError(Exception):
    """An exchange that did not come to its end; the text is the end of a sentence, such as ``the connection was refused``."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens.

    Attributes:
        host: Name or address, without brackets.
        port: Port.
        prefix: Path before the routes, without a slash at its end.
    """

    host: str
    port: int
    prefix: str = ""

    @classmethod
    def of(cls, url: str) -> Address:
        """Read a base address.

        Raises:
            ValueError: It is not ``http://HOST[:PORT][/PATH]``.

        >>> Address.of("http://127.0.0.1:8264/")
        Address(host='127.0.0.1', port=8264, prefix='')
        """
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.query or parts.fragment or parts.username:
            raise ValueError(f"{url!r} is not an address of the form http://HOST:PORT")
        return cls(parts.hostname, parts.port or 80, parts.path.rstrip("/"))

    @property
    def name(self) -> str:
        """Return what the Host field holds."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Reply:
    """An answer whose head has come.

    Attributes:
        status: Its status.
    """

    def __init__(self, status: int, fields: dict[str, str], reader: asyncio.StreamReader) -> None:
        self.status = status
        self._fields = fields
        self._reader = reader

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes.

        Raises:
            HttpError: The connection ended too early, or the framing is broken.
        """
        try:
            if "chunked" in self._fields.get("transfer-encoding", "").lower():
                async for piece in self._chunks():
                    yield piece
            elif "content-length" in self._fields:
                left = int(self._fields["content-length"])
                while left:
                    piece = await self._reader.read(min(left, _PIECE))
                    if not piece:
                        raise HttpError("the connection ended in the middle of the answer")
                    left -= len(piece)
                    yield piece
            else:
                while piece := await self._reader.read(_PIECE):
                    yield piece
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise HttpError("the connection ended in the middle of the answer") from error
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise HttpError("the answer is no valid HTTP") from error

    async def body(self) -> bytes:
        """Return the whole body.

        Raises:
            HttpError: As in :meth:`pieces`, or it is larger than 64 MiB.
        """
        parts: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            size += len(piece)
            if size > _BODY:
                raise HttpError("the answer is larger than 64 MiB")
            parts.append(piece)
        return b"".join(parts)

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            line = await self._reader.readuntil(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            if not 0 <= size <= _BODY:
                raise ValueError(size)
            if size == 0:
                while await self._reader.readuntil(b"\r\n") != b"\r\n":  # trailers
                    pass
                return
            yield await self._reader.readexactly(size)
            if await self._reader.readexactly(2) != b"\r\n":
                raise ValueError("chunk without an end")


@asynccontextmanager
async def request(address: Address, verb: str, path: str, body: bytes = b"") -> AsyncIterator[Reply]:
    """Send a request on a connection of its own; the connection is cut when the block is left.

    Args:
        address: The server.
        verb: ``GET`` or ``POST``.
        path: Route, from its slash.
        body: JSON to send.

    Raises:
        HttpError: No connection, or no answer's head.
    """
    try:
        reader, writer = await asyncio.open_connection(address.host, address.port, limit=_HEAD)
    except ConnectionRefusedError as error:
        raise HttpError("the connection was refused") from error
    except OSError as error:
        raise HttpError(f"no connection ({error.strerror or type(error).__name__})") from error
    try:
        head = (
            f"{verb} {address.prefix}{path} HTTP/1.1\r\nHost: {address.name}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            writer.write(head.encode("ascii") + body)
            await writer.drain()
            status, fields = await _head(reader)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise HttpError("the connection ended before an answer") from error
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise HttpError("the answer is no valid HTTP") from error
        yield Reply(status, fields, reader)
    finally:
        writer.transport.abort()  # close() would wait for bytes that nobody reads any more


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    while True:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        version, status = lines[0].split(" ")[:2]
        if not version.startswith("HTTP/1."):
            raise ValueError(version)
        if int(status) >= 200:  # 1xx announces another head
            pairs = (line.partition(":") for line in lines[1:] if line)
            return int(status), {name.strip().lower(): value.strip() for name, _, value in pairs}
