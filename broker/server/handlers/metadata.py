"""Metadata: brokers, topics and their partitions; creates missing topics where that is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.wire_types import ZERO_UUID
from broker.server.declaration import Declaration
from broker.server.guards import Acl, Guard, unwritten
from broker.server.handlers.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from broker.server.topic_names import NameIndex, name_error
from broker.storage import LEADER_EPOCH

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources
    from broker.storage import Topic

TOPIC_IDS_SINCE = 12
# Partitions that one request may create before other clients get their turn. Clients retry the topics that are missing.
MAX_NEW_PARTITIONS = 1_000


def metadata(request: MetadataRequest, exchange: Exchange, resources: Resources) -> MetadataResponse:
    config, address = resources.config, exchange.connection.session.listener.advertised
    # In v0 an empty list means every topic; later versions use null.
    if request.topics is None or (exchange.version == 0 and not request.topics):
        rows = [_row(topic, resources) for _, topic in sorted(resources.log.topics.items())]
    else:
        create = config.auto_create_topics_enable and request.allow_auto_topic_creation
        creation = _Creation(resources) if create else None
        rows = [_named(topic, exchange.version, creation, resources) for topic in _once(request.topics)]
    if request.include_topic_authorized_operations:
        for row in rows:
            row.topic_authorized_operations = TOPIC_OPERATIONS
    return MetadataResponse(
        brokers=[
            MetadataResponse.Broker(
                node_id=resources.node_id, host=address.host, port=address.port, rack=config.broker_rack
            )
        ],
        cluster_id=resources.log.cluster_id,
        controller_id=resources.node_id,
        topics=rows,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _once(topics: list[MetadataRequest.Topic]) -> list[MetadataRequest.Topic]:
    return list({(topic.topic_id, topic.name): topic for topic in topics}.values())


class _Creation:
    """Creates the missing topics of one request, up to a limit; the first topic may exceed it."""

    def __init__(self, resources: Resources) -> None:
        self._log, self._each = resources.log, resources.config.num_partitions
        self._names = NameIndex(self._log.topics)
        self._created = 0

    def create(self, name: str) -> Topic | ErrorCode:
        if self._names.collision(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if self._created and self._created + self._each > MAX_NEW_PARTITIONS:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic = self._log.create_topic(name, self._each, {})
        self._created += self._each
        self._names.add(name)
        return topic


def _named(
    asked: MetadataRequest.Topic, version: int, creation: _Creation | None, resources: Resources
) -> MetadataResponse.Topic:
    if asked.name is None or asked.topic_id != ZERO_UUID:
        if version < TOPIC_IDS_SINCE:
            return _error(ErrorCode.INVALID_REQUEST, asked.name or "", asked.topic_id)
        by_id = resources.log.topic_by_id(asked.topic_id)
        return _row(by_id, resources) if by_id else _error(ErrorCode.UNKNOWN_TOPIC_ID, None, asked.topic_id)
    topic = resources.log.topics.get(asked.name)
    if topic is not None:
        return _row(topic, resources)
    if name_error(asked.name):
        return _error(ErrorCode.INVALID_TOPIC_EXCEPTION, asked.name)
    created = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if creation is None else creation.create(asked.name)
    return _error(created, asked.name) if isinstance(created, ErrorCode) else _row(created, resources)


def _error(code: ErrorCode, name: str | None, topic_id: bytes = ZERO_UUID) -> MetadataResponse.Topic:
    return MetadataResponse.Topic(error_code=code, name=name, topic_id=topic_id, partitions=[])


def _row(topic: Topic, resources: Resources) -> MetadataResponse.Topic:
    node_id = resources.node_id
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


REQUESTS = (
    Declaration(
        MetadataRequest,
        metadata,
        Guard(
            unwritten,
            Acl(Operation.DESCRIBE, ResourceType.TOPIC),
            Acl(Operation.CREATE, ResourceType.TOPIC),
            Acl(Operation.CREATE, ResourceType.CLUSTER),
        ),
    ),
)
