"""Server-sent events: bytes as they come in, the data of complete events out."""

from __future__ import annotations

_EVENT = 16 * 1024 * 1024


class EventStream:
    r"""Put events together from pieces that end anywhere.

    >>> stream = EventStream()
    >>> stream.feed(b"data: one\n"), stream.feed(b"\ndata: tw"), stream.feed(b"o\r\n\r\n")
    ([], ['one'], ['two'])
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[str]:
        """Take a piece, and return the data of the events that it completes.

        Raises:
            ValueError: An event is larger than 16 MiB.
        """
        buffered = self._rest + piece
        held = b""
        if buffered.endswith(b"\r"):  # its line feed may be the first byte of the next piece
            buffered, held = buffered[:-1], b"\r"
        *lines, rest = buffered.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = rest + held
        events = []
        for line in lines:
            if line:
                self._line(line)
            elif self._data:
                events.append(b"\n".join(self._data).decode("utf-8", "replace"))
                self._data, self._size = [], 0
        if self._size + len(self._rest) > _EVENT:
            raise ValueError("an event is larger than 16 MiB")
        return events

    def _line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":  # comments and other fields say nothing about tokens
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._size += len(value)
