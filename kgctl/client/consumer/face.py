"""What both faces of a consumer share: its parts, and methods that do not wait."""

from __future__ import annotations

import logging
import random
import re
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from broker.protocol.messages.metadata import MetadataResponse
from kgctl.client.consumer.arguments import check_listener, compiled, partition_of
from kgctl.client.consumer.assignors.loading import load_assignors
from kgctl.client.consumer.consumer_record import ConsumerRecord
from kgctl.client.consumer.core import ConsumerCore
from kgctl.client.consumer.deserializers import deserialize
from kgctl.client.consumer.errors import ConsumerClosed
from kgctl.client.consumer.group.member import GroupMember
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.client.consumer.interceptors import Interceptors
from kgctl.client.consumer.metrics import metrics_of
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata, offset_of
from kgctl.client.consumer.ownership import Ownership
from kgctl.client.consumer.partition_state import PartitionState
from kgctl.client.consumer.rebalance_listener import HeldListener, RebalanceListener
from kgctl.client.consumer.reset_strategy import EARLIEST, LATEST, ResetStrategy
from kgctl.client.consumer.settings import ConsumerSettings
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.consumer.subscription_pattern import SubscriptionPattern
from kgctl.client.engine.engine import Engine, now_ms
from kgctl.client.net.authorization import Asked
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound
from kgctl.client.net.lifetime import ForeignLock, WrongProcess, warn_unclosed, watch
from kgctl.client.network.client import NetworkClient
from kgctl.model.described_partition import PartitionInfo
from kgctl.model.topic_partition import TopicPartition

logger = logging.getLogger("kgctl.client")
Offsets = Mapping[TopicPartition, "OffsetAndMetadata | int"]
_UNKNOWN_TOPIC = 3


