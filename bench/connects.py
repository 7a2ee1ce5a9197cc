"""Many clients that connect at the same time, as after a restart of the broker."""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import time

from bench import wire
from bench.wire import Refused
from broker.protocol.messages.heartbeat import HeartbeatRequest

LONGEST_WAIT_S = 30.0


def all_answered_s(address: tuple[str, int], count: int) -> float:
    """Seconds from the first connect until every client has a response to its first request."""
    first = wire.frame(HeartbeatRequest(group_id="bench-none", generation_id=0, member_id="none"))
    with contextlib.ExitStack() as sockets, selectors.DefaultSelector() as selector:
        began = time.perf_counter()
        for _ in range(count):
            sock = sockets.enter_context(socket.socket())
            sock.setblocking(False)
            if (code := sock.connect_ex(address)) not in (0, errno.EINPROGRESS):
                raise Refused(f"connect: {errno.errorcode.get(code, code)}")
            selector.register(sock, selectors.EVENT_WRITE, sock)
        waiting = count
        while waiting:
            ready = selector.select(LONGEST_WAIT_S)
            if not ready:
                raise Refused(f"{waiting} of {count} clients had no response within {LONGEST_WAIT_S:.0f} s")
            for key, events in ready:
                sock = key.data
                if events & selectors.EVENT_WRITE:
                    sock.send(first)
                    selector.modify(sock, selectors.EVENT_READ, sock)
                elif sock.recv(4096):
                    selector.unregister(sock)
                    waiting -= 1
                else:
                    raise Refused("the broker closed a client's connection")
        return time.perf_counter() - began
