"""ListOffsets and OffsetForLeaderEpoch: offsets by timestamp, at either end of a log, and of a leader epoch."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Generator
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from broker.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from broker.server.declaration import Declaration
from broker.server.gradual import Turns
from broker.server.guards import PASS, Acl, Guard, Verdict, on_each_topic
from broker.server.leader_epoch import epoch_error
from broker.storage import LEADER_EPOCH, DamageError, OutOfDescriptors, RowPartition

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources
    from broker.storage import PartitionLog

logger = logging.getLogger("broker.server")

READ_COMMITTED = 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
# The first version that knows each special timestamp.
SPECIAL_SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


_Rows = Generator[None, None, ListOffsetsResponse.Partition]
_Found = Generator[None, None, tuple[int, int] | None]


def list_offsets(request: ListOffsetsRequest, exchange: Exchange, resources: Resources) -> None:
    Turns(exchange, _answer(request, exchange.version, resources)).resume()


def _answer(
    request: ListOffsetsRequest, version: int, resources: Resources
) -> Generator[None, None, ListOffsetsResponse]:
    committed = request.isolation_level == READ_COMMITTED
    times_asked = Counter((topic.name, row.partition_index) for topic in request.topics for row in topic.partitions)
    topics = []
    for topic in request.topics:
        rows = []
        for asked in topic.partitions:
            if times_asked[topic.name, asked.partition_index] > 1:
                rows.append(_offset_error(asked, ErrorCode.INVALID_REQUEST))
            else:
                rows.append((yield from _offset(topic.name, asked, version, committed, resources)))
                yield
        topics.append(ListOffsetsResponse.Topic(name=topic.name, partitions=rows))
    return ListOffsetsResponse(topics=topics)


def _offset(
    topic: str, asked: ListOffsetsRequest.Partition, version: int, committed: bool, resources: Resources
) -> _Rows:
    if asked.timestamp < 0 and version < SPECIAL_SINCE.get(asked.timestamp, version + 1):
        return _offset_error(asked, ErrorCode.UNSUPPORTED_VERSION)
    log = resources.log.partition(topic, asked.partition_index)
    if log is None:
        return _offset_error(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    refusal = epoch_error(asked.current_leader_epoch)
    if refusal is not None:
        return _offset_error(asked, refusal)
    try:
        found = yield from _find(log, asked.timestamp, log.last_stable_offset if committed else log.high_watermark)
    except DamageError as error:
        logger.error("%s", error)
        return _offset_error(asked, ErrorCode.CORRUPT_MESSAGE)
    except OutOfDescriptors:
        return _offset_error(asked, ErrorCode.KAFKA_STORAGE_ERROR)
    if found is None:
        return ListOffsetsResponse.Partition(partition_index=asked.partition_index)
    offset, timestamp = found
    return ListOffsetsResponse.Partition(
        partition_index=asked.partition_index, timestamp=timestamp, offset=offset, leader_epoch=LEADER_EPOCH
    )


def _find(log: PartitionLog, timestamp: int, end: int) -> _Found:
    """The offset and timestamp asked for, before `end`; the timestamp is -1 where the offset has none."""
    if timestamp == LATEST:
        return end, -1
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.log_start_offset, -1
    if timestamp == LATEST_TIERED:
        return None
    if isinstance(log, RowPartition):
        found = yield from log.search_max_timestamp() if timestamp == MAX_TIMESTAMP else log.search_timestamp(timestamp)
    else:
        found = log.offset_of_max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    return found if found is not None and found[0] < end else None


def _offset_error(asked: ListOffsetsRequest.Partition, code: ErrorCode) -> ListOffsetsResponse.Partition:
    return ListOffsetsResponse.Partition(partition_index=asked.partition_index, error_code=code)


def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, exchange: Exchange, resources: Resources
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.Topic(
                topic=topic.topic,
                partitions=[_epoch_end(topic.topic, asked, resources) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _epoch_end(
    topic: str, asked: OffsetForLeaderEpochRequest.Partition, resources: Resources
) -> OffsetForLeaderEpochResponse.Partition:
    log = resources.log.partition(topic, asked.partition)
    refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if log is None else epoch_error(asked.current_leader_epoch)
    if log is None or refusal is not None:
        return OffsetForLeaderEpochResponse.Partition(partition=asked.partition, error_code=refusal or ErrorCode.NONE)
    epoch, end_offset = log.end_offset_for_epoch(asked.leader_epoch)
    return OffsetForLeaderEpochResponse.Partition(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)


def _denied_offsets(topic: ListOffsetsRequest.Topic) -> ListOffsetsResponse.Topic:
    return ListOffsetsResponse.Topic(
        name=topic.name,
        partitions=[_offset_error(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for asked in topic.partitions],
    )


def _denied_epochs(topic: OffsetForLeaderEpochRequest.Topic) -> OffsetForLeaderEpochResponse.Topic:
    return OffsetForLeaderEpochResponse.Topic(
        topic=topic.topic,
        partitions=[
            OffsetForLeaderEpochResponse.Partition(
                partition=asked.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for asked in topic.partitions
        ],
    )


def _check_epochs(
    request: OffsetForLeaderEpochRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    # Brokers may ask about every topic.
    if access.allows_on_cluster(Operation.CLUSTER_ACTION):
        return PASS
    return _epochs.check(request, access, exchange, resources)


_offsets = on_each_topic(Operation.DESCRIBE, "topics", lambda topic: topic.name, "topics", _denied_offsets)
_epochs = on_each_topic(Operation.DESCRIBE, "topics", lambda topic: topic.topic, "topics", _denied_epochs)
REQUESTS = (
    Declaration(ListOffsetsRequest, list_offsets, _offsets),
    Declaration(
        OffsetForLeaderEpochRequest,
        offset_for_leader_epoch,
        Guard(_check_epochs, *_epochs.acls, Acl(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)),
    ),
)
