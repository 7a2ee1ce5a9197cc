"""The program that starts this broker and holds the other end of stdin: a broker that it does not confirm ends with it."""

from __future__ import annotations

import fcntl
import os
import signal
from typing import TYPE_CHECKING

from broker.standard_streams import STDIN, discard

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


def end_with_starter() -> None:
    """Until `await_confirmation`, end at once when the starter does: the end of the pipe on stdin raises SIGIO."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(STDIN, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(STDIN, fcntl.F_SETFL, fcntl.fcntl(STDIN, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    try:
        os.read(STDIN, 1)
    except BlockingIOError:
        return
    # It ended before the first line of this function: the end of the pipe raised no signal.
    os._exit(128 + signal.SIGIO)


def await_confirmation(loop: asyncio.AbstractEventLoop, stop: Callable[[str], None]) -> None:
    """Let the event loop read what the starter says: a byte confirms the start; `stop` gets the reason if none comes."""
    fcntl.fcntl(STDIN, fcntl.F_SETFL, fcntl.fcntl(STDIN, fcntl.F_GETFL) & ~os.O_ASYNC)

    def read() -> None:
        loop.remove_reader(STDIN)
        confirmed = os.read(STDIN, 1)
        discard(STDIN, os.O_RDONLY)
        if not confirmed:
            stop("the program that started the broker ended before the start was complete")

    loop.add_reader(STDIN, read)
