"""The two kinds of cluster that a test may run on, configured alike."""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import Protocol

from tests.harness.reference_kafka import ReferenceKafka

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
}
# A killed broker is fenced until its session with the controller ends: nine seconds by default.
KAFKA_ONLY = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300", "group.share.enable": "true"}
_numbers = itertools.count(1)


class Cluster(Protocol):
    """A LocalBroker or a ReferenceKafka."""

    bootstrap_servers: str

    def kill(self) -> None: ...

    def restart(self) -> None: ...


def start(kind: str) -> contextlib.AbstractContextManager[Cluster]:
    """The cluster of this kind, to be entered; raises `Unavailable` where it cannot be had."""
    if kind == "kafka":
        return ReferenceKafka({**CONFIG, **KAFKA_ONLY})
    from broker.local import LocalBroker

    made: contextlib.AbstractContextManager[Cluster] = LocalBroker(config=CONFIG)
    return made


def fresh(stem: str) -> str:
    """A name that no other test uses."""
    return f"{stem}-{os.getpid()}-{next(_numbers)}"
