"""Listeners that are not quite brokers."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

from broker.protocol import codec
from broker.protocol.api_keys import APIS
from kgctl.client.net.steps import Endpoint
from tests.harness.feeding import offers


@contextlib.contextmanager
def listening(handle: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """A port whose connections are given to `handle` one after another, until the end of the block."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            # The client hangs up on what it does not understand.
            with connection, contextlib.suppress(OSError):
                handle(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield Endpoint(*server.getsockname())
    # macOS does not wake accept() by a shutdown: a last connection does it everywhere.
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)


def wait_for_the_end(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


class ApiVersionsThenSilence:
    """Answers what every client asks first, and nothing else; `reached` is set when it is asked more."""

    def __init__(self) -> None:
        self.reached = threading.Event()

    def __call__(self, connection: socket.socket) -> None:
        correlation_id = connection.recv(65536)[8:12]
        body = codec.encode(offers({key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()}), 4)
        connection.sendall(struct.pack(">i", 4 + len(body)) + correlation_id + body)
        if connection.recv(65536):
            self.reached.set()
        wait_for_the_end(connection)
