"""Walks of share sessions with seeds that nobody has seen before: this broker answers what a Kafka does."""

from __future__ import annotations

import random

from broker.local import LocalBroker
from tests.harness.oracle.share_sessions.recorded import difference, record
from tests.harness.reference_kafka import KafkaTools, ReferenceKafka
from tests.harness.share_member import enable_share_groups
from tests.harness.wire_client import WireClient

WALKS = 12


def test_fresh_walks_have_no_differences(tools: KafkaTools) -> None:
    first = random.randrange(10**9)
    with ReferenceKafka() as kafka:
        walks = record(_address(kafka.bootstrap_servers), range(first, first + WALKS))
    with LocalBroker() as broker:
        address = _address(broker.bootstrap_servers)
        with WireClient(address) as client:
            enable_share_groups(client)
        assert [found for walk in walks if (found := difference(address, walk)) is not None] == []


def _address(bootstrap_servers: str) -> tuple[str, int]:
    host, _, port = bootstrap_servers.rpartition(":")
    return host, int(port)