class ConsumerFace:
    """The base of `Consumer` and `AsyncConsumer`. Only `wakeup` may be called while another thread or task is inside."""

    def __init__(
        self,
        connection: ConnectionSettings,
        settings: ConsumerSettings,
        make_engine: Callable[[NetworkClient, ConnectionSettings], Engine],
        ownership: Ownership,
    ) -> None:
        self._settings = settings
        self._owned: Ownership | ForeignLock = ownership
        self._network = NetworkClient(connection.bootstrap, settings.network, random.Random())
        subscription = SubscriptionState(settings.reset)
        member = None
        note = settings.note or logger.info
        if settings.group is not None:
            assignors = load_assignors(settings.assignors)
            member = GroupMember(self._network, subscription, settings.group, assignors, random.Random(), logger.info)
        self._core = ConsumerCore(
            self._network, subscription, settings.fetch, _wall_ms, member, settings.timeout_ms, note
        )
        self._listener: RebalanceListener | None = None
        this = weakref.ref(self)
        self._held_listener = HeldListener(lambda: found._listener if (found := this()) is not None else None)
        self._interceptors = Interceptors(settings.interceptors)
        if member is not None and self._interceptors:
            member.on_commit(self._interceptors.on_commit)
        self._unread: list[ConsumerRecord] = []  # of an iteration, last one first
        self._engine = make_engine(self._network, connection)
        self._engine.participants.append(self._core)
        self._engine.start()
        watch(self, ConsumerFace._forked)

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and engine.is_open:
            warn_unclosed(self, self._settings.network.client_id)
            engine.abandon()

    def _forked(self, error: WrongProcess) -> None:
        """This is a copy in a forked process."""
        self._owned = self._engine.forked(error)

    # --- what is read ---

    def subscription(self) -> frozenset[str]:
        """The subscribed topics; with a pattern, those that match it now. Only the broker knows those of a SubscriptionPattern."""
        with self._owned, self._engine.lock:
            return self._core.subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer reads now."""
        with self._owned, self._engine.lock:
            return frozenset(self._core.subscription.assigned)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others, without sharing them with a group.

        With group.id, positions begin at committed offsets and can be committed.
        """
        chosen = [partition_of(one) for one in partitions]
        with self._using():
            self._return_unread()
            self._core.assign(chosen, now_ms())

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until `resume`. What has arrived already is kept."""
        self._set_paused(partitions, True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these partitions again."""
        self._set_paused(partitions, False)

    def paused(self) -> frozenset[TopicPartition]:
        with self._owned, self._engine.lock:
            return frozenset(self._core.subscription.paused)

    # --- positions ---

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue at this offset. With the leader epoch of a committed offset, the position is validated (KIP-320)."""
        target = offset_of(partition, offset)
        with self._using():
            self._core.seek(partition, target)
            self._unread = [one for one in self._unread if (one.topic, one.partition) != partition]

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Continue with the first record of these partitions, or of all assigned ones."""
        self._request_reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Continue behind the last record of these partitions, or of all assigned ones."""
        self._request_reset(partitions, LATEST)

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the end of the log; None until the consumer knows the end."""
        with self._using():
            return self._core.current_lag(partition, now_ms())

    # --- the group ---

    def group_metadata(self) -> ConsumerGroupMetadata:
        """For `send_offsets_to_transaction` of a producer (KIP-447)."""
        with self._owned, self._engine.lock:
            return self._core.group("describe the membership").group_metadata

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Let the group assign its partitions again; the next poll rejoins."""
        with self._using():
            self._core.group("rebalance").enforce_rebalance(reason)

    # --- others ---

    def wakeup(self) -> None:
        """End the call that waits, or the next one that would, with WakeupError. From any thread, or a signal handler."""
        self._core.is_woken = True
        self._engine.wake()

    def metrics(self) -> dict[str, float]:
        """Counts and sums since the start, by the names of Kafka's consumer metrics."""
        with self._engine.lock:
            return metrics_of(self._core)

    @property
    def is_closed(self) -> bool:
        return self._core.is_closed

    # --- for kgctl itself ---

    def state_of(self, partition: TopicPartition) -> PartitionState | None:
        """What the consumer knows about an assigned partition; to look at."""
        with self._engine.lock:
            return self._core.subscription.find(partition)

    def stop_before(self, limits: Mapping[TopicPartition, int]) -> None:
        """Fetch nothing from these offsets on while the partitions are assigned; `poll_batches` leaves out what is behind."""
        with self._using():
            for one, limit in limits.items():
                self._core.subscription.state(one).limit = limit

    def has_reached_limit(self, partition: TopicPartition) -> bool:
        """Whether `poll_batches` has returned everything before the limit of an assigned partition."""
        with self._engine.lock:
            state = self._core.subscription.find(partition)
            committed_only = self._settings.fetch.committed_only
            return state is not None and state.has_reached_limit(committed_only=committed_only)

    def known_partition_count(self, topic: str) -> int | None:
        with self._engine.lock:
            return self._network.metadata.partition_count(topic)

    def obstacle(self) -> KgctlError | None:
        """Why records may not arrive now."""
        with self._engine.lock:
            return self._core.obstacle()

    # --- parts ---

    def _using(self) -> _Using:
        return _Using(self)

    def _check_open(self) -> None:
        if self._core.is_closed:
            raise ConsumerClosed("the consumer is closed")

    def _subscribe(
        self,
        topics: Collection[str],
        pattern: str | re.Pattern[str] | SubscriptionPattern | None,
        listener: RebalanceListener | None,
    ) -> None:
        held = None
        if listener is not None:
            check_listener(listener)
            held = self._held_listener
        with self._using():
            if pattern is not None:
                self._core.subscribe_pattern(compiled(pattern), held, now_ms())
            else:
                self._core.subscribe(topics, held, now_ms())
            self._listener = listener

    def _set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        with self._using():
            states = {one: self._core.subscription.state(one) for one in partitions}
            for state in states.values():
                state.paused = paused
            if paused and self._unread:
                self._give_back([one for one in self._unread[::-1] if (one.topic, one.partition) in states])
                self._unread = [one for one in self._unread if (one.topic, one.partition) not in states]

    def _request_reset(self, partitions: Iterable[TopicPartition], strategy: ResetStrategy) -> None:
        chosen = list(partitions)
        with self._using():
            self._core.request_reset(chosen, strategy)
            self._unread = [
                one for one in self._unread if chosen and TopicPartition(one.topic, one.partition) not in chosen
            ]

    def _until(self, timeout: float | None) -> int:
        """The deadline of a call that waits."""
        return now_ms() + (self._settings.timeout_ms if timeout is None else max(0, round(timeout * 1000)))

    def _collect(self) -> list[ConsumerRecord]:
        return self._core.fetches.collect(self._settings.fetch.max_poll_records)

    def _at_once(self) -> Sequence[ConsumerRecord]:
        """What has arrived, if a poll has only to collect it. The engine has a turn if that makes room to fetch."""
        fetches = self._core.fetches
        with self._engine.lock:
            before = fetches.freed
            try:
                return self._core.poll_at_once(self._collect) or ()
            except BaseException:
                before = -1
                raise
            finally:
                if fetches.freed != before:
                    self._engine.wake()

    def _deliver(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Without the lock: what the application gets of the records that were collected."""
        settings = self._settings
        if records and (settings.key_deserializer is not None or settings.value_deserializer is not None):
            done, error = deserialize(records, settings.key_deserializer, settings.value_deserializer)
            if error is not None:
                self._give_back(records[len(done) :])
                if not done:
                    raise error
            records = done
        if records and self._interceptors:
            records = self._interceptors.on_consume(records)
        return records

    def _give_back(self, records: Sequence[ConsumerRecord]) -> None:
        """Move the positions back before records that the application did not get."""
        with self._engine.lock:
            for one, offset in _first_offsets(records).items():
                state = self._core.subscription.find(one)
                position = None if state is None else state.position
                if state is not None and position is not None and position.offset > offset.offset:
                    # Without an epoch, it is valid at once, also if the old position awaits validation.
                    state.seek_unvalidated(position._replace(offset=offset.offset, offset_epoch=None))

    def _return_unread(self) -> None:
        """Move the positions back before what an iteration has not returned yet: partitions that stay assigned lose nothing."""
        with self._owned:
            unread, self._unread = self._unread[::-1], []
            self._give_back(unread)

    def _to_commit(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        """With the lock: the given offsets, or the positions before what an iteration has not returned yet."""
        if offsets is not None:
            return {partition_of(one): offset_of(partition_of(one), offset) for one, offset in offsets.items()}
        consumed = self._core.subscription.consumed()
        for one, first in _first_offsets(self._unread[::-1]).items():
            if one in consumed:
                consumed[one] = first
        return consumed

    def _unread_offset(self, partition: TopicPartition) -> int | None:
        """The next offset that an iteration returns, if it has records of the partition."""
        with self._owned:
            for one in reversed(self._unread):
                if (one.topic, one.partition) == partition:
                    offset: int = one.offset
                    return offset
        return None

    @staticmethod
    def _infos(answer: MetadataResponse) -> dict[str, list[PartitionInfo]]:
        return {
            topic.name or "": [
                PartitionInfo(
                    topic.name or "",
                    row.partition_index,
                    row.leader_id if row.leader_id >= 0 else None,
                    tuple(row.replica_nodes),
                    tuple(row.isr_nodes),
                    tuple(row.offline_replicas),
                )
                for row in sorted(topic.partitions, key=lambda row: row.partition_index)
            ]
            for topic in answer.topics
            if not topic.error_code
        }

    @classmethod
    def _infos_of(cls, topic: str, answer: MetadataResponse) -> list[PartitionInfo]:
        code = next((row.error_code for row in answer.topics if row.name == topic), _UNKNOWN_TOPIC)
        if code == _UNKNOWN_TOPIC:
            raise NotFound(f"topic {topic!r} does not exist")
        if code:
            raise BrokerError(code, f"topic {topic!r}", asked=Asked(type(answer), topic=topic))
        return cls._infos(answer)[topic]


class _Using:
    """One call that changes something: by the owner, with the lock, and with a turn afterwards."""

    __slots__ = ("_face",)

    def __init__(self, face: ConsumerFace) -> None:
        self._face = face

    def __enter__(self) -> None:
        face = self._face
        face._owned.__enter__()
        try:
            face._check_open()
        except BaseException:
            face._owned.__exit__(None, None, None)
            raise
        face._engine.lock.acquire()

    def __exit__(self, *exc: Any) -> None:
        face = self._face
        face._engine.lock.release()
        face._owned.__exit__(None, None, None)
        face._engine.wake()


def _first_offsets(records: Sequence[ConsumerRecord]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Where each partition begins."""
    out: dict[TopicPartition, OffsetAndMetadata] = {}
    for one in records:
        key = TopicPartition(one.topic, one.partition)
        if key not in out:
            out[key] = OffsetAndMetadata(one.offset)
    return out


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
