"""The two kinds of clusters that tests run on, with the same configuration."""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import Protocol

from tests.harness.ports import kept_address
from tests.harness.reference_kafka import ReferenceKafka

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    # Records stay, whatever their times: no broker looks for old ones while tests run.
    "log.retention.check.interval.ms": "10000000",
    # Kafka looks for transactions that are over their time this often, by default every ten seconds.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
# After a kill, a broker is fenced until its session with the controller ends, by default for nine seconds.
KAFKA_ONLY = {
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
    "group.share.enable": "true",
    # Kafka looks for old records once before the first interval, by default after half a minute.
    "log.initial.task.delay.ms": "10000000",
}
_numbers = itertools.count(1)


class Cluster(Protocol):
    """A LocalBroker or a ReferenceKafka."""

    bootstrap_servers: str

    def kill(self) -> None: ...

    def restart(self) -> None: ...


def start(kind: str) -> contextlib.AbstractContextManager[Cluster]:
    """A cluster of this kind, as a context manager, on a port that it keeps when it restarts. Raises `Unavailable` if Kafka
    cannot be set up."""
    if kind == "kafka":
        return ReferenceKafka({**CONFIG, **KAFKA_ONLY})
    from broker.local import LocalBroker

    made: contextlib.AbstractContextManager[Cluster] = LocalBroker(config=CONFIG, listen=kept_address())
    return made


def fresh(stem: str) -> str:
    """A unique name."""
    return f"{stem}-{os.getpid()}-{next(_numbers)}"
