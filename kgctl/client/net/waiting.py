"""Waits until one of several sockets or pipes has something to read."""

from __future__ import annotations

import select
from collections.abc import Iterable

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL


def wait_readable(filenos: Iterable[int], timeout: float, *, broken: int | None = None) -> set[int]:
    """Those that can be read, or have failed, at the latest after `timeout` seconds.

    `broken`: a pipe that we write to; it is among them once nobody reads it any more.
    """
    poll = select.poll()
    for fileno in filenos:
        poll.register(fileno, select.POLLIN)
    if broken is not None:
        poll.register(broken, 0)
    return {fileno for fileno, event in poll.poll(max(0.0, timeout) * 1000) if event & _READABLE}
