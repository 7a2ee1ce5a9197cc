"""Waits until one of several sockets or pipes is readable."""

from __future__ import annotations

import select
from collections.abc import Iterable

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL


def wait_readable(filenos: Iterable[int], timeout: float, *, hangup: int | None = None) -> set[int]:
    """The descriptors that are readable or have failed, after at most `timeout` seconds.

    `hangup` is a pipe that the caller writes to. The result contains it once its reader has closed it.
    """
    poll = select.poll()
    for fileno in filenos:
        poll.register(fileno, select.POLLIN)
    if hangup is not None:
        poll.register(hangup, 0)
    return {fileno for fileno, event in poll.poll(max(0.0, timeout) * 1000) if event & _READABLE}
