"""A transactional producer over the wire, of the first or the second version of transactions (KIP-890).

The second version adds no partitions and no groups: Produce v12 and TxnOffsetCommit v5 do. EndTxn v5 gives it a new epoch. As
Java clients do, it repeats a request that was not answered, over a new connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from broker.protocol.wire_types import Message
from tests.harness.requests import batch
from tests.harness.wire_client import ConnectionClosed, WireClient

AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
TIMEOUT_MS = 20_000
PAUSE_S, RECONNECT_S = 0.002, 0.02


class Refused(Exception):
    """An error that ends the transaction without a known outcome."""

    def __init__(self, request: Message, code: int) -> None:
        super().__init__(f"{type(request).__name__}: {ErrorCode(code).name}")
        self.is_fenced = code in FENCED


class Stopped(Exception):
    """The run has ended while no broker answers."""


class Connection:
    """Asks until there is an answer, over a new connection if necessary."""

    def __init__(self, address: tuple[str, int], name: str, ended: Event) -> None:
        self._address, self._name, self._ended = address, name, ended
        self._client: WireClient | None = None

    def use(self, call: Callable[[WireClient], Any]) -> Any:
        while True:
            try:
                if self._client is None:
                    self._client = WireClient(self._address, client_id=self._name, timeout_s=5)
                return call(self._client)
            except (OSError, ConnectionClosed):
                if self._client is not None:
                    self._client.close()
                self._client = None
                if self._ended.wait(RECONNECT_S):
                    raise Stopped from None

    def ask(self, request: Message, version: int, code: Callable[[Any], int] = lambda answer: answer.error_code) -> Any:
        """The answer to a request once it has no error that a client waits out."""
        while True:
            answer = self.use(lambda client: client.ask(request, version))
            if code(answer) == ErrorCode.NONE:
                return answer
            if code(answer) not in AGAIN:
                raise Refused(request, code(answer))
            if self._ended.wait(PAUSE_S) and code(answer) == ErrorCode.CONCURRENT_TRANSACTIONS:
                time.sleep(PAUSE_S)


class WireProducer:
    def __init__(self, connection: Connection, transactional_id: str, version: int) -> None:
        self._connection, self._name, self._version = connection, transactional_id, version
        self._sequences: dict[tuple[str, int], int] = {}
        self._added: set[object] = set()
        self._id, self._epoch = -1, -1
        self.begin_again()

    def begin_again(self) -> None:
        """Take a new epoch, which aborts what is open."""
        request = InitProducerIdRequest(transactional_id=self._name, transaction_timeout_ms=TIMEOUT_MS)
        self._became(self._connection.ask(request, 5 if self._version >= 2 else 4))

    def send(self, topic: str, partition: int, values: Sequence[str]) -> int:
        """Append values as one batch. Returns the offset of the first one."""
        if self._version < 2 and (topic, partition) not in self._added:
            self._add(topic, partition)
        records = batch(
            *(value.encode() for value in values),
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get((topic, partition), 0),
            is_transactional=True,
        )
        part = ProduceRequest.Partition(index=partition, records=records)
        rows = [ProduceRequest.Topic(name=topic, partition_data=[part])]
        request = ProduceRequest(transactional_id=self._name, acks=-1, timeout_ms=1000, topic_data=rows)
        version = 12 if self._version >= 2 else 9
        answer = self._connection.ask(
            request, version, lambda answer: answer.responses[0].partition_responses[0].error_code
        )
        self._sequences[topic, partition] = self._sequences.get((topic, partition), 0) + len(values)
        return int(answer.responses[0].partition_responses[0].base_offset)

    def send_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """As a consumer that assigns its own partitions."""
        if self._version < 2:
            request = AddOffsetsToTxnRequest(
                transactional_id=self._name, producer_id=self._id, producer_epoch=self._epoch, group_id=group
            )
            self._connection.ask(request, 3)
        parts = [
            TxnOffsetCommitRequest.Partition(partition_index=p, committed_offset=offset, committed_metadata="")
            for p, offset in offsets.items()
        ]
        commit = TxnOffsetCommitRequest(
            transactional_id=self._name,
            group_id=group,
            producer_id=self._id,
            producer_epoch=self._epoch,
            topics=[TxnOffsetCommitRequest.Topic(name=topic, partitions=parts)],
        )
        self._connection.ask(commit, 5 if self._version >= 2 else 3, _worst)

    def end(self, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=self._id, producer_epoch=self._epoch, committed=committed
        )
        answer = self._connection.ask(request, 5 if self._version >= 2 else 3)
        self._added.clear()
        if self._version >= 2:
            self._became(answer)

    def _add(self, topic: str, partition: int) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnRequest.Topic(name=topic, partitions=[partition])],
        )
        self._connection.ask(
            request, 3, lambda a: a.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        )
        self._added.add((topic, partition))

    def _became(self, answer: Any) -> None:
        self._id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        self._added.clear()


def _worst(answer: Any) -> int:
    return max(p.error_code for topic in answer.topics for p in topic.partitions)
