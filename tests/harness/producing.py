"""A producer's core beside a scripted cluster: tests append records, answer Produce requests, and let time pass."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from broker.protocol.record_batch import BatchHeader, Record, decode_records, parse_header
from kgctl.client.net.errors import KgctlError
from kgctl.client.network.settings import NetworkSettings
from kgctl.client.producer.core.accumulator import AccumulatorSettings
from kgctl.client.producer.core.batch import Batch, Delivery
from kgctl.client.producer.core.buffer import Reservation
from kgctl.client.producer.core.client import CoreSettings, ProducerCore, run_callbacks
from kgctl.client.producer.core.coordination import Outcome
from kgctl.client.producer.core.sender import SenderSettings
from kgctl.client.producer.core.states import TransactionSettings
from kgctl.client.producer.core.transactions import Transactions
from tests.harness.client_script import Request, Script
from tests.harness.feeding import offers

PRODUCER_ID = 7
TOPIC = "orders"


class _Engine:
    """Waits are the script's turns; the lock is not needed."""

    lock = contextlib.nullcontext()

    def wait(self, condition: Callable[[], bool], timeout: float, *, wakes: bool) -> bool:
        return condition()


@dataclass
class Produced:
    """A Produce request with one batch."""

    request: Request
    partition: int
    header: BatchHeader
    records: list[Record]

    @property
    def sequence(self) -> int:
        return self.header.base_sequence

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records]


