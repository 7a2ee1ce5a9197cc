"""WriteTxnMarkers: append the markers that end transactions, as administrators do for transactions that no coordinator ends."""

from __future__ import annotations

import logging
from collections.abc import Generator
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.control_records import Marker
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from broker.server.declaration import FEWER_ENTRIES, Declaration
from broker.server.gradual import Turns
from broker.server.guards import PASS, Acl, Guard, Refused, Verdict
from broker.server.resources import wall_ms
from broker.storage import OFFSETS_TOPIC, DamageError, OutOfDescriptors

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources

OFFSETS_AT_ONCE = 200

logger = logging.getLogger("broker.server")


def write_txn_markers(request: WriteTxnMarkersRequest, exchange: Exchange, resources: Resources) -> None:
    Turns(exchange, _answer(request, resources)).resume()


def _answer(request: WriteTxnMarkersRequest, resources: Resources) -> Generator[None, None, WriteTxnMarkersResponse]:
    answers = []
    for asked in request.markers:
        marker = Marker(asked.producer_id, asked.producer_epoch, asked.coordinator_epoch, asked.transaction_result)
        topics = []
        for topic in asked.topics:
            rows = []
            for index in topic.partition_indexes:
                error = yield from _write(marker, topic.name, index, resources)
                rows.append(WriteTxnMarkersResponse.Partition(partition_index=index, error_code=error))
            topics.append(WriteTxnMarkersResponse.Topic(name=topic.name, partitions=rows))
        answers.append(WriteTxnMarkersResponse.Marker(producer_id=asked.producer_id, topics=topics))
    return WriteTxnMarkersResponse(markers=answers)


def _write(marker: Marker, topic: str, index: int, resources: Resources) -> Generator[None, None, ErrorCode]:
    log = resources.log.partition(topic, index)
    if log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    yield
    if topic == OFFSETS_TOPIC:
        if resources.groups.pending_epoch(marker.producer_id, index) > marker.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        while resources.groups.end_transaction(
            marker.producer_id, marker.producer_epoch, (index,), is_commit=marker.is_commit, limit=OFFSETS_AT_ONCE
        ):
            yield
        return ErrorCode.NONE
    try:
        found = log.append_marker(marker, wall_ms=wall_ms())
    except OutOfDescriptors:
        return ErrorCode.KAFKA_STORAGE_ERROR
    except DamageError as error:
        logger.error("%s", error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    if isinstance(found, ErrorCode):
        return found
    resources.waiters.moved(topic, index)
    return ErrorCode.NONE


def _check(request: WriteTxnMarkersRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    if access.allows_on_cluster(Operation.ALTER) or access.allows_on_cluster(Operation.CLUSTER_ACTION):
        return PASS
    return Refused(WriteTxnMarkersResponse(markers=list(map(_denied, request.markers))))


def _denied(marker: WriteTxnMarkersRequest.Marker) -> WriteTxnMarkersResponse.Marker:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return WriteTxnMarkersResponse.Marker(
        producer_id=marker.producer_id,
        topics=[
            WriteTxnMarkersResponse.Topic(
                name=topic.name,
                partitions=[
                    WriteTxnMarkersResponse.Partition(partition_index=index, error_code=code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


REQUESTS = (
    Declaration(
        WriteTxnMarkersRequest,
        write_txn_markers,
        Guard(_check, Acl(Operation.ALTER, ResourceType.CLUSTER), Acl(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)),
        max_entries=FEWER_ENTRIES,
    ),
)
