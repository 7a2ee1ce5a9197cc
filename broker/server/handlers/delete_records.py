"""DeleteRecords: move the log start offset of a partition forward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from broker.server.declaration import Declaration
from broker.server.guards import on_each_topic

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

HIGH_WATERMARK = -1


def delete_records(request: DeleteRecordsRequest, exchange: Exchange, resources: Resources) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponse.Topic(
                name=topic.name,
                partitions=[_row(asked, _delete(topic.name, asked, resources)) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _delete(topic: str, asked: DeleteRecordsRequest.Partition, resources: Resources) -> int | ErrorCode:
    found = resources.log.topics.get(topic)
    log = resources.log.partition(topic, asked.partition_index)
    if found is None or log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if found.internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return log.delete_records(log.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset)


def _row(asked: DeleteRecordsRequest.Partition, found: int | ErrorCode) -> DeleteRecordsResponse.Partition:
    if isinstance(found, ErrorCode):
        return DeleteRecordsResponse.Partition(
            partition_index=asked.partition_index, low_watermark=-1, error_code=found
        )
    return DeleteRecordsResponse.Partition(partition_index=asked.partition_index, low_watermark=found)


def _denied(topic: DeleteRecordsRequest.Topic) -> DeleteRecordsResponse.Topic:
    return DeleteRecordsResponse.Topic(
        name=topic.name,
        partitions=[_row(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for asked in topic.partitions],
    )


_topics = on_each_topic(Operation.DELETE, "topics", lambda topic: topic.name, "topics", _denied)
REQUESTS = (Declaration(DeleteRecordsRequest, delete_records, _topics),)
