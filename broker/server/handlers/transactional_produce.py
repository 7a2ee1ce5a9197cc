"""The transactional batches of a Produce: is each partition part of the producer's transaction?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import BatchHeader, is_transactional, parse_header

if TYPE_CHECKING:
    from broker.protocol.messages.produce import ProduceRequest
    from broker.server.resources import Resources

TOPIC_IDS_SINCE = 13
# KIP-890: the first version with TRANSACTION_ABORTABLE, and the first that adds partitions to the transaction.
ABORTABLE_SINCE, ADDS_SINCE = 11, 12

_Errors = Mapping[tuple[str, int], ErrorCode]


def verify(request: ProduceRequest, version: int, resources: Resources) -> tuple[ErrorCode | None, _Errors]:
    """An error of the whole request, or the errors of single partitions."""
    headers = dict(_headers(request, version >= TOPIC_IDS_SINCE, resources))
    producers = {(header.producer_id, header.producer_epoch) for header in headers.values()}
    if not producers:
        return None, {}
    if len(producers) > 1:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING, {}
    ((producer_id, producer_epoch),) = producers
    unverified = [key for key in headers if not _is_open(key, producer_id, producer_epoch, resources)]
    if not unverified:
        return None, {}
    errors = resources.transactions.verify(
        request.transactional_id or "", producer_id, producer_epoch, unverified, add=version >= ADDS_SINCE
    )
    return None, {key: _as_of(version, error) for key, error in errors.items()}


def _headers(
    request: ProduceRequest, by_id: bool, resources: Resources
) -> Iterator[tuple[tuple[str, int], BatchHeader]]:
    """The headers of transactional batches to partitions that exist."""
    for asked in request.topic_data:
        topic = resources.topic(asked.name, asked.topic_id, by_id)
        if topic is None or topic.internal:
            continue
        for row in asked.partition_data:
            records = row.records or b""
            if is_transactional(records) and 0 <= row.index < topic.partition_count:
                header = parse_header(records)
                if header.producer_id >= 0:
                    yield (topic.name, row.index), header


def _is_open(key: tuple[str, int], producer_id: int, producer_epoch: int, resources: Resources) -> bool:
    """Whether the partition already is in the transaction, so that the coordinator need not be asked."""
    log = resources.log.partition(*key)
    return (
        log is not None
        and log.has_open_transaction(producer_id, producer_epoch)
        and not resources.transactions.is_ending(producer_id)
    )


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
