"""The transactional batches of a Produce: is each partition part of the producer's transaction?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import is_transactional, parse_header
from broker.server.resources import wall_ms

if TYPE_CHECKING:
    from broker.protocol.messages.produce import ProduceRequest
    from broker.server.resources import Resources
    from broker.storage import PartitionLog

TOPIC_IDS_SINCE = 13
# KIP-890: the first version with TRANSACTION_ABORTABLE, and the first that adds partitions to the transaction.
ABORTABLE_SINCE, ADDS_SINCE = 11, 12

_Errors = Mapping[tuple[str, int], ErrorCode]


def verify(request: ProduceRequest, version: int, resources: Resources) -> tuple[ErrorCode | None, _Errors]:
    """An error of the whole request, or the errors of single partitions."""
    batches = list(_batches(request, version >= TOPIC_IDS_SINCE, resources))
    producers = {
        (header.producer_id, header.producer_epoch) for header in (parse_header(found) for _, found in batches)
    }
    if not producers:
        return None, {}
    if len(producers) > 1:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING, {}
    ((producer_id, producer_epoch),) = producers
    adds = version >= ADDS_SINCE
    out: dict[tuple[str, int], ErrorCode] = {}
    unverified: dict[tuple[str, int], None] = {}
    for key, records in batches:
        log = resources.log.partition(*key)
        if log is None or _is_open(log, producer_id, producer_epoch, resources):
            continue
        out[key] = log.start_verification(records, adds_partition=adds, wall_ms=wall_ms())
        if out[key] == ErrorCode.NONE:
            unverified[key] = None
    if unverified:
        errors = resources.transactions.verify(
            request.transactional_id or "", producer_id, producer_epoch, unverified, add=adds
        )
        out |= {key: _as_of(version, error) for key, error in errors.items()}
    return None, {key: error for key, error in out.items() if error}


def _batches(
    request: ProduceRequest, by_id: bool, resources: Resources
) -> Iterator[tuple[tuple[str, int], bytes | memoryview]]:
    """The transactional batches of producers to partitions that exist. A request may name a partition twice."""
    for asked in request.topic_data:
        topic = resources.topic(asked.name, asked.topic_id, by_id)
        if topic is None or topic.internal:
            continue
        for row in asked.partition_data:
            records = row.records or b""
            if not 0 <= row.index < topic.partition_count or not is_transactional(records):
                continue
            if parse_header(records).producer_id >= 0:
                yield (topic.name, row.index), records


def _is_open(log: PartitionLog, producer_id: int, producer_epoch: int, resources: Resources) -> bool:
    """Whether the partition already is in the transaction, so that the coordinator need not be asked."""
    is_open = log.has_open_transaction(producer_id, producer_epoch)
    return is_open and not resources.transactions.is_ending(producer_id)


def _as_of(version: int, error: ErrorCode) -> ErrorCode:
    """The error for a producer of this version."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    if error == ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_SINCE:
        # Older producers may not retry it correctly.
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error
