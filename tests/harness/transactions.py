"""A transactional producer over single requests."""

from __future__ import annotations

from typing import Any

from broker.protocol.errors import ErrorCode, is_retriable
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.harness.requests import batch
from tests.harness.running import until
from tests.harness.wire_client import WireClient

READ_COMMITTED = 1


class TransactionalProducer:
    """With transaction.version 2, whose requests begin a transaction and add partitions to it, unless a version is named."""

    def __init__(self, client: WireClient, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        """Take the transactional id over from every other producer."""
        self.client = client
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._sequences: dict[tuple[str, int], int] = {}
        self.producer_id, self.epoch = -1, -1
        until(self._initialize)

    def _initialize(self) -> bool:
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms)
        answer = self.client.ask(request, 5)
        assert answer.error_code == ErrorCode.NONE or is_retriable(answer.error_code), answer
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return not answer.error_code

    def produce_request(self, *places: tuple[str, int], values: tuple[bytes, ...] = (b"x",)) -> ProduceRequest:
        """One batch to each of these partitions, named by topic and index."""
        topics: dict[str, list[ProduceRequest.Partition]] = {}
        for topic, index in places:
            sequence = self._sequences.get((topic, index), 0)
            self._sequences[topic, index] = sequence + len(values)
            records = batch(
                *values,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
            topics.setdefault(topic, []).append(ProduceRequest.Partition(index=index, records=records))
        rows = [ProduceRequest.Topic(name=topic, partition_data=parts) for topic, parts in topics.items()]
        return ProduceRequest(transactional_id=self.transactional_id, acks=-1, timeout_ms=1000, topic_data=rows)

    def produce(self, topic: str, *values: bytes, partition: int = 0, version: int = 12) -> Any:
        """Append one batch of values. Returns the row of the answer."""
        request = self.produce_request((topic, partition), values=values)
        return self.client.ask(request, version).responses[0].partition_responses[0]

    def add_partitions(self, *places: tuple[str, int], version: int = 3) -> list[int]:
        """The error codes, in the order of the answer."""
        topics: dict[str, list[int]] = {}
        for topic, index in places:
            topics.setdefault(topic, []).append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.Topic(name=name, partitions=indexes) for name, indexes in topics.items()
            ],
        )
        rows = self.client.ask(request, version).results_by_topic_v3_and_below
        return [row.partition_error_code for topic in rows for row in topic.results_by_partition]

    def add_offsets(self, group: str, version: int = 4) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        code: int = self.client.ask(request, version).error_code
        return code

    def commit_offsets_request(self, group: str, topic: str, *offsets: tuple[int, int]) -> TxnOffsetCommitRequest:
        """Commit offsets, each with its partition before it."""
        rows = [
            TxnOffsetCommitRequest.Partition(partition_index=index, committed_offset=offset, committed_metadata="")
            for index, offset in offsets
        ]
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequest.Topic(name=topic, partitions=rows)],
        )

    def commit_offsets(self, group: str, topic: str, *offsets: tuple[int, int], version: int = 5) -> list[int]:
        """The error codes, in the order of the answer."""
        answer = self.client.ask(self.commit_offsets_request(group, topic, *offsets), version)
        return [row.error_code for topic in answer.topics for row in topic.partitions]

    def end_request(self, *, committed: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )

    def end(self, *, committed: bool, version: int = 5) -> int:
        """End the transaction, and go on with the producer id and epoch of the answer. Returns the error code."""
        answer = self.client.ask(self.end_request(committed=committed), version)
        if version >= 5 and not answer.error_code:
            self.use(answer.producer_id, answer.producer_epoch)
        code: int = answer.error_code
        return code

    def use(self, producer_id: int, epoch: int) -> None:
        """Go on with another producer id and epoch, whose sequences begin at 0."""
        self.producer_id, self.epoch = producer_id, epoch
        self._sequences.clear()

    def state(self) -> str:
        """The state of the transaction, as DescribeTransactions names it."""
        return describe(self.client, self.transactional_id).transaction_state


def describe(client: WireClient, transactional_id: str) -> Any:
    (row,) = client.ask(describing(transactional_id)).transaction_states
    return row


def describing(transactional_id: str) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=[transactional_id])
