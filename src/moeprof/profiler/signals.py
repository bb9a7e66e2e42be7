"""TERM and HUP as an exception, so that they leave through the same clean-up as Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """We were asked to end. No ``Exception``, so that nothing on the way takes it for a failure of its own.

    Attributes:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What a shell expects of a program that ended so."""
        return 128 + self.number


@contextmanager
def termination_as_exception() -> Iterator[None]:
    """Raise :class:`Terminated` at the first TERM or HUP; more of them do not disturb the clean-up.

    Handlers are restored at the end. A signal that was ignored before (``nohup``) stays ignored; outside the main thread nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise Terminated(number)

    previous = {number: signal.getsignal(number) for number in _NUMBERS}
    ours = [number for number, handler in previous.items() if handler is not signal.SIG_IGN]
    for number in ours:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, previous[number])
