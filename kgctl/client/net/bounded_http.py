"""HTTP requests that end at a deadline and follow no redirect."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
import urllib.request
from collections.abc import Iterator
from threading import Timer
from typing import Any


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the secrets of a request to another place."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Cut:
    """Ends a connection at a deadline: the time limit of a socket starts again with each byte that arrives."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._timers: list[Timer] = []

    def __enter__(self) -> _Cut:
        return self

    def __exit__(self, *_: object) -> None:
        for timer in self._timers:
            timer.cancel()

    def watch(self, connection: Any) -> Any:
        """A connection of http.client that is not open yet."""
        connect = connection.connect

        def connect_and_watch() -> None:
            connect()
            timer = Timer(max(0.0, self._deadline - time.monotonic()), _end, [connection.sock])
            timer.daemon = True
            timer.start()
            self._timers.append(timer)

        connection.connect = connect_and_watch
        return connection


def _end(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Not the method of an SSL socket, which another thread is reading.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


class _Watched(urllib.request.AbstractHTTPHandler):
    cut: _Cut

    def do_open(self, http_class: Any, req: Any, **arguments: Any) -> Any:
        return super().do_open(lambda *args, **more: self.cut.watch(http_class(*args, **more)), req, **arguments)


class _Http(_Watched, urllib.request.HTTPHandler): ...


class _Https(_Watched, urllib.request.HTTPSHandler): ...


@contextlib.contextmanager
def bounded_opener(tls: ssl.SSLContext, deadline: float) -> Iterator[urllib.request.OpenerDirector]:
    """An opener whose connections end at `deadline`, of time.monotonic."""
    http, https = _Http(), _Https(context=tls)
    opener = urllib.request.build_opener(http, https, _NoRedirects)
    with _Cut(deadline) as http.cut:
        https.cut = http.cut
        yield opener
