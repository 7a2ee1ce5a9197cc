"""confluent-kafka, the binding of librdkafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import confluent_kafka as ck
import confluent_kafka.admin as cka

from tests.clients.adapters import NO_OPTIONS, Credentials, GroupView, Headers, Membership, Options, Place, Record

CAN = frozenset({"alter offsets", "delete groups"})
ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
NO_OFFSET = -1001
RECONNECT = {"reconnect.backoff.max.ms": 500}
STATES = {"PREPARING_REBALANCING": "PreparingRebalance", "COMPLETING_REBALANCING": "CompletingRebalance"}


class _Producer:
    def __init__(self, bootstrap: str, codec: str, options: Options) -> None:
        self._producer = ck.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 5,
                **options,
            }
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

        def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is not None:
                future.set_exception(ck.KafkaException(error))
            else:
                future.set_result(Place(message.partition(), message.offset()))

        options: dict[str, Any] = {"partition": partition} if partition is not None else {}
        if timestamp_ms is not None:
            options["timestamp"] = timestamp_ms
        self._producer.produce(topic, value, key, headers=list(headers), on_delivery=delivered, **options)
        self._producer.poll(0)
        return future

    def flush(self, timeout_s: float) -> None:
        if left := self._producer.flush(timeout_s):
            raise TimeoutError(f"{left} records were not acknowledged")

    def close(self) -> None:
        self._producer.flush(5)
        # An open producer logs each attempt to reach a broker that has stopped, until Python collects it.
        self._producer.close()


class _TransactionalProducer(_Producer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        options = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "log_level": 2,
            **RECONNECT,
        }
        # A record must not outlive its transaction.
        super().__init__(bootstrap, "none", {**options, "message.timeout.ms": min(timeout_ms, 60_000), "linger.ms": 0})
        self._producer.init_transactions(30)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send_offsets(self, consumer: _Consumer, topic: str, next_offsets: Mapping[int, int]) -> None:
        offsets = [ck.TopicPartition(topic, p, o) for p, o in next_offsets.items()]
        self._producer.send_offsets_to_transaction(offsets, consumer.consumer.consumer_group_metadata(), 20)

    def commit(self) -> None:
        self._producer.commit_transaction(30)

    def abort(self) -> None:
        self._producer.abort_transaction(30)

    def close(self) -> None:
        self._producer.purge()


class _Consumer:
    def __init__(self, bootstrap: str, settings: Mapping[str, Any]) -> None:
        self.consumer = ck.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
                **RECONNECT,
                **settings,
            }
        )

    def join(self, membership: Membership) -> None:
        def partitions(given: list[ck.TopicPartition]) -> list[int]:
            return sorted(p.partition for p in given)

        self.consumer.subscribe(
            [membership.topic],
            on_assign=lambda _, given: membership.on_change("assigned", partitions(given)),
            on_revoke=lambda _, given: membership.on_change("revoked", partitions(given)),
            on_lost=lambda _, given: membership.on_change("revoked", partitions(given)),
        )

    def assign(self, topic: str, partitions: Iterable[int]) -> None:
        self.consumer.assign([ck.TopicPartition(topic, p, ck.OFFSET_BEGINNING) for p in partitions])

    def poll(self, timeout_s: float) -> list[Record]:
        messages = self.consumer.consume(500, timeout_s)
        for message in messages:
            # A fatal error, such as a fence, has this code, although `fatal` is False.
            if (error := message.error()) is not None and (error.fatal() or error.code() == ck.KafkaError._FATAL):
                raise ck.KafkaException(error)
        return [_record(m) for m in messages if m.error() is None]

    def commit(self, topic: str, next_offsets: Mapping[int, int]) -> None:
        offsets = [ck.TopicPartition(topic, p, o) for p, o in next_offsets.items()]
        for done in self.consumer.commit(offsets=offsets, asynchronous=False):
            if done.error is not None:
                raise ck.KafkaException(done.error)

    def committed(self, topic: str, partition: int) -> int | None:
        (found,) = self.consumer.committed([ck.TopicPartition(topic, partition)], timeout=10)
        return None if found.offset == NO_OFFSET else int(found.offset)

    def close(self) -> None:
        self.consumer.close()


def _record(message: ck.Message) -> Record:
    headers = tuple(message.headers() or ())
    return Record(
        message.partition(), message.offset(), message.key(), message.value(), headers, message.timestamp()[1]
    )


class _Admin:
    def __init__(self, bootstrap: str) -> None:
        self._admin = cka.AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(self, topic: str, partitions: int) -> None:
        self._admin.create_topics([cka.NewTopic(topic, partitions, 1)])[topic].result(10)

    def list_topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=10).topics)

    def list_groups(self) -> set[str]:
        listed = self._admin.list_consumer_groups().result(10)
        assert not listed.errors, listed.errors
        return {group.group_id for group in listed.valid}

    def describe_group(self, group: str) -> GroupView:
        seen = self._admin.describe_consumer_groups([group])[group].result(10)
        state = STATES.get(seen.state.name, seen.state.name.capitalize())
        return GroupView(state, seen.partition_assignor, sorted(m.client_id for m in seen.members))

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        asked = ck.ConsumerGroupTopicPartitions(group)
        found = self._admin.list_consumer_group_offsets([asked])[group].result(10)
        return {p.partition: p.offset for p in found.topic_partitions if p.topic == topic}

    def alter_group_offsets(self, group: str, topic: str, next_offsets: Mapping[int, int]) -> None:
        wanted = [ck.TopicPartition(topic, p, o) for p, o in next_offsets.items()]
        asked = ck.ConsumerGroupTopicPartitions(group, wanted)
        for done in self._admin.alter_consumer_group_offsets([asked])[group].result(10).topic_partitions:
            assert done.error is None, done

    def delete_group(self, group: str) -> None:
        self._admin.delete_consumer_groups([group])[group].result(10)

    def close(self) -> None:
        pass


def producer(bootstrap: str, codec: str = "none", options: Options = NO_OPTIONS) -> _Producer:
    return _Producer(bootstrap, codec, options)


def member(bootstrap: str, membership: Membership, options: Options = NO_OPTIONS) -> _Consumer:
    settings: dict[str, Any] = {
        "group.id": membership.group,
        "client.id": membership.client_id,
        "group.protocol": membership.protocol,
    }
    if membership.protocol == "classic":
        settings |= {
            "partition.assignment.strategy": membership.assignor,
            "session.timeout.ms": membership.session_timeout_ms,
            "heartbeat.interval.ms": membership.session_timeout_ms // 10,
        }
    if membership.instance is not None:
        settings["group.instance.id"] = membership.instance
    if membership.isolation is not None:
        settings["isolation.level"] = membership.isolation
    made = _Consumer(bootstrap, settings | dict(options))
    made.join(membership)
    return made


def transactional_producer(
    bootstrap: str, transactional_id: str, *, timeout_ms: int = 60_000
) -> _TransactionalProducer:
    return _TransactionalProducer(bootstrap, transactional_id, timeout_ms)


def reader(bootstrap: str, topic: str, partitions: Iterable[int], isolation: str | None = None) -> _Consumer:
    chosen = {"isolation.level": isolation} if isolation else {}
    made = _Consumer(bootstrap, {"group.id": "reader", "check.crcs": True, **chosen})
    made.assign(topic, partitions)
    return made


def admin(bootstrap: str) -> _Admin:
    return _Admin(bootstrap)


def security(credentials: Credentials) -> Options:
    made: dict[str, Any] = {"security.protocol": credentials.protocol, "log_level": 0}
    if credentials.mechanism == "OAUTHBEARER":
        made["oauth_cb"] = lambda _: (credentials.token, 4e9, credentials.user, {})
    if credentials.mechanism:
        made["sasl.mechanisms"] = credentials.mechanism
        made |= {"sasl.username": credentials.user, "sasl.password": credentials.password}
    files = {"ca": credentials.ca_file, "certificate": credentials.certificate, "key": credentials.key}
    return made | {f"ssl.{name}.location": str(file) for name, file in files.items() if file}


def refusal(bootstrap: str, options: Options) -> str:
    errors: list[ck.KafkaError] = []
    made = ck.Producer({"bootstrap.servers": bootstrap, "error_cb": errors.append, **options})
    made.produce("refused", b"x")
    while not errors:
        made.poll(0.1)
    made.purge()
    made.flush(5)
    return str(errors[0])