@dataclass
class Scene:
    """`answers_initialization`: InitProducerId gets producer id 7 and the next epoch. Sizes and times as in Kafka's tests."""

    partitions: int = 1
    nodes: int = 1
    idempotent: bool = True
    transactional: bool = False
    version_2: bool = False
    batch_bytes: int = 16_384
    linger_ms: int = 0
    buffer_bytes: int = 1 << 20
    acks: int = -1
    retries: int = 0x7FFFFFFF
    delivery_timeout_ms: int = 1500
    request_timeout_ms: int = 1000
    retry_backoff_ms: int = 50
    max_request_bytes: int = 1 << 20
    max_in_flight: int = 5
    availability_timeout_ms: int = 0
    keeps_order: bool = False
    seed: int = 3
    answers_initialization: bool = True
    offered: Mapping[int, tuple[int, int]] | None = None
    transaction_timeout_ms: int = 60_000
    settled: list[Batch] = field(default_factory=list)
    epoch: int = -1

    def __post_init__(self) -> None:
        settings = NetworkSettings(
            request_timeout_ms=self.request_timeout_ms,
            retry_backoff_ms=10,
            max_in_flight_requests_per_connection=self.max_in_flight,
        )
        self.script = Script(self.nodes, {TOPIC: self.partitions}, settings)
        if self.offered is not None:
            self.script.offered = self.offered
        self.script.answers[ApiVersionsRequest] = self._versions
        if self.answers_initialization:
            self.script.answers[InitProducerIdRequest] = self._initialized
        accumulator = AccumulatorSettings(
            self.batch_bytes,
            self.linger_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=1000,
            delivery_timeout_ms=self.delivery_timeout_ms,
            max_request_bytes=self.max_request_bytes,
            availability_timeout_ms=self.availability_timeout_ms,
        )
        sender = SenderSettings(
            self.acks, self.retries, self.request_timeout_ms, self.delivery_timeout_ms, keeps_order=self.keeps_order
        )
        transaction = TransactionSettings("tx", self.transaction_timeout_ms) if self.transactional else None
        core = CoreSettings(self.buffer_bytes, self.idempotent, accumulator, sender, transaction)
        self.core = ProducerCore(
            self.script.network, core, random.Random(self.seed), _Engine(), self._run_callbacks, self.settled.append
        )
        self.script.participants.append(self.core)
        self.core.use(TOPIC, self.script.now_ms)
        self.script.turn()

    # --- records ---

    def send(
        self, value: bytes | None = b"value", key: bytes | None = None, partition: int | None = 0, topic: str = TOPIC
    ) -> Delivery:
        """Append a record; there is room for it."""
        delivery = self.try_send(value, key, partition, topic)
        assert isinstance(delivery, Delivery), "there is no room"
        return delivery

    def try_send(
        self, value: bytes | None, key: bytes | None = None, partition: int | None = 0, topic: str = TOPIC
    ) -> Delivery | Reservation:
        now = self.script.now_ms
        self.core.use(topic, now)
        queues = self.core.accumulator.topic(topic)
        batch: Batch | Reservation | None = self.core.append(queues, partition, now, key, value, ())
        if batch is None:
            batch = self.core.begin(queues, partition, now, key, value, (), now, None)
        return batch if isinstance(batch, Reservation) else Delivery(batch, batch.count - 1, now)

    def batch_of(self, *values: bytes, partition: int = 0) -> list[Delivery]:
        """Records in a batch of their own, which is sent at once if it may be."""
        made = [self.send(value, partition=partition) for value in values]
        self.script.turn()
        return made

    def turn(self) -> None:
        self.script.turn()

    def sleep(self, ms: int) -> None:
        self.script.sleep(ms)

    def _run_callbacks(self) -> None:
        run_callbacks(self.core.completions, lambda error: None)

    # --- the cluster ---

    @property
    def produced(self) -> list[Produced]:
        """The batches without an answer, oldest first."""
        return [
            Produced(request, row.index, parse_header(row.records), decode_records(row.records))
            for request in self.script.requests(ProduceRequest)
            for topic in request.message.topic_data
            for row in topic.partition_data
        ]

    @property
    def sequences(self) -> list[int]:
        return [one.sequence for one in self.produced]

    @property
    def values(self) -> list[list[bytes | None]]:
        return [one.values for one in self.produced]

    def answer(self, code: int = 0, offset: int = 0, at: int = 0, **fields: Any) -> None:
        """Answer a Produce request for each of its partitions."""
        request = self.script.requests(ProduceRequest)[at]
        topics = [
            ProduceResponse.Topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    ProduceResponse.Partition(
                        index=row.index, error_code=code, base_offset=-1 if code else offset, **fields
                    )
                    for row in topic.partition_data
                ],
            )
            for topic in request.message.topic_data
        ]
        self.script.answer(request, ProduceResponse(responses=topics))
        self.script.turn()

    def answer_all(self) -> None:
        """Acknowledge everything until nothing is left."""
        for _ in range(1000):
            if not self.script.requests(ProduceRequest):
                return
            self.answer()
        raise AssertionError("there is no end")

    def disconnect(self, at: int = 0) -> None:
        """End the connection of a Produce request."""
        self.script.fail(self.script.requests(ProduceRequest)[at])
        self.script.turn()

    def _versions(self, request: Request) -> ApiVersionsResponse:
        answer = offers(dict(self.script.offered))
        level = 2 if self.version_2 else 1
        answer.finalized_features = [
            ApiVersionsResponse.FinalizedFeature(
                name="transaction.version", max_version_level=level, min_version_level=level
            )
        ]
        answer.finalized_features_epoch = 1
        return answer

    def _initialized(self, request: Request) -> InitProducerIdResponse:
        self.epoch += 1
        return InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=self.epoch)

    # --- transactions ---

    @property
    def transactions(self) -> Transactions:
        found = self.core.transactions
        assert found is not None
        return found

    def initialize(self) -> None:
        outcome = self.transactions.initialize()
        self.settle(outcome)

    def settle(self, outcome: Outcome) -> KgctlError | None:
        """Let the caller see the outcome of a call."""
        self.script.turn()
        assert outcome.is_done, "the call is not over"
        outcome.is_seen = True
        return outcome.error

    def begin(self) -> None:
        """Begin a transaction; with the older protocol the cluster adds each partition."""
        self.transactions.begin(self.script.now_ms)
        self.adds()

    def adds(self, code: int = 0) -> None:
        """Answer each AddPartitionsToTxn, and EndTxn if that is not changed."""

        def added(request: Request) -> AddPartitionsToTxnResponse:
            return added_partitions(request.message, code)

        self.script.answers[AddPartitionsToTxnRequest] = added

    def ends(self) -> None:
        """Answer each EndTxn."""

        def ended(request: Request) -> EndTxnResponse:
            if request.version < 5:
                return EndTxnResponse()
            self.epoch += 1
            return EndTxnResponse(producer_id=PRODUCER_ID, producer_epoch=self.epoch)

        self.script.answers[EndTxnRequest] = ended

    def takes_offsets(self, code: int = 0, add_code: int = 0) -> None:
        self.script.answers[AddOffsetsToTxnRequest] = lambda _: AddOffsetsToTxnResponse(error_code=add_code)
        self.script.answers[TxnOffsetCommitRequest] = lambda request: committed_offsets(request.message, code)


def added_partitions(
    request: AddPartitionsToTxnRequest, code: int = 0, codes: Sequence[int] = ()
) -> AddPartitionsToTxnResponse:
    """The answer for all partitions of a request, or one code for each in turn."""
    given = iter(codes)
    topics = [
        AddPartitionsToTxnResponse.Topic(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnResponse.Partition(partition_index=number, partition_error_code=next(given, code))
                for number in topic.partitions
            ],
        )
        for topic in request.v3_and_below_topics
    ]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)


def committed_offsets(request: TxnOffsetCommitRequest, code: int = 0) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.Topic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.Partition(partition_index=row.partition_index, error_code=code)
                    for row in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def code_name(error: KgctlError | None) -> str | None:
    return None if error is None else error.name


NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
