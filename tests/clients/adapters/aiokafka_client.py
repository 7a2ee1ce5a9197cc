"""aiokafka, in an event loop in its own thread."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import aiokafka
import aiokafka.admin
import aiokafka.errors
from aiokafka.abc import AbstractTokenProvider
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from tests.clients.adapters import NO_OPTIONS, Credentials, GroupView, Headers, Membership, Options, Place, Record

CAN: frozenset[str] = frozenset()
_ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
ASSIGNORS = tuple(_ASSIGNORS)
T = TypeVar("T")


class _Loop:
    """An event loop in a daemon thread, so that members send heartbeats whatever the thread of the scenario does."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float = 30) -> T:
        return self.begin(work).result(timeout_s)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


class _Producer:
    def __init__(self, bootstrap: str, codec: str, options: Options) -> None:
        self._loop = _Loop()

        async def start() -> aiokafka.AIOKafkaProducer:
            made = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                enable_idempotence=True,
                compression_type=None if codec == "none" else codec,
                linger_ms=5,
                **options,
            )
            await made.start()
            return made

        self._producer = self._loop.run(start())
        self._turn = asyncio.Lock()

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
        async def placed() -> Place:
            # One at a time: sends that wait for metadata together can be reordered.
            async with self._turn:
                delivery = await self._producer.send(
                    topic, value, key=key, partition=partition, headers=list(headers), timestamp_ms=timestamp_ms
                )
            sent = await delivery
            return Place(sent.partition, sent.offset)

        return self._loop.begin(placed())

    def flush(self, timeout_s: float) -> None:
        self._loop.run(self._producer.flush(), timeout_s)

    def close(self) -> None:
        self._loop.run(self._producer.stop())
        self._loop.close()


class _TransactionalProducer(_Producer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        options = {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms}
        super().__init__(bootstrap, "none", options)

    def begin(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def send_offsets(self, consumer: _Consumer, topic: str, next_offsets: Mapping[int, int]) -> None:
        offsets = {aiokafka.TopicPartition(topic, p): o for p, o in next_offsets.items()}
        self._loop.run(self._producer.send_offsets_to_transaction(offsets, consumer.group))

    def commit(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._producer.abort_transaction())


class _Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, membership: Membership) -> None:
        self._on_change = membership.on_change

    def on_partitions_assigned(self, assigned: Iterable[aiokafka.TopicPartition]) -> None:
        self._on_change("assigned", sorted(p.partition for p in assigned))

    def on_partitions_revoked(self, revoked: Iterable[aiokafka.TopicPartition]) -> None:
        self._on_change("revoked", sorted(p.partition for p in revoked))


class _Consumer:
    def __init__(self, bootstrap: str, settings: Mapping[str, Any]) -> None:
        self._loop = _Loop()
        self.group = settings["group_id"]

        async def start() -> aiokafka.AIOKafkaConsumer:
            made = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                fetch_max_wait_ms=100,
                **settings,
            )
            await made.start()
            return made

        self._consumer = self._loop.run(start())

    def join(self, membership: Membership) -> None:
        async def subscribe() -> None:
            self._consumer.subscribe([membership.topic], listener=_Listener(membership))

        self._loop.run(subscribe())

    def assign(self, topic: str, partitions: Iterable[int]) -> None:
        async def assign() -> None:
            wanted = [aiokafka.TopicPartition(topic, p) for p in partitions]
            self._consumer.assign(wanted)
            await self._consumer.seek_to_beginning(*wanted)

        self._loop.run(assign())

    def poll(self, timeout_s: float) -> list[Record]:
        polled = self._loop.run(self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))
        return [
            Record(r.partition, r.offset, r.key, r.value, tuple(r.headers), r.timestamp)
            for batch in polled.values()
            for r in batch
        ]

    def commit(self, topic: str, next_offsets: Mapping[int, int]) -> None:
        self._loop.run(self._consumer.commit({aiokafka.TopicPartition(topic, p): o for p, o in next_offsets.items()}))

    def committed(self, topic: str, partition: int) -> int | None:
        return self._loop.run(self._consumer.committed(aiokafka.TopicPartition(topic, partition)))

    def close(self) -> None:
        self._loop.run(self._consumer.stop())
        self._loop.close()


class _Admin:
    def __init__(self, bootstrap: str) -> None:
        self._loop = _Loop()

        async def start() -> aiokafka.admin.AIOKafkaAdminClient:
            made = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await made.start()
            return made

        self._admin = self._loop.run(start())

    def create_topic(self, topic: str, partitions: int) -> None:
        done = self._loop.run(self._admin.create_topics([aiokafka.admin.NewTopic(topic, partitions, 1)]))
        assert [error[1] for error in done.topic_errors] == [0], done

    def list_topics(self) -> set[str]:
        return set(self._loop.run(self._admin.list_topics()))

    def list_groups(self) -> set[str]:
        return {group[0] for group in self._loop.run(self._admin.list_consumer_groups())}

    def describe_group(self, group: str) -> GroupView:
        (answer,) = self._loop.run(self._admin.describe_consumer_groups([group]))
        error, _, state, _, protocol, members = answer.groups[0][:6]
        assert error == 0, answer
        return GroupView(state, protocol, sorted(member[1] for member in members))

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        found = self._loop.run(self._admin.list_consumer_group_offsets(group))
        return {p.partition: o.offset for p, o in found.items() if p.topic == topic}

    def alter_group_offsets(self, group: str, topic: str, next_offsets: Mapping[int, int]) -> None:
        raise NotImplementedError

    def delete_group(self, group: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._loop.run(self._admin.close())
        self._loop.close()


def producer(bootstrap: str, codec: str = "none", options: Options = NO_OPTIONS) -> _Producer:
    return _Producer(bootstrap, codec, options)


def member(bootstrap: str, membership: Membership, options: Options = NO_OPTIONS) -> _Consumer:
    settings = {
        "group_id": membership.group,
        "client_id": membership.client_id,
        "partition_assignment_strategy": (_ASSIGNORS[membership.assignor],),
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
        self._token = token

    async def token(self) -> str:
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
    if credentials.ca_file:
        made["ssl_context"] = context = ssl.create_default_context(cafile=credentials.ca_file)
        if credentials.certificate:
            context.load_cert_chain(credentials.certificate, credentials.key)
    return made


def refusal(bootstrap: str, options: Options) -> str:
    async def connect() -> str:
        made = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, **options)
        try:
            await made.start()
        except aiokafka.errors.KafkaError as error:
            return repr(error)
        finally:
            await made.stop()
        return "none"

    return asyncio.run(connect())
