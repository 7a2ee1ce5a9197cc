"""Waits until one of several connections, sockets or pipes has something to read."""

from __future__ import annotations

import select
import time
from collections.abc import Collection, Iterable

from kgctl.client.net.connection import Connection

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL


def wait_for_answers(
    connections: Collection[Connection], timeout: float, *, watch: Iterable[int] = (), hangup: int | None = None
) -> tuple[list[Connection], set[int]]:
    """The connections whose next answer begins to arrive or that have failed, and the descriptors of `watch` that are readable.

    Waits at most `timeout` seconds. `hangup` is a pipe that the caller writes to; it is among the descriptors once its reader
    has closed it.
    """
    deadline = time.monotonic() + timeout
    poll = select.poll()
    by_fileno = {connection.fileno(): connection for connection in connections}
    for fileno in (*by_fileno, *watch):
        poll.register(fileno, select.POLLIN)
    if hangup is not None:
        poll.register(hangup, 0)
    while True:
        buffered = {fileno for fileno, connection in by_fileno.items() if connection.has_buffered}
        left = 0.0 if buffered else max(0.0, deadline - time.monotonic())
        readable = buffered | {fileno for fileno, event in poll.poll(left * 1000) if event & _READABLE}
        arrived = [by_fileno[fileno] for fileno in readable & by_fileno.keys() if by_fileno[fileno].has_answer()]
        others = readable - by_fileno.keys()
        if arrived or others or time.monotonic() >= deadline:
            return arrived, others
