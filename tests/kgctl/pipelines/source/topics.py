"""Topics with known records, for the tests of the source."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from kgctl.client.admin.admin import Admin
from kgctl.client.net import bootstrap
from kgctl.client.net.connector import ConnectionSettings

_numbers = itertools.count(1)


class Topics:
    """Creates topics with new names and fills them with librdkafka."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def admin(self) -> Admin:
        return Admin(ConnectionSettings(bootstrap.parse(self.bootstrap_servers)))

    def make(self, partitions: int = 1, *, name: str = "", **configs: str) -> str:
        name = name or f"source-{next(_numbers)}"
        with self.admin() as admin:
            given = {key.replace("_", "."): value for key, value in configs.items()}
            (row,) = admin.create_topics([name], partitions=partitions, configs=given)
            assert row.error is None, row
        return name

    def delete(self, name: str) -> None:
        with self.admin() as admin:
            (row,) = admin.delete_topics(admin.plan_topic_deletion([name]))
            assert row.error is None, row

    def fill(self, topic: str, records: Sequence[dict[str, Any]], **config: Any) -> None:
        """Write records, given as arguments of confluent-kafka's `produce`, and wait for all acknowledgements."""
        from confluent_kafka import Producer

        failed: list[object] = []
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 20, **config})
        for record in records:
            producer.produce(topic, **record, on_delivery=lambda error, _: failed.append(error) if error else None)
            producer.poll(0)
        assert producer.flush(30) == 0
        assert not failed, failed

    def count(self, topic: str, count: int, partitions: int = 1, **config: Any) -> None:
        """Write `count` records with their number as value, to the partitions in turns."""
        values = [{"value": str(n).encode(), "partition": n % partitions} for n in range(count)]
        self.fill(topic, values, **config)
