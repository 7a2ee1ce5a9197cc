"""Partitions of a transaction: AddPartitionsToTxn, AddOffsetsToTxn, and the verification of Produce and TxnOffsetCommit (KIP-890)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

from broker.cores.transactions import transition
from broker.cores.transactions.records import Partition, TransactionRecord, by_topic
from broker.cores.transactions.states import TransactionState
from broker.cores.transactions.step import TIMEOUT, Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from broker.protocol.offsets_topic import TOPIC as OFFSETS_TOPIC

PRODUCER_FENCED_SINCE = 2
# Brokers send these versions to each other; clients send the earlier ones.
BATCHED_SINCE = 4
# For at most this many partitions, a search for each is faster than a set of all partitions of the transaction.
SEARCHED = 20


def add_partitions(step: Step, request: AddPartitionsToTxnRequest) -> None:
    if step.request.api_version >= BATCHED_SINCE:
        step.reply(
            AddPartitionsToTxnResponse(results_by_transaction=[_add_all(step, item) for item in request.transactions])
        )
        return
    partitions = _partitions(request.v3_and_below_topics)
    error = add(
        step,
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        partitions,
        client_version=0,
    )
    error = _fenced_by_version(step, error)
    results = _topics(dict.fromkeys(partitions, error))
    step.reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))


def add_offsets(step: Step, request: AddOffsetsToTxnRequest) -> None:
    partition = OFFSETS_TOPIC, step.coordinator.offsets_partition(request.group_id)
    error = add(
        step,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        (partition,),
        client_version=0,
    )
    step.reply(AddOffsetsToTxnResponse(error_code=_fenced_by_version(step, error)))


def add(
    step: Step,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: tuple[Partition, ...],
    *,
    client_version: int,
) -> ErrorCode:
    """Add partitions to the transaction of a producer. The first ones begin it and start its timeout."""
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    record = step.transactions.get(transactional_id)
    if record is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if record.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if error := _check_producer(record, producer_id, producer_epoch):
        return error
    added = _missing(record, partitions)
    if record.state is TransactionState.ONGOING and not added:
        return ErrorCode.NONE
    step.persist(transition.ongoing(record, added, client_version, step.wall_ms))
    if record.state is not TransactionState.ONGOING:
        step.timers.set((TIMEOUT, transactional_id), step.now_ms + record.timeout_ms)
    return ErrorCode.NONE


def verify(
    step: Step, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Collection[Partition]
) -> dict[Partition, ErrorCode]:
    """Whether each partition is part of the ongoing transaction of a producer."""
    record = step.transactions.get(transactional_id)
    error = ErrorCode.NONE
    if not transactional_id:
        error = ErrorCode.INVALID_REQUEST
    elif record is None:
        error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    else:
        error = _check_producer(record, producer_id, producer_epoch)
        if not error and record.state.is_prepared:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
    if error or record is None:
        return dict.fromkeys(partitions, error)
    return dict.fromkeys(partitions, ErrorCode.NONE) | dict.fromkeys(
        _missing(record, partitions), ErrorCode.TRANSACTION_ABORTABLE
    )


def _missing(record: TransactionRecord, partitions: Collection[Partition]) -> list[Partition]:
    """Those that are not part of the transaction, once each. It may have thousands, and gain them one by one."""
    known = record.partitions
    if len(partitions) > SEARCHED:
        found = set(known)
        return [partition for partition in dict.fromkeys(partitions) if partition not in found]
    return [partition for partition in dict.fromkeys(partitions) if not _contains(known, partition)]


def _contains(known: tuple[Partition, ...], partition: Partition) -> bool:
    at = bisect_left(known, partition)
    return at < len(known) and known[at] == partition


def _check_producer(record: TransactionRecord, producer_id: int, producer_epoch: int) -> ErrorCode:
    if producer_id != record.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if producer_epoch == record.producer_epoch else ErrorCode.PRODUCER_FENCED


def _add_all(step: Step, item: AddPartitionsToTxnRequest.Transaction) -> AddPartitionsToTxnResponse.Transaction:
    partitions = _partitions(item.topics)
    if item.verify_only:
        errors = verify(step, item.transactional_id, item.producer_id, item.producer_epoch, partitions)
    else:
        error = add(
            step,
            item.transactional_id,
            item.producer_id,
            item.producer_epoch,
            partitions,
            client_version=transition.BUMPS_EPOCH,
        )
        errors = dict.fromkeys(partitions, error)
    return AddPartitionsToTxnResponse.Transaction(transactional_id=item.transactional_id, topic_results=_topics(errors))


def _fenced_by_version(step: Step, error: ErrorCode) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED and step.request.api_version < PRODUCER_FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def _partitions(topics: list[AddPartitionsToTxnRequest.Topic]) -> tuple[Partition, ...]:
    return tuple((topic.name, index) for topic in topics for index in topic.partitions)


def _topics(errors: dict[Partition, ErrorCode]) -> list[AddPartitionsToTxnResponse.Topic]:
    return [
        AddPartitionsToTxnResponse.Topic(
            name=topic,
            results_by_partition=[
                AddPartitionsToTxnResponse.Partition(partition_index=index, partition_error_code=errors[topic, index])
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(tuple(errors)).items()
    ]
