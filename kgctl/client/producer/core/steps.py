"""The requests of a transaction, and what their answers mean for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.network.coordinator import Coordinator
from kgctl.client.producer.core.batch import NO_IDENTITY, ProducerIdentity
from kgctl.client.producer.core.coordination import Outcome, Priority
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
    from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
    from kgctl.client.producer.core.owners import ProducerOwner, TransactionOwner

Owner = TypeVar("Owner", bound="ProducerOwner")

# The newest versions of EndTxn and TxnOffsetCommit in the protocol that adds partitions and groups with requests.
EXPLICIT_END_VERSION, EXPLICIT_OFFSETS_VERSION = 4, 4
# Later ones are for brokers.
_MAX_ADD_VERSION = 3
# The transaction before usually ends within milliseconds.
_CONCURRENT_WAIT_MS = 20
_NEWEST = 1 << 15

_MOVED = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
_UNKNOWN_PRODUCER = (ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
# What a partition's row says about the whole transaction.
_OF_ALL_PARTITIONS = (
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    *_FENCED,
    *_UNKNOWN_PRODUCER,
)


def _name(code: int) -> str:
    known = ErrorCode._value2member_map_.get(code)
    return known.name if isinstance(known, ErrorCode) else str(code)


class ProducerStep(Generic[Owner]):
    """What the steps have in common. Errors of the coordinator are fatal unless a step says otherwise."""

    priority = Priority.ADD
    response: type[Message]
    min_version, max_version = 0, _NEWEST
    request_type: type[Message]

    def __init__(self, owner: Owner, outcome: Outcome | None = None) -> None:
        self.owner = owner
        self.outcome = outcome or Outcome()

    @property
    def coordinator(self) -> Coordinator | None:
        return self.owner.coordinator

    def request(self) -> Message:
        raise NotImplementedError

    def handle(self, answer: Any) -> bool:
        raise NotImplementedError

    def pause_ms(self, attempts: int) -> int:
        return self.owner.backoff_ms(attempts)

    def fail(self, error: KgctlError) -> None:
        """The step will not be carried out: no coordinator, no suitable version, a refused login."""
        code = error.code if isinstance(error, BrokerError) else None
        if code in (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TRANSACTION_ABORTABLE):
            self.abortable(error)
        else:
            self.fatal(error)

    def fatal(self, error: KgctlError) -> None:
        self.outcome.finish(self.owner.fail_fatally(error))

    def abortable(self, error: KgctlError) -> None:
        self.outcome.finish(self.owner.fail_abortably(error))

    def error_of(self, code: int, about: str | None = None, **asked: str) -> BrokerError:
        name = self.owner.transactional_id
        question = Asked(self.request_type, transactional_id=name or "", **asked)
        return BrokerError(code, about or f"transactional id {name!r}", asked=question, by_leader=True)

    def is_repeated(self, code: int) -> bool:
        """Whether to ask again, perhaps another coordinator."""
        if code in _MOVED:
            assert self.coordinator is not None
            self.coordinator.lost(_name(code))
            return True
        return self.error_of(code).retriable

    def settle(self, code: int, **asked: str) -> None:
        """An error that no repetition helps."""
        # Older coordinators answer the first for the second.
        error = self.error_of(ErrorCode.PRODUCER_FENCED if code in _FENCED else code, **asked)
        if code in _UNKNOWN_PRODUCER:
            self.outcome.finish(self.owner.fail_abortably_if_possible(error))
        elif code in (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.GROUP_AUTHORIZATION_FAILED):
            self.abortable(error)
        else:
            self.fatal(error)


class InitProducerId(ProducerStep["ProducerOwner"]):
    """Get an identity, or with one, a new epoch of it. Fences older producers and ends their transaction."""

    request_type, response = InitProducerIdRequest, InitProducerIdResponse

    def __init__(self, owner: ProducerOwner, identity: ProducerIdentity = NO_IDENTITY) -> None:
        super().__init__(owner)
        self.identity = identity
        self.is_bump = identity != NO_IDENTITY
        self.priority = Priority.BUMP_EPOCH if self.is_bump else Priority.INIT_PRODUCER_ID
        self.min_version = 3 if self.is_bump else 0

    def request(self) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            transactional_id=self.owner.transactional_id,
            transaction_timeout_ms=self.owner.timeout_ms,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
        )

    def handle(self, answer: InitProducerIdResponse) -> bool:
        code = answer.error_code
        if not code:
            identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
            self.owner.initialized(identity, is_bump=self.is_bump)
            self.outcome.finish()
        elif self.is_repeated(code):
            return True
        elif code in (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ):
            self.abortable(self.error_of(code))
        else:
            self.settle(code)
        return False


class AddPartitions(ProducerStep["TransactionOwner"]):
    """Make partitions part of the transaction before anything is sent to them (not with transaction.version 2)."""

    request_type, response = AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
    max_version = _MAX_ADD_VERSION

    def __init__(self, transactions: TransactionOwner, partitions: Sequence[TopicPartition]) -> None:
        super().__init__(transactions)
        self.partitions = partitions
        self._is_concurrent = False

    def request(self) -> AddPartitionsToTxnRequest:
        by_topic: dict[str, list[int]] = {}
        for topic, number in self.partitions:
            by_topic.setdefault(topic, []).append(number)
        identity = self.owner.identity
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.owner.transactional_id or "",
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.Topic(name=topic, partitions=numbers) for topic, numbers in by_topic.items()
            ],
        )

    def handle(self, answer: AddPartitionsToTxnResponse) -> bool:
        codes = {
            TopicPartition(topic.name, row.partition_index): row.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        }
        refused: dict[TopicPartition, int] = {}
        for partition, code in codes.items():
            if not code:
                continue
            self._is_concurrent = code == ErrorCode.CONCURRENT_TRANSACTIONS
            if self.is_repeated(code):
                return True
            if code in _OF_ALL_PARTITIONS:
                self.settle(code)
                return False
            refused[partition] = code
        if not refused:
            self.owner.added(self.partitions)
            self.outcome.finish()
            return False
        # The others were not attempted because of the one that says why.
        partition, code = min(refused.items(), key=lambda row: row[1] == ErrorCode.OPERATION_NOT_ATTEMPTED)
        self.owner.not_added(self.partitions)
        self.abortable(self.error_of(code, str(partition), topic=partition.topic))
        return False

    def pause_ms(self, attempts: int) -> int:
        usual = super().pause_ms(attempts)
        return min(usual, _CONCURRENT_WAIT_MS) if self._is_concurrent and not self.owner.partitions else usual


class AddOffsets(ProducerStep["TransactionOwner"]):
    """Make a group part of the transaction (not with transaction.version 2); then the offsets are committed."""

    request_type, response = AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

    def __init__(
        self,
        transactions: TransactionOwner,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
    ) -> None:
        super().__init__(transactions)
        self.offsets, self.group = offsets, group

    def request(self) -> AddOffsetsToTxnRequest:
        identity = self.owner.identity
        return AddOffsetsToTxnRequest(
            transactional_id=self.owner.transactional_id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            group_id=self.group.group_id,
        )

    def handle(self, answer: AddOffsetsToTxnResponse) -> bool:
        code = answer.error_code
        if not code:
            self.owner.has_started = True
            self.owner.put(CommitOffsets(self.owner, self.offsets, self.group, self.outcome))
        elif self.is_repeated(code):
            return True
        else:
            self.settle(code, group=self.group.group_id)
        return False


class CommitOffsets(ProducerStep["TransactionOwner"]):
    """Commit offsets of a group as part of the transaction."""

    request_type, response = TxnOffsetCommitRequest, TxnOffsetCommitResponse

    def __init__(
        self,
        transactions: TransactionOwner,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        outcome: Outcome | None = None,
    ) -> None:
        super().__init__(transactions, outcome)
        self.offsets, self.group = dict(offsets), group
        # Generation and member are checked by brokers since version 3 (KIP-447).
        is_member = group.member_id or group.generation_id >= 0 or group.group_instance_id
        self.min_version = 5 if transactions.is_implicit else 3 if is_member else 0
        self.max_version = _NEWEST if transactions.is_implicit else EXPLICIT_OFFSETS_VERSION
        if transactions.is_implicit:
            transactions.has_started = True

    @property
    def coordinator(self) -> Coordinator | None:
        return self.owner.group_coordinator(self.group.group_id)

    def request(self) -> TxnOffsetCommitRequest:
        by_topic: dict[str, list[TxnOffsetCommitRequest.Partition]] = {}
        for (topic, number), offset in self.offsets.items():
            by_topic.setdefault(topic, []).append(
                TxnOffsetCommitRequest.Partition(
                    partition_index=number,
                    committed_offset=offset.offset,
                    committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                    committed_metadata=offset.metadata,
                )
            )
        identity, group = self.owner.identity, self.group
        return TxnOffsetCommitRequest(
            transactional_id=self.owner.transactional_id or "",
            group_id=group.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[TxnOffsetCommitRequest.Topic(name=topic, partitions=rows) for topic, rows in by_topic.items()],
        )

    def handle(self, answer: TxnOffsetCommitResponse) -> bool:
        for topic in answer.topics:
            for row in topic.partitions:
                partition, code = TopicPartition(topic.name, row.partition_index), row.error_code
                if not code:
                    self.offsets.pop(partition, None)
                elif code == ErrorCode.REQUEST_TIMED_OUT or code in _MOVED:
                    assert self.coordinator is not None
                    self.coordinator.lost(_name(code))
                elif not self.error_of(code).retriable:
                    self._refused(code)
                    return False
        if self.offsets:
            return True
        self.outcome.finish()
        return False

    def _refused(self, code: int) -> None:
        group = self.group.group_id
        if code in (
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.STALE_MEMBER_EPOCH,
        ):
            self.abortable(self.error_of(code, f"group {group!r}", group=group))
        else:
            self.settle(code, group=group)


class End(ProducerStep["TransactionOwner"]):
    """Commit or abort. With transaction.version 2 the answer has the epoch of the next transaction."""

    request_type, response = EndTxnRequest, EndTxnResponse
    priority = Priority.END

    def __init__(self, transactions: TransactionOwner, *, commit: bool) -> None:
        super().__init__(transactions)
        self.commit = commit
        self.identity = transactions.identity
        is_implicit = transactions.is_implicit
        self.min_version = EXPLICIT_END_VERSION + 1 if is_implicit else 0
        self.max_version = _NEWEST if is_implicit else EXPLICIT_END_VERSION

    def request(self) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.owner.transactional_id or "",
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            committed=self.commit,
        )

    def handle(self, answer: EndTxnResponse) -> bool:
        code = answer.error_code
        if not code:
            identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
            self.owner.ended(identity if identity.producer_id >= 0 else None)
            self.outcome.finish()
        elif self.is_repeated(code):
            return True
        else:
            self.settle(code)
        return False

    def abortable(self, error: KgctlError) -> None:
        if self.commit:
            super().abortable(error)
        else:
            self.fatal(error)  # nothing is left to try
