"""kafka-python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import kafka
import kafka.admin
import kafka.errors
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.clients.adapters import NO_OPTIONS, Credentials, GroupView, Headers, Membership, Options, Place, Record

CAN = frozenset({"alter offsets", "delete groups"})
_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
ASSIGNORS = tuple(_ASSIGNORS)
# In mixed groups only; no other client here has it.
_STICKY = {"sticky": StickyPartitionAssignor}


class _Producer:
    def __init__(self, bootstrap: str, codec: str, options: Options) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            acks="all",
            compression_type=None if codec == "none" else codec,
            linger_ms=5,
            **options,
        )

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Future[Place]:
        future: Future[Place] = Future()
        sent = self._producer.send(
            topic, value, key=key, partition=partition, headers=list(headers), timestamp_ms=timestamp_ms
        )
        sent.add_callback(lambda placed: future.set_result(Place(placed.partition, placed.offset)))
        sent.add_errback(future.set_exception)
        return future

    def flush(self, timeout_s: float) -> None:
        self._producer.flush(timeout_s)

    def close(self) -> None:
        self._producer.close(timeout=5)


class _TransactionalProducer(_Producer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        options = {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms, "max_block_ms": 30_000}
        super().__init__(bootstrap, "none", options)
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send_offsets(self, consumer: _Consumer, topic: str, next_offsets: Mapping[int, int]) -> None:
        offsets = {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in next_offsets.items()}
        self._producer.send_offsets_to_transaction(offsets, consumer.consumer.group_metadata())

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=1)


class _Listener(kafka.ConsumerRebalanceListener):
    def __init__(self, membership: Membership) -> None:
        self._on_change = membership.on_change

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._on_change("assigned", sorted(p.partition for p in assigned))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._on_change("revoked", sorted(p.partition for p in revoked))


class _Consumer:
    def __init__(self, bootstrap: str, settings: Mapping[str, Any]) -> None:
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            # A member may join before it knows the partitions of the topic; it joins again once it does.
            metadata_max_age_ms=1000,
            **settings,
        )

    def join(self, membership: Membership) -> None:
        self.consumer.subscribe([membership.topic], listener=_Listener(membership))

    def assign(self, topic: str, partitions: Iterable[int]) -> None:
        wanted = [TopicPartition(topic, p) for p in partitions]
        self.consumer.assign(wanted)
        self.consumer.seek_to_beginning(*wanted)

    def poll(self, timeout_s: float) -> list[Record]:
        polled = self.consumer.poll(timeout_ms=int(timeout_s * 1000))
        return [
            Record(r.partition, r.offset, r.key, r.value, tuple(r.headers), r.timestamp)
            for batch in polled.values()
            for r in batch
        ]

    def commit(self, topic: str, next_offsets: Mapping[int, int]) -> None:
        offsets = {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in next_offsets.items()}
        self.consumer.commit(offsets, timeout_ms=10_000)

    def committed(self, topic: str, partition: int) -> int | None:
        found: int | None = self.consumer.committed(TopicPartition(topic, partition), timeout_ms=10_000)
        return found

    def close(self) -> None:
        self.consumer.close(autocommit=False, timeout_ms=5000)


class _Admin:
    def __init__(self, bootstrap: str) -> None:
        self._admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)

    def create_topic(self, topic: str, partitions: int) -> None:
        wanted = {topic: {"num_partitions": partitions, "replication_factor": 1}}
        self._admin.create_topics(wanted)
        self._admin.wait_for_topics([topic])

    def list_topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def list_groups(self) -> set[str]:
        return {group["group_id"] for group in self._admin.list_groups()}

    def describe_group(self, group: str) -> GroupView:
        seen = self._admin.describe_groups([group])[group]
        assert seen["error"] is None, seen
        clients = sorted(m["client_id"] for m in seen["members"])
        return GroupView(seen["group_state"], seen["protocol_data"], clients)

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        found = self._admin.list_group_offsets(group)[group]
        return {p.partition: o.offset for p, o in found.items() if p.topic == topic}

    def alter_group_offsets(self, group: str, topic: str, next_offsets: Mapping[int, int]) -> None:
        wanted = {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in next_offsets.items()}
        for error in self._admin.alter_group_offsets(group, wanted).values():
            assert error is kafka.errors.NoError, error

    def delete_group(self, group: str) -> None:
        done = self._admin.delete_groups([group])
        assert done == {group: "OK"}, done

    def close(self) -> None:
        self._admin.close()


def producer(bootstrap: str, codec: str = "none", options: Options = NO_OPTIONS) -> _Producer:
    return _Producer(bootstrap, codec, options)


def member(bootstrap: str, membership: Membership, options: Options = NO_OPTIONS) -> _Consumer:
    settings = {
        "group_id": membership.group,
        "client_id": membership.client_id,
        "partition_assignment_strategy": [(_ASSIGNORS | _STICKY)[membership.assignor]],
        "session_timeout_ms": membership.session_timeout_ms,
        "heartbeat_interval_ms": membership.session_timeout_ms // 10,
        "group_instance_id": membership.instance,
        **_isolation(membership.isolation),
    }
    made = _Consumer(bootstrap, settings | dict(options))
    made.join(membership)
    return made


def transactional_producer(
    bootstrap: str, transactional_id: str, *, timeout_ms: int = 60_000
) -> _TransactionalProducer:
    return _TransactionalProducer(bootstrap, transactional_id, timeout_ms)


def reader(bootstrap: str, topic: str, partitions: Iterable[int], isolation: str | None = None) -> _Consumer:
    made = _Consumer(bootstrap, {"group_id": None, "check_crcs": True, **_isolation(isolation)})
    made.assign(topic, partitions)
    return made


def _isolation(level: str | None) -> Options:
    return {"isolation_level": level} if level else {}


def admin(bootstrap: str) -> _Admin:
    return _Admin(bootstrap)


class _Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


def security(credentials: Credentials) -> Options:
    made: dict[str, Any] = {"security_protocol": credentials.protocol}
    if credentials.mechanism:
        made |= {
            "sasl_mechanism": credentials.mechanism,
            "sasl_plain_username": credentials.user,
            "sasl_plain_password": credentials.password,
            "sasl_oauth_token_provider": _Token(credentials.token),
        }
    files = {"ssl_cafile": credentials.ca_file, "ssl_certfile": credentials.certificate, "ssl_keyfile": credentials.key}
    return made | {name: str(file) for name, file in files.items() if file}


def refusal(bootstrap: str, options: Options) -> str:
    try:
        kafka.KafkaProducer(bootstrap_servers=bootstrap, bootstrap_timeout_ms=500, **options).close(5)
    except kafka.errors.KafkaError as error:
        return repr(error)
    return "none"
