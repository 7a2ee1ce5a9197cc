"""kgctl's own consumer, as a member of groups of other clients."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.model.topic_partition import TopicPartition
from tests.clients.adapters import NO_OPTIONS, Membership, Options, Record


class _Listener(RebalanceListener):
    def __init__(self, membership: Membership) -> None:
        self._on_change = membership.on_change

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._on_change("assigned", sorted(one.partition for one in partitions))

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._on_change("revoked", sorted(one.partition for one in partitions))


class _Consumer:
    def __init__(self, bootstrap: str, membership: Membership, options: Options) -> None:
        if membership.protocol == "classic":
            options = {
                "partition_assignment_strategy": membership.assignor,
                "session_timeout_ms": membership.session_timeout_ms,
                "heartbeat_interval_ms": membership.session_timeout_ms // 10,
                **options,
            }
        self.consumer = Consumer(
            bootstrap_servers=bootstrap,
            group_id=membership.group,
            client_id=membership.client_id,
            group_protocol=membership.protocol,
            group_instance_id=membership.instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            metadata_max_age_ms=1000,
            **options,
        )
        self.consumer.subscribe([membership.topic], listener=_Listener(membership))

    def poll(self, timeout_s: float) -> list[Record]:
        return [
            Record(
                one.partition,
                one.offset,
                one.key,
                one.value,
                tuple((name, value or b"") for name, value in one.headers),
                one.timestamp_ms,
            )
            for one in self.consumer.poll(timeout_s)
        ]

    def commit(self, topic: str, next_offsets: Mapping[int, int]) -> None:
        self.consumer.commit({TopicPartition(topic, p): OffsetAndMetadata(o) for p, o in next_offsets.items()})

    def committed(self, topic: str, partition: int) -> int | None:
        place = TopicPartition(topic, partition)
        found = self.consumer.committed([place])[place]
        return None if found is None else found.offset

    def close(self) -> None:
        self.consumer.close(timeout=5)


def member(bootstrap: str, membership: Membership, options: Options = NO_OPTIONS) -> _Consumer:
    return _Consumer(bootstrap, membership, options)
