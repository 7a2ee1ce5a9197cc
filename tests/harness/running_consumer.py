"""A consumer that polls in the background, as an application does: it rejoins when it is evicted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer


@contextmanager
def running_consumer(bootstrap: str | None, group: str, topic: str, *, protocol: str = "classic") -> Iterator[None]:
    """Owns partitions when the block begins; commits nothing."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    if protocol == "classic":
        settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
    consumer = Consumer({**settings, "group.protocol": protocol})
    consumer.subscribe([topic])
    is_done, owns = threading.Event(), threading.Event()

    def poll() -> None:
        while not is_done.is_set():
            consumer.poll(0.05)
            if consumer.assignment():
                owns.set()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert owns.wait(30)
        yield
    finally:
        is_done.set()
        thread.join()
        consumer.close()
