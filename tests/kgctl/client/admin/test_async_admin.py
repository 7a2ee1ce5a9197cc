"""The admin client for asyncio, and what both admin clients have in common."""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import Iterator

import pytest

from kgctl import Admin, AsyncAdmin
from kgctl.client.admin.operation import operation
from kgctl.client.admin.operations import AdminOperations
from kgctl.client.net.errors import AuthenticationFailed, Refused, TimedOut, Unreachable
from kgctl.client.net.read_only import ReadOnly
from tests.harness import sasl_conversations as sasl
from tests.harness.ports import free_port
from tests.harness.running import RunningBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    options = sasl.options_of("sasl_plaintext")
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    with RunningBroker(tmp_path_factory.mktemp("broker"), listeners=listeners, **options) as running:
        yield running


def address(broker: RunningBroker, protocol: str = "PLAINTEXT") -> str:
    return "{}:{}".format(*broker.addresses[protocol])


def test_both_clients_have_the_same_operations(broker: RunningBroker) -> None:
    names = [
        name for kind in AdminOperations.__mro__ for name, each in vars(kind).items() if isinstance(each, operation)
    ]
    assert len(names) > 80
    blocking, awaiting = Admin(address(broker)), AsyncAdmin(address(broker))
    for name in names:
        assert not inspect.iscoroutinefunction(getattr(blocking, name))
        assert inspect.iscoroutinefunction(getattr(awaiting, name))
        assert getattr(blocking, name).__doc__ == getattr(awaiting, name).__doc__
        assert (
            inspect.signature(getattr(blocking, name)).parameters
            == inspect.signature(getattr(awaiting, name)).parameters
        )


def test_operations_are_awaited_and_may_run_at_the_same_time(broker: RunningBroker) -> None:
    async def run() -> None:
        async with AsyncAdmin(address(broker), client_id="both") as admin:
            created = await admin.create_topics(["a", "b"], partitions=3)
            assert [row.error for row in created] == [None, None]
            topics, groups, rows = await asyncio.gather(
                admin.list_topics(["a", "b"]), admin.list_groups(), admin.describe_cluster()
            )
            assert [row.topic for row in topics] == ["a", "b"]
            assert not groups.groups
            assert len(rows[0]) == 1
            facts = await admin.lag_facts([])
            assert not facts.missing
        with Admin(address(broker)) as blocking:
            assert blocking.list_topics(["a", "b"]) == topics

    asyncio.run(run())


def test_a_client_can_be_used_again_after_it_was_closed(broker: RunningBroker) -> None:
    async def run() -> None:
        admin = AsyncAdmin.from_properties({"bootstrap.servers": address(broker), "linger.ms": "5"})
        await admin.list_topics()
        await admin.close()
        await admin.list_topics()
        await admin.close()

    asyncio.run(run())


def test_a_cluster_that_is_down_is_an_error_at_once() -> None:
    async def run() -> None:
        async with AsyncAdmin(f"127.0.0.1:{free_port()}") as admin:
            with pytest.raises(Refused):
                await admin.list_topics()
            with pytest.raises(Unreachable):
                await admin.list_topics()

    asyncio.run(run())


def test_a_node_that_does_not_answer_is_an_error_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()

        async def run() -> None:
            async with AsyncAdmin(f"{host}:{port}", default_api_timeout_ms=200) as admin:
                with pytest.raises((TimedOut, Unreachable)):
                    await admin.list_topics()

        asyncio.run(run())


def test_a_cancelled_operation_leaves_the_client_usable(broker: RunningBroker) -> None:
    async def run() -> None:
        async with AsyncAdmin(address(broker)) as admin:
            task = asyncio.ensure_future(admin.list_topics())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await admin.list_topics()

    asyncio.run(run())


def test_refused_credentials_are_an_error_each_time(broker: RunningBroker) -> None:
    async def run() -> None:
        options = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "wrong"}
        servers = address(broker, "SASL_PLAINTEXT")
        async with AsyncAdmin(servers, security_protocol="SASL_PLAINTEXT", **options) as admin:  # type: ignore[misc]
            for _ in range(2):
                with pytest.raises(AuthenticationFailed):
                    await admin.list_topics()

    asyncio.run(run())


def test_a_read_only_client_changes_nothing(broker: RunningBroker) -> None:
    from broker.light_dataclasses import replace
    from kgctl.client.admin.admin import connection_of

    async def run() -> None:
        settings = replace(connection_of(address(broker), {}), read_only=True)
        async with AsyncAdmin(settings) as admin:
            await admin.list_topics()
            (row,) = await admin.create_topics(["c"])
            assert row.error is not None
            assert row.error.name == ReadOnly.name

    asyncio.run(run())
