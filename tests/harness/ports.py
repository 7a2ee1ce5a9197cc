"""Ports that stay reserved, so that a broker can restart on its port beside other tests."""

from __future__ import annotations

import atexit
import socket

_RESERVED: list[socket.socket] = []


def free_port() -> int:
    """Reserve any port, also while a broker on it restarts."""
    return reserve("127.0.0.1:0")


def reserve(address: str) -> int:
    """Reserve the port of HOST:PORT, on which no process listens, until this process ends.

    The bound socket keeps the system from giving the port to anyone who asks for any port. Java and asyncio set
    SO_REUSEADDR, so they may listen there all the same.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    host, _, port = address.rpartition(":")
    reserved.bind((host, int(port)))
    _RESERVED.append(reserved)
    return int(reserved.getsockname()[1])


def kept_address() -> str:
    """HOST:PORT of a reserved port."""
    return f"127.0.0.1:{free_port()}"


@atexit.register
def _release() -> None:
    for reserved in _RESERVED:
        reserved.close()
