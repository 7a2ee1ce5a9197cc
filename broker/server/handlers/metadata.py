"""Metadata: brokers, topics and their partitions; creates missing topics where that is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.wire_types import ZERO_UUID
from broker.server.declaration import Declaration
from broker.server.guards import Acl, in_handler
from broker.server.handlers.authorized_operations import cluster_operations, topic_operations
from broker.server.topic_names import NameIndex, name_error
from broker.storage import LEADER_EPOCH

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources
    from broker.storage import Topic

TOPIC_IDS_SINCE = 12
# Partitions that one request may create before other clients get their turn. Clients retry the topics that are missing.
MAX_NEW_PARTITIONS = 1_000


def metadata(request: MetadataRequest, exchange: Exchange, resources: Resources) -> MetadataResponse:
    config, address = resources.config, exchange.connection.session.listener.advertised
    access = resources.access(exchange.connection)
    visible = access.of(Operation.DESCRIBE, ResourceType.TOPIC)
    # In v0 an empty list means every topic; later versions use null.
    if request.topics is None or (exchange.version == 0 and not request.topics):
        rows = [_row(topic, resources) for name, topic in sorted(resources.log.topics.items()) if visible[name]]
    else:
        create = config.auto_create_topics_enable and request.allow_auto_topic_creation
        creation = _Creation(resources, access) if create else None
        rows = [_named(topic, exchange.version, creation, visible, resources) for topic in _once(request.topics)]
    if request.include_topic_authorized_operations:
        for row in rows:
            if row.name is not None and row.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                row.topic_authorized_operations = topic_operations(access, row.name)
    return MetadataResponse(
        brokers=[
            MetadataResponse.Broker(
                node_id=resources.node_id, host=address.host, port=address.port, rack=config.broker_rack
            )
        ],
        cluster_id=resources.log.cluster_id,
        controller_id=resources.node_id,
        topics=rows,
        cluster_authorized_operations=cluster_operations(
            access, is_asked=request.include_cluster_authorized_operations
        ),
    )


def _once(topics: list[MetadataRequest.Topic]) -> list[MetadataRequest.Topic]:
    return list({(topic.topic_id, topic.name): topic for topic in topics}.values())


class _Creation:
    """Creates the missing topics of one request, up to a limit; the first topic may exceed it."""

    def __init__(self, resources: Resources, access: Access) -> None:
        self._log, self._each = resources.log, resources.config.num_partitions
        self._access = access
        self._names = NameIndex(self._log.topics)
        self._created = 0

    def allows(self, name: str) -> bool:
        """Whether the client may create this topic."""
        access = self._access
        return access.allows_on_cluster(Operation.CREATE) or access.allows(Operation.CREATE, ResourceType.TOPIC, name)

    def create(self, name: str) -> Topic | ErrorCode:
        if self._log.is_reserved(name) or self._names.collision(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if self._created and self._created + self._each > MAX_NEW_PARTITIONS:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic = self._log.create_topic(name, self._each, {})
        self._created += self._each
        self._names.add(name)
        return topic


def _named(
    asked: MetadataRequest.Topic,
    version: int,
    creation: _Creation | None,
    visible: Mapping[str, bool],
    resources: Resources,
) -> MetadataResponse.Topic:
    """A topic that the client may not describe is answered alike whether it exists or not."""
    if asked.name is None or asked.topic_id != ZERO_UUID:
        if version < TOPIC_IDS_SINCE:
            return _error(ErrorCode.INVALID_REQUEST, asked.name or "", asked.topic_id)
        by_id = resources.log.topic_by_id(asked.topic_id)
        if by_id is None or not visible[by_id.name]:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return _error(code, None, asked.topic_id)
        return _row(by_id, resources)
    if not visible[asked.name]:
        return _error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, asked.name)
    topic = resources.log.topics.get(asked.name)
    if topic is not None:
        return _row(topic, resources)
    if creation is not None and not creation.allows(asked.name):
        return _error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, asked.name)
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
        in_handler(
            Acl(Operation.DESCRIBE, ResourceType.TOPIC),
            Acl(Operation.CREATE, ResourceType.TOPIC),
            Acl(Operation.CREATE, ResourceType.CLUSTER),
            # For the operations that it may perform.
            Acl(Operation.DESCRIBE, ResourceType.CLUSTER),
        ),
    ),
)
