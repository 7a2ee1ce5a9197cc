"""A broker in a thread of the test process, on a free port."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from broker.config.config import load_config
from broker.server.broker import Broker
from broker.server.listener_tls import listener_tls
from broker.storage import Log
from tests.harness.wire_client import WireClient

if TYPE_CHECKING:
    from broker.config.listeners import Endpoint
    from tests.harness.certificates import Authority

T = TypeVar("T")
DEADLINE_S = 10.0


class RunningBroker:
    """A context manager: the broker starts with the block and stops cleanly at its end."""

    def __init__(
        self,
        data_dir: Path,
        *,
        authority: Authority | None = None,
        metrics_listen: Endpoint | None = None,
        **options: str,
    ) -> None:
        """With an `authority`, TLS listeners have a certificate of it and accept its client certificates. `options` are
        Kafka's options, if they have no dots with underscores for dots. Without `listeners` there is one PLAINTEXT listener
        on a free port."""
        self.authority = authority
        self._metrics_listen = metrics_listen
        if authority is not None:
            options = tls_options(authority) | options
        overrides = {name if "." in name else name.replace("_", "."): value for name, value in options.items()}
        listen = None if "listeners" in overrides else "127.0.0.1:0"
        self.config = load_config(overrides=overrides, listen=listen, durability="process")
        self.data_dir = data_dir
        self.address: tuple[str, int]
        self.addresses: dict[str, tuple[str, int]]
        self.broker: Broker
        self.log: Log
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event

    def __enter__(self) -> RunningBroker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        ready = threading.Event()
        failures: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(self._serve(ready))
            except BaseException as error:  # noqa: BLE001  raised in the thread of the test
                failures.append(error)
            finally:
                ready.set()

        self._failures = failures
        self._thread = threading.Thread(target=run, name="broker")
        self._thread.start()
        assert ready.wait(DEADLINE_S), "the broker did not start"
        if failures:
            raise failures[0]

    def stop(self) -> None:
        """Stop cleanly, as after SIGTERM."""
        if self._thread is None:
            return
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the broker did not stop"
        self._thread = None
        if self._failures:
            raise self._failures[0]

    def restart(self) -> None:
        self.stop()
        self.start()

    def client(self, listener: str | None = None, **arguments: object) -> WireClient:
        """A client of the first listener, or of the named one; over TLS if it requires that."""
        (found,) = [each for each in self.broker.listeners if listener in (None, each.name)][:1]
        client = WireClient((found.bound.host, found.bound.port), **arguments)  # type: ignore[arg-type]
        if found.address.uses_tls:
            assert self.authority is not None
            context = ssl.create_default_context(cafile=self.authority.ca_file)
            client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
        return client

    def run(self, function: Callable[[], T]) -> T:
        """Call `function` in the broker's thread, between two turns of its event loop."""

        async def called() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(DEADLINE_S)

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call `function` in the broker's thread, without waiting for it."""
        self._loop.call_soon_threadsafe(function)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self.log = Log.open(self.data_dir, self.config.log_settings(), wall_ms=time.time_ns() // 1_000_000)
        clean = False
        try:
            self.broker = Broker(self.config, self.log, listener_tls(self.config), self._metrics_listen)
            await self.broker.start()
            self.addresses = {each.name: (each.bound.host, each.bound.port) for each in self.broker.listeners}
            self.address = next(iter(self.addresses.values()))
            ready.set()
            stopped = asyncio.ensure_future(self._stop.wait())
            await asyncio.wait({stopped, self.broker.failed}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if not self.broker.failed.done():
                await self.broker.stop()
                clean = True
        finally:
            self.log.close(clean=clean)


def tls_options(authority: Authority) -> dict[str, str]:
    """Options of a broker that has a certificate of the authority, with underscores for dots."""
    return {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(authority.server().bundle),
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(authority.ca_file),
    }


def until(condition: Callable[[], T], deadline_s: float = DEADLINE_S) -> T:
    """Wait until a condition holds. Returns its value."""
    end = time.monotonic() + deadline_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, "the condition did not hold in time"
        time.sleep(0.005)
