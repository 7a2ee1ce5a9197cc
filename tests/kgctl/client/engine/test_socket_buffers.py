"""send.buffer.bytes and receive.buffer.bytes, as the sockets of each client have them."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from broker.local import LocalBroker
from kgctl import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer

SEND, RECEIVE = 20_000, 24_000
OPTIONS = {"send_buffer_bytes": SEND, "receive_buffer_bytes": RECEIVE}


def sizes(bootstrap: str) -> set[tuple[int, int]]:
    """The buffers of the sockets of this process that are connected to the broker. Linux says twice what was asked for."""
    host, _, port = bootstrap.rpartition(":")
    found = set()
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        try:
            duplicate = os.dup(descriptor)
        except OSError:  # that of the listing itself
            continue
        try:
            made = socket.socket(fileno=duplicate)
        except OSError:
            os.close(duplicate)
            continue
        with closing(made):
            if made.family == socket.AF_INET and _peer(made) == (host, int(port)):
                size = lambda name: made.getsockopt(socket.SOL_SOCKET, name) // 2  # noqa: E731, B023
                found.add((size(socket.SO_SNDBUF), size(socket.SO_RCVBUF)))
    return found


def _peer(made: socket.socket) -> object:
    try:
        return made.getpeername()
    except OSError:
        return None


def producer(bootstrap: str, **options: Any) -> set[tuple[int, int]]:
    with Producer(bootstrap_servers=bootstrap, **options) as made:
        made.partitions_for("t")
        return sizes(bootstrap)


def consumer(bootstrap: str, **options: Any) -> set[tuple[int, int]]:
    with Consumer(bootstrap_servers=bootstrap, **options) as made:
        made.list_topics()
        return sizes(bootstrap)


def admin(bootstrap: str, **options: Any) -> set[tuple[int, int]]:
    with Admin(bootstrap, **options) as made:
        made.list_topics()
        return sizes(bootstrap)


def async_producer(bootstrap: str, **options: Any) -> set[tuple[int, int]]:
    async def run() -> set[tuple[int, int]]:
        async with AsyncProducer(bootstrap_servers=bootstrap, **options) as made:
            await made.partitions_for("t")
            return sizes(bootstrap)

    return asyncio.run(run())


def async_consumer(bootstrap: str, **options: Any) -> set[tuple[int, int]]:
    async def run() -> set[tuple[int, int]]:
        async with AsyncConsumer(bootstrap_servers=bootstrap, **options) as made:
            await made.list_topics()
            return sizes(bootstrap)

    return asyncio.run(run())


def async_admin(bootstrap: str, **options: Any) -> set[tuple[int, int]]:
    async def run() -> set[tuple[int, int]]:
        async with AsyncAdmin(bootstrap, **options) as made:
            await made.list_topics()
            return sizes(bootstrap)

    return asyncio.run(run())


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="reads Linux's list of descriptors")
@pytest.mark.parametrize("client", [producer, consumer, admin, async_producer, async_consumer, async_admin])
def test_each_client_applies_the_sizes_and_leaves_the_choice_to_the_system(
    local_kafka: LocalBroker, client: Callable[..., set[tuple[int, int]]]
) -> None:
    bootstrap = local_kafka.bootstrap_servers
    assert client(bootstrap, **OPTIONS) == {(SEND, RECEIVE)}
    chosen = client(bootstrap, send_buffer_bytes=-1)
    assert chosen
    assert chosen == client(bootstrap)
    assert (SEND, RECEIVE) not in chosen
