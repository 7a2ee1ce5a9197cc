"""What the blocking and the asyncio producer have in common."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass, field
from kgctl.client.engine.engine import Engine, now_ms
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.settings import NetworkSettings
from kgctl.client.producer.core.batch import Batch, Delivery
from kgctl.client.producer.core.client import CoreSettings, ProducerCore, run_callbacks
from kgctl.client.producer.core.coordination import Outcome
from kgctl.client.producer.core.errors import OutcomeUnknown, ProducerClosed, WrongState
from kgctl.client.producer.core.transactions import Transactions
from kgctl.client.producer.interceptors import Interceptors, ProducerInterceptor, report
from kgctl.client.producer.partitioners import Partitioner, by_key
from kgctl.client.producer.record_path import Blocked, RecordPath, Serializer, check_topic
from kgctl.model.described_partition import PartitionInfo
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
    from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata

_FOREVER_SECONDS = 1e8


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """All options of a producer besides those of its connections. `max_block_ms` bounds the waits of its methods."""

    core: CoreSettings = field(default_factory=CoreSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    max_block_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Plugins:
    """Code of users that a producer runs."""

    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None
    partitioner: Partitioner | None = None
    interceptors: tuple[ProducerInterceptor, ...] = ()


class ProducerFace:
    """`engine_of` makes the engine; `make` the futures."""

    def __init__(
        self,
        connection: ConnectionSettings,
        settings: ProducerSettings,
        engine_of: Callable[[NetworkClient, ConnectionSettings], Engine],
        make: type[Delivery],
        plugins: Plugins,
        settled: Callable[[Batch], None] | None = None,
    ) -> None:
        randomness = random.Random()
        network = NetworkClient(connection.bootstrap, settings.network, randomness)
        self.engine = engine_of(network, connection)
        self.core = ProducerCore(network, settings.core, randomness, self.engine, self._completed, settled)
        self.engine.participants.append(self.core)
        self.interceptors = Interceptors(plugins.interceptors)
        self.path = RecordPath(
            self.core,
            now_ms,
            self.engine.wake,
            make,
            key_serializer=plugins.key_serializer,
            value_serializer=plugins.value_serializer,
            partitioner=plugins.partitioner or by_key,
            interceptors=self.interceptors,
        )
        self.max_block_seconds = settings.max_block_ms / 1000
        self.is_closed = False

    def _completed(self) -> None:
        self.engine.defer(lambda: run_callbacks(self.core.completions, report))

    # --- waits: conditions, and what to do after them ---

    def begin_flush(self) -> Callable[[], bool]:
        """Make all batches due. Returns whether those that exist now are done."""
        with self.engine.lock:
            self._check_open()
            self.core.accumulator.flushes += 1
            left = [*self.core.completions, *self.core.accumulator.incomplete]
        self.engine.wake()

        def is_done() -> bool:
            while left and left[-1].is_complete:
                left.pop()
            return not left

        return is_done

    def end_flush(self) -> None:
        with self.engine.lock:
            self.core.accumulator.flushes -= 1

    def begin_topic(self, topic: str) -> Callable[[], bool]:
        """Ask for a topic. The condition raises why it is not known for certain."""
        core = self.core
        check_topic(topic)
        with self.engine.lock:
            self._check_open()
            core.use(topic, now_ms())
        self.engine.wake()

        def is_known() -> bool:
            core.metadata.take_error()
            return core.use(topic, now_ms()) is not None

        return is_known

    def partitions_of(self, topic: str) -> list[PartitionInfo]:
        metadata = self.core.metadata
        rows = []
        with self.engine.lock:
            for number in range(metadata.partition_count(topic) or 0):
                partition = TopicPartition(topic, number)
                leader = metadata.leader(partition)
                node_id = None if leader is None else leader.node.node_id
                found = metadata.topic(topic)
                state = None if found is None else found.partitions.get(number)
                rows.append(
                    PartitionInfo(topic, number, node_id, state.replicas, state.in_sync, state.offline)
                    if state is not None
                    else PartitionInfo(topic, number, node_id)
                )
        return rows

    # --- transactions ---

    def begin_call(self, start: Callable[[Transactions], Outcome]) -> Outcome:
        with self.engine.lock:
            self._check_open()
            outcome = start(self.transactions())
        self.engine.wake()
        return outcome

    def end_call(self, outcome: Outcome, operation: str, seconds: float, *, commits: bool = False) -> None:
        """After the wait: return, or raise why the call failed or that it is not over yet."""
        with self.engine.lock:
            if outcome.is_done:
                outcome.is_seen = True
        if outcome.error is not None:
            raise outcome.error.with_traceback(None)
        if not outcome.is_done:
            reason = self.transactions().coordinator.trouble()
            text = f"{operation}: no answer within {seconds:g} s" + (f" ({reason})" if reason else "")
            late = TimedOut(f"{text}; call it again to wait on, or close the producer")
            raise OutcomeUnknown(late) if commits and outcome.was_sent else late

    def transactions(self) -> Transactions:
        found = self.core.transactions
        if found is None:
            raise WrongState("the producer has no transactional.id")
        return found

    def begin_transaction(self) -> None:
        with self.engine.lock:
            self._check_open()
            self.transactions().begin(now_ms())

    def offsets_call(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: ConsumerGroupMetadata | str
    ) -> Callable[[Transactions], Outcome]:
        from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
        from kgctl.client.consumer.offset_and_metadata import offset_of

        metadata = ConsumerGroupMetadata(group) if isinstance(group, str) else group
        if metadata.generation_id > 0 and not metadata.member_id:
            raise WrongState("the group metadata has a generation, but no member id")
        checked = {partition: offset_of(partition, offset) for partition, offset in offsets.items()}
        return lambda transactions: transactions.send_offsets(checked, metadata)

    # --- closing ---

    def begin_close(self) -> Callable[[], bool]:
        """Refuse new records, send what is left, abort an open transaction. Returns whether that is done."""
        with self.engine.lock:
            self.is_closed = True
            self.core.close()
        self.engine.wake()
        return lambda: not self.core.has_work and not self.core.completions

    def force_close(self) -> None:
        """Fail what is left."""
        with self.engine.lock:
            self.is_closed = True
            self.core.abort(ProducerClosed("the producer was closed before the record was acknowledged"))
        run_callbacks(self.core.completions, report)

    def _check_open(self) -> None:
        if self.is_closed:
            raise ProducerClosed("the producer is closed")


def expired(path: RecordPath, engine: Engine, blocked: Blocked, seconds: float) -> KgctlError:
    """The error of a record that has waited for too long; what it waited for is given up."""
    with engine.lock:
        path.give_up(blocked)
    return blocked.expired(seconds)


def seconds_of(timeout: float | None) -> float:
    return _FOREVER_SECONDS if timeout is None else timeout
