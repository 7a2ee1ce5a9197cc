"""Listeners that accept connections and are not brokers."""

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
    """A port whose connections are passed to `handle` one after another, until the end of the block."""
    with _accepting(lambda connection: _handle(handle, connection)) as endpoint:
        yield endpoint


@contextlib.contextmanager
def listening_in_parallel(handle: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """A port whose connections are passed to `handle`, each in a thread of its own."""

    def start(connection: socket.socket) -> None:
        threading.Thread(target=_handle, args=(handle, connection), daemon=True).start()

    with _accepting(start) as endpoint:
        yield endpoint


def _handle(handle: Callable[[socket.socket], None], connection: socket.socket) -> None:
    # A client closes a connection that it does not understand.
    with connection, contextlib.suppress(OSError):
        handle(connection)


@contextlib.contextmanager
def _accepting(accept: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            accept(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    endpoint = Endpoint(*server.getsockname())
    yield endpoint
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    # A shutdown does not wake accept() on macOS; a last connection does.
    with contextlib.suppress(OSError):
        socket.create_connection(endpoint).close()
    server.close()
    thread.join(5)


def wait_for_the_end(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


class ApiVersionsThenSilence:
    """Answers ApiVersions and nothing else; `reached` is set when another request arrives."""

    def __init__(self) -> None:
        self.reached = threading.Event()

    def __call__(self, connection: socket.socket) -> None:
        correlation_id = connection.recv(65536)[8:12]
        body = codec.encode(offers({key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()}), 4)
        connection.sendall(struct.pack(">i", 4 + len(body)) + correlation_id + body)
        if connection.recv(65536):
            self.reached.set()
        wait_for_the_end(connection)
