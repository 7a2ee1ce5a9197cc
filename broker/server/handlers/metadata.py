"""Metadata: brokers, topics and their partitions; a missing topic is made at once where that is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.wire_types import ZERO_UUID
from broker.server.handlers.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from broker.server.resources import LEADER_EPOCH
from broker.server.topic_names import collision, name_error

if TYPE_CHECKING:
    from broker.log import Topic
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

TOPIC_IDS_SINCE = 12


def metadata(request: MetadataRequest, exchange: Exchange, resources: Resources) -> MetadataResponse:
    node, config = resources.node, resources.config
    # In v0 no topic stands for every topic; later versions have null for that.
    if request.topics is None or (exchange.version == 0 and not request.topics):
        rows = [_row(topic, resources) for _, topic in sorted(resources.log.topics.items())]
    else:
        create = config.auto_create_topics_enable and request.allow_auto_topic_creation
        rows = [_asked(topic, exchange.version, create, resources) for topic in _once(request.topics)]
    if request.include_topic_authorized_operations:
        for row in rows:
            row.topic_authorized_operations = TOPIC_OPERATIONS
    return MetadataResponse(
        brokers=[
            MetadataResponse.Broker(node_id=node.node_id, host=node.host, port=node.port, rack=config.broker_rack)
        ],
        cluster_id=resources.log.cluster_id,
        controller_id=node.node_id,
        topics=rows,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _once(topics: list[MetadataRequest.Topic]) -> list[MetadataRequest.Topic]:
    return list({(topic.topic_id, topic.name): topic for topic in topics}.values())


def _asked(asked: MetadataRequest.Topic, version: int, create: bool, resources: Resources) -> MetadataResponse.Topic:
    if asked.name is None or asked.topic_id != ZERO_UUID:
        if version < TOPIC_IDS_SINCE:
            return _error(ErrorCode.INVALID_REQUEST, asked.name or "", asked.topic_id)
        by_id = resources.log.topic_by_id(asked.topic_id)
        return _row(by_id, resources) if by_id else _error(ErrorCode.UNKNOWN_TOPIC_ID, None, asked.topic_id)
    topics = resources.log.topics
    topic = topics.get(asked.name)
    if topic is None:
        if name_error(asked.name) or (create and collision(asked.name, topics)):
            return _error(ErrorCode.INVALID_TOPIC_EXCEPTION, asked.name)
        if not create:
            return _error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, asked.name)
        topic = resources.log.create_topic(asked.name, resources.config.num_partitions, {})
    return _row(topic, resources)


def _error(code: ErrorCode, name: str | None, topic_id: bytes = ZERO_UUID) -> MetadataResponse.Topic:
    return MetadataResponse.Topic(error_code=code, name=name, topic_id=topic_id, partitions=[])


def _row(topic: Topic, resources: Resources) -> MetadataResponse.Topic:
    node_id = resources.node.node_id
    return MetadataResponse.Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=[
            MetadataResponse.Partition(
                partition_index=index,
                leader_id=node_id,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=[node_id],
                isr_nodes=[node_id],
            )
            for index in range(topic.partition_count)
        ],
    )
