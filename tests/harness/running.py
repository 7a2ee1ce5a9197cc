"""A broker in a thread of the test process, on a free port."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from broker.config.config import load_config
from broker.server.broker import Broker
from broker.storage import Log
from tests.harness.wire_client import WireClient

T = TypeVar("T")
DEADLINE_S = 10.0


class RunningBroker:
    """A context manager: the broker starts with the block and stops cleanly at its end."""

    def __init__(self, data_dir: Path, **options: str) -> None:
        """`options` are Kafka's options, if they have no dots with underscores for dots. Without `listeners` there is one PLAINTEXT
        listener on a free port."""
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
        address = self.address if listener is None else self.addresses[listener]
        return WireClient(address, **arguments)  # type: ignore[arg-type]

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
            self.broker = Broker(self.config, self.log)
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


def until(condition: Callable[[], T], deadline_s: float = DEADLINE_S) -> T:
    """Wait until a condition holds. Returns its value."""
    end = time.monotonic() + deadline_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, "the condition did not hold in time"
        time.sleep(0.005)
