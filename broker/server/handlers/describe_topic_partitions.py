"""DescribeTopicPartitions: topics sorted by name, a limited number of partitions per answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from broker.protocol.wire_types import ZERO_UUID
from broker.server.declaration import Declaration
from broker.server.exchange import RequestRefused
from broker.server.guards import Acl, in_handler, split
from broker.server.handlers.authorized_operations import topic_operations
from broker.server.topic_names import name_error
from broker.storage import LEADER_EPOCH

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources
    from broker.storage import Topic


def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, exchange: Exchange, resources: Resources
) -> DescribeTopicPartitionsResponse:
    log, cursor, access = resources.log, request.cursor, resources.access(exchange.connection)
    names = sorted({topic.name for topic in request.topics} or log.topics)
    first_index = 0
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names):
            # The response has no field for an error of the whole request.
            raise RequestRefused("DescribeTopicPartitions: the cursor does not fit the topics")
    names, denied = split(names, access.of(Operation.DESCRIBE, ResourceType.TOPIC).__getitem__)
    if cursor is not None and names and names[0] == cursor.topic_name:
        first_index = cursor.partition_index
    limit = max(1, min(resources.config.max_request_partition_size_limit, request.response_partition_limit))
    response = DescribeTopicPartitionsResponse(topics=[])
    for name in names:
        if limit == 0:
            response.next_cursor = _cursor(name, 0)
            break
        topic = log.topics.get(name)
        if topic is None:
            response.topics.append(_missing(name, access))
            continue
        end = min(topic.partition_count, first_index + limit)
        response.topics.append(_row(topic, range(first_index, end), resources.node_id, access))
        limit -= max(0, end - first_index)
        if end < topic.partition_count:
            response.next_cursor = _cursor(name, end)
            break
        first_index = 0
    if request.topics:
        response.topics += map(_denied, denied)
    return response


def _cursor(topic: str, partition: int) -> DescribeTopicPartitionsResponse.Cursor:
    return DescribeTopicPartitionsResponse.Cursor(topic_name=topic, partition_index=partition)


def _denied(name: str) -> DescribeTopicPartitionsResponse.Topic:
    return DescribeTopicPartitionsResponse.Topic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, topic_id=ZERO_UUID, partitions=[]
    )


def _missing(name: str, access: Access) -> DescribeTopicPartitionsResponse.Topic:
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if name_error(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeTopicPartitionsResponse.Topic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        partitions=[],
        topic_authorized_operations=topic_operations(access, name),
    )


def _row(topic: Topic, indexes: range, node_id: int, access: Access) -> DescribeTopicPartitionsResponse.Topic:
    return DescribeTopicPartitionsResponse.Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=[
            DescribeTopicPartitionsResponse.Partition(
                partition_index=index,
                leader_id=node_id,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=[node_id],
                isr_nodes=[node_id],
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=[],
            )
            for index in indexes
        ],
        topic_authorized_operations=topic_operations(access, topic.name),
    )


REQUESTS = (
    Declaration(
        DescribeTopicPartitionsRequest,
        describe_topic_partitions,
        in_handler(Acl(Operation.DESCRIBE, ResourceType.TOPIC)),
    ),
)
