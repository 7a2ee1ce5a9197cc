"""The engine with real sockets, in a thread and in an asyncio loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from kgctl.client.engine.engine import Engine, now_ms
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import InsideCallback
from kgctl.client.net.steps import Endpoint
from kgctl.client.net.tracing import Exchanged, Opened
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.coordinator import GROUP, Coordinator
from kgctl.client.network.settings import NetworkSettings
from tests.harness.running import RunningBroker

SECONDS = 30.0


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with RunningBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield Endpoint(*broker.address)


def client(address: Endpoint) -> tuple[NetworkClient, ConnectionSettings]:
    return NetworkClient([address], NetworkSettings(), random.Random(1)), ConnectionSettings((address,))


def test_a_thread_serves_code_that_blocks(address: Endpoint) -> None:
    engine = Engine.in_thread(*client(address))
    engine.start()
    metadata = engine.network.metadata
    assert engine.wait(lambda: metadata.is_bootstrapped, SECONDS)
    coordinator = Coordinator(engine.network, "group", GROUP, random.Random(1))
    with engine.lock:
        coordinator.seek(now_ms())
    assert engine.wait(lambda: coordinator.node_id is not None, SECONDS)
    with engine.lock:
        metadata.want(["created-on-demand"])
    assert engine.wait(lambda: metadata.partition_count("created-on-demand") == 1, SECONDS)
    assert engine.close(SECONDS)


def test_an_asyncio_loop_serves_code_that_awaits(address: Endpoint) -> None:
    async def run() -> None:
        engine = Engine.in_loop(*client(address))
        engine.start()
        assert await engine.wait_async(lambda: engine.network.metadata.is_bootstrapped, SECONDS)
        assert engine.close()

    asyncio.run(run())


def test_a_wait_ends_in_time(address: Endpoint) -> None:
    engine = Engine.in_thread(*client(address))
    engine.start()
    assert not engine.wait(lambda: False, 0.01)
    assert engine.close(SECONDS)


def test_a_callback_that_raises_hurts_no_other(address: Endpoint) -> None:
    engine = Engine.in_thread(*client(address))
    engine.start()
    called: list[int] = []
    with engine.lock:
        engine.defer(lambda: [][0])
        engine.defer(lambda: called.append(1))
    assert engine.wait(lambda: bool(called), SECONDS)
    assert engine.close(SECONDS)


def test_each_connection_and_request_is_traced(address: Endpoint) -> None:
    seen: list[Opened | Exchanged] = []
    network, _ = client(address)
    engine = Engine.in_thread(network, ConnectionSettings((address,), trace=seen.append))
    engine.start()
    assert engine.wait(lambda: network.metadata.is_bootstrapped, SECONDS)
    assert engine.close(SECONDS)
    assert isinstance(seen[0], Opened)
    exchanged = [each for each in seen if isinstance(each, Exchanged)]
    assert [each.api for each in exchanged] == ["ApiVersions", "Metadata"]
    assert all(each.response_bytes and each.ms is not None for each in exchanged)


def test_a_wait_inside_a_callback_is_refused(address: Endpoint) -> None:
    engine = Engine.in_thread(*client(address))
    engine.start()
    failures: list[BaseException] = []

    def callback() -> None:
        try:
            engine.wait(lambda: False, 1)
        except InsideCallback as error:
            failures.append(error)

    with engine.lock:
        engine.defer(callback)
    assert engine.wait(lambda: bool(failures), SECONDS)
    assert engine.close(SECONDS)


def test_a_defect_ends_the_client_and_waits_raise_it(address: Endpoint) -> None:
    class Broken:
        def advance(self, now_ms: int) -> None:
            raise ZeroDivisionError

        def wake_at_ms(self) -> int | None:
            return None

    engine = Engine.in_thread(*client(address))
    engine.participants.append(Broken())
    engine.start()
    with pytest.raises(RuntimeError, match="has failed"):
        engine.wait(lambda: False, SECONDS)


def test_a_condition_that_raises_is_the_error_of_its_wait(address: Endpoint) -> None:
    engine = Engine.in_thread(*client(address))
    engine.start()
    calls: list[int] = []

    def condition() -> bool:
        calls.append(1)
        if len(calls) > 1:
            raise KeyError("broken")
        return False

    with pytest.raises(KeyError):
        engine.wait(condition, SECONDS)
    assert engine.close(SECONDS)


def test_waits_end_when_the_client_is_closed(address: Endpoint) -> None:
    async def run() -> None:
        engine = Engine.in_loop(*client(address))
        engine.start()
        waiting = asyncio.ensure_future(engine.wait_async(lambda: False, None))
        await asyncio.sleep(0)
        engine.close()
        assert not await waiting
        with pytest.raises(RuntimeError, match="closed"):
            await engine.wait_async(lambda: False, 1)

    asyncio.run(run())


def test_a_wait_sees_what_a_callback_has_done() -> None:
    """Without a node there are no other events that would cause a turn."""

    async def run() -> None:
        engine = Engine.in_loop(NetworkClient((), NetworkSettings(), random.Random(1)), ConnectionSettings(()))
        engine.start()
        called: list[int] = []
        waiting = asyncio.ensure_future(engine.wait_async(lambda: bool(called), 5))
        await asyncio.sleep(0)
        engine.defer(lambda: called.append(1))
        engine.wake()
        assert await waiting
        engine.close()

    asyncio.run(run())
