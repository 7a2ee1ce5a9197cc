"""CreateTopics, DeleteTopics and CreatePartitions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from broker.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from broker.protocol.wire_types import ZERO_UUID
from broker.server.config_rows import topic_rows
from broker.server.declaration import FEWER_ENTRIES, Declaration, Slicing
from broker.server.guards import DENIALS, Acl, in_handler
from broker.server.handlers.alter_configs import check_topic_configs
from broker.server.topic_names import NameIndex, name_error
from broker.storage import SHARE_STATE_TOPIC

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.declaration import SliceHandler
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources
    from broker.server.throttle import Mutations
    from broker.storage import Topic

# Like Kafka's limit on the records that one administrative request may write.
MAX_PARTITIONS_PER_REQUEST = 10_000
DELETION_DISABLED_SINCE = 3
# Since these versions a topic that exceeds the quota of its sender is refused (KIP-599).
CREATION_QUOTA_SINCE, DELETION_QUOTA_SINCE, PARTITIONS_QUOTA_SINCE = 6, 5, 3


class _Refused(Exception):
    """Leave one topic unchanged; its row gets the code and the message."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.meaning)
        self.code = code


def create_topics(request: CreateTopicsRequest, exchange: Exchange, resources: Resources) -> SliceHandler:
    return _Creation(request, resources, exchange).run


class _Creation:
    """One CreateTopics request; its limit of partitions and its duplicate names span all slices."""

    def __init__(self, request: CreateTopicsRequest, resources: Resources, exchange: Exchange) -> None:
        self._resources = resources
        self._access = resources.access(exchange.connection)
        self._mutations = resources.throttle.mutations(exchange, CREATION_QUOTA_SINCE)
        self._only_validate = request.validate_only
        self._times_named = Counter(topic.name for topic in request.topics)
        self._described = _Described(resources)
        self._partitions = 0

    def run(self, part: CreateTopicsRequest, answerable: Answerable) -> CreateTopicsResponse:
        # Other clients may have created and deleted topics since the last slice.
        names = NameIndex(self._resources.log.topics)
        rows = [self._create(asked, names) for asked in part.topics]
        return CreateTopicsResponse(topics=rows, throttle_time_ms=self._mutations.throttle_ms)

    def _create(self, asked: CreateTopicsRequest.Topic, names: NameIndex) -> CreateTopicsResponse.Topic:
        topic = None
        try:
            if self._times_named[asked.name] > 1:
                raise _Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if not self._may_create(asked.name):
                raise _Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            count = _partition_count(asked, names, self._resources)
            configs = _checked_configs(asked)
            self._partitions += count
            _check_limit(self._partitions)
            _charge(self._mutations, count)
            if not self._only_validate:
                topic = self._resources.log.create_topic(asked.name, count, configs)
                names.add(asked.name)
        except _Refused as refused:
            return CreateTopicsResponse.Topic(
                name=asked.name, error_code=refused.code, error_message=str(refused), configs=[]
            )
        row = CreateTopicsResponse.Topic(
            name=asked.name, topic_id=topic.topic_id if topic is not None else ZERO_UUID, configs=[]
        )
        if self._access.allows(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, asked.name):
            row.num_partitions, row.replication_factor = count, 1
            row.configs = self._described.configs(configs)
        else:
            row.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return row

    def _may_create(self, name: str) -> bool:
        access = self._access
        return access.allows_on_cluster(Operation.CREATE) or access.allows(Operation.CREATE, ResourceType.TOPIC, name)


def _charge(mutations: Mutations, partitions: int) -> None:
    if not mutations.allow(partitions):
        raise _Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED)


def _check_limit(partitions: int) -> None:
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        raise _Refused(
            ErrorCode.POLICY_VIOLATION, f"A request may create at most {MAX_PARTITIONS_PER_REQUEST} partitions."
        )


def _partition_count(asked: CreateTopicsRequest.Topic, names: NameIndex, resources: Resources) -> int:
    """The number of partitions of a new topic. Raises _Refused if it cannot be created."""
    topics, node_id = resources.log.topics, resources.node_id
    invalid = name_error(asked.name)
    if invalid is not None:
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
    if asked.name in topics:
        raise _Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{asked.name}' already exists.")
    if resources.log.is_reserved(asked.name):
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{asked.name}' is internal to the broker.")
    same = names.collision(asked.name)
    if same is not None:
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{asked.name}' collides with topic '{same}'.")
    if asked.assignments:
        return _assigned_count(asked, node_id)
    if asked.replication_factor == 0 or asked.replication_factor < -1:
        raise _Refused(ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor must be 1, or -1 for the default.")
    if asked.num_partitions == 0 or asked.num_partitions < -1:
        raise _Refused(
            ErrorCode.INVALID_PARTITIONS, "The number of partitions must be positive, or -1 for the default."
        )
    if asked.replication_factor > 1:
        raise _Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"A replication factor of {asked.replication_factor} cannot be reached: there is one broker.",
        )
    return resources.config.num_partitions if asked.num_partitions == -1 else asked.num_partitions


def _assigned_count(asked: CreateTopicsRequest.Topic, node_id: int) -> int:
    if asked.replication_factor != -1 or asked.num_partitions != -1:
        raise _Refused(
            ErrorCode.INVALID_REQUEST,
            "With a manual assignment, number of partitions and replication factor must be -1.",
        )
    indexes = [assignment.partition_index for assignment in asked.assignments]
    if len(set(indexes)) < len(indexes):
        raise _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned twice.")
    for assignment in asked.assignments:
        _check_replicas(assignment.broker_ids, node_id)
    if set(indexes) != set(range(len(indexes))):
        raise _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions must be numbered from 0 without gaps.")
    return len(indexes)


def _check_replicas(broker_ids: list[int], node_id: int) -> None:
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not broker_ids:
        raise _Refused(code, "The replicas of a partition cannot be an empty list.")
    unknown = [broker_id for broker_id in broker_ids if broker_id != node_id]
    if unknown:
        raise _Refused(code, f"Broker {unknown[0]} is not there.")
    if len(broker_ids) > 1:
        raise _Refused(code, f"Broker {node_id} is named twice for a partition.")


def _checked_configs(asked: CreateTopicsRequest.Topic) -> dict[str, str]:
    nulls = [config.name for config in asked.configs if config.value is None]
    if nulls:
        raise _Refused(ErrorCode.INVALID_CONFIG, f"Topic configs cannot be null: {','.join(nulls)}")
    configs = {config.name: config.value for config in asked.configs if config.value is not None}
    problem = check_topic_configs(configs)
    if problem is not None:
        raise _Refused(ErrorCode.INVALID_CONFIG, problem)
    return configs


class _Described:
    """The effective configs of new topics; most topics of a request share them."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._last: dict[str, str] | None = None
        self._rows: list[CreateTopicsResponse.Config] = []

    def configs(self, given: dict[str, str]) -> list[CreateTopicsResponse.Config]:
        if self._last != given:
            self._last = given
            self._rows = [
                CreateTopicsResponse.Config(
                    name=row.name,
                    value=row.value,
                    read_only=row.read_only,
                    config_source=row.source,
                    is_sensitive=False,
                )
                for row in topic_rows(given, self._resources)
            ]
        return self._rows


def delete_topics(request: DeleteTopicsRequest, exchange: Exchange, resources: Resources) -> SliceHandler:
    request.topics += [DeleteTopicsRequest.Topic(name=name, topic_id=ZERO_UUID) for name in request.topic_names]
    times_named = Counter(map(_name_and_id, request.topics))
    access = resources.access(exchange.connection)
    mutations = resources.throttle.mutations(exchange, DELETION_QUOTA_SINCE)

    def run(part: DeleteTopicsRequest, answerable: Answerable) -> DeleteTopicsResponse:
        rows = list(map(delete, part.topics))
        return DeleteTopicsResponse(responses=rows, throttle_time_ms=mutations.throttle_ms)

    def delete(asked: DeleteTopicsRequest.Topic) -> DeleteTopicsResponse.Response:
        row = DeleteTopicsResponse.Response(name=asked.name, topic_id=asked.topic_id)
        try:
            if not resources.config.delete_topic_enable:
                old = exchange.version < DELETION_DISABLED_SINCE
                raise _Refused(ErrorCode.INVALID_REQUEST if old else ErrorCode.TOPIC_DELETION_DISABLED)
            topic = _to_delete(row, times_named[_name_and_id(asked)], access, resources)
            row.name, row.topic_id = topic.name, topic.topic_id
            _charge(mutations, topic.partition_count)
            _delete(topic, resources)
        except _Refused as refused:
            row.error_code, row.error_message = refused.code, str(refused)
        return row

    return run


def _to_delete(row: DeleteTopicsResponse.Response, times_named: int, access: Access, resources: Resources) -> Topic:
    """The topic of a row. Raises _Refused if it cannot be deleted."""
    name, topic_id = row.name, row.topic_id
    if (name is None) == (topic_id == ZERO_UUID):
        raise _Refused(ErrorCode.INVALID_REQUEST, "Name a topic either by its name or by its id.")
    if times_named > 1:
        raise _Refused(ErrorCode.INVALID_REQUEST, "A topic is named twice.")
    topic = resources.log.topic_by_id(topic_id) if name is None else resources.log.topics.get(name)
    if not access.allows_on_cluster(Operation.DELETE):
        _check_deletable(row, topic, access)
    if topic is None:
        raise _Refused(ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.internal:
        # It holds the groups' offsets; without it there would be no coordinator.
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{topic.name}' is internal to the broker.")
    return topic


def _check_deletable(row: DeleteTopicsResponse.Response, topic: Topic | None, access: Access) -> None:
    """Raises _Refused. Whether a topic exists stays hidden from a client that may not describe it, and so does its name."""
    by_name = row.name is not None
    name = row.name if topic is None else topic.name
    if name is None:
        return
    is_visible = access.allows(Operation.DESCRIBE, ResourceType.TOPIC, name)
    is_kept = topic is not None and not access.allows(Operation.DELETE, ResourceType.TOPIC, name)
    if is_kept or (by_name and not is_visible):
        row.name = name if is_visible else row.name
        raise _Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, DENIALS[ErrorCode.TOPIC_AUTHORIZATION_FAILED])


def _delete(topic: Topic, resources: Resources) -> None:
    resources.log.delete_topic(topic.name)
    resources.groups.topic_deleted(topic.name)
    if SHARE_STATE_TOPIC in resources.log.topics:
        resources.shares.topic_deleted(topic.topic_id)
    resources.waiters.topic_gone(topic.name)


def create_partitions(
    request: CreatePartitionsRequest, exchange: Exchange, resources: Resources
) -> CreatePartitionsResponse:
    times_named = Counter(topic.name for topic in request.topics)
    alterable = resources.access(exchange.connection).of(Operation.ALTER, ResourceType.TOPIC)
    mutations = resources.throttle.mutations(exchange, PARTITIONS_QUOTA_SINCE)
    created = 0
    rows = {}
    for asked in request.topics:
        row = rows[asked.name] = CreatePartitionsResponse.Result(name=asked.name)
        try:
            if times_named[asked.name] > 1:
                raise _Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if not alterable[asked.name]:
                row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                continue
            new = _new_partitions(asked, resources)
            created += new
            _check_limit(created)
            _charge(mutations, new)
            if not request.validate_only:
                resources.log.add_partitions(asked.name, asked.count)
        except _Refused as refused:
            row.error_code, row.error_message = refused.code, str(refused)
    return CreatePartitionsResponse(results=list(rows.values()), throttle_time_ms=mutations.throttle_ms)


def _new_partitions(asked: CreatePartitionsRequest.Topic, resources: Resources) -> int:
    topic = resources.log.topics.get(asked.name)
    if topic is None:
        raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = topic.partition_count
    if asked.count <= present:
        raise _Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic '{asked.name}' has {present} partition(s); {asked.count} would not be an increase.",
        )
    if topic.internal:
        # The partition of a group depends on their number, so it is fixed once there are groups.
        raise _Refused(ErrorCode.INVALID_PARTITIONS, f"Topic '{asked.name}' has a fixed number of partitions.")
    if asked.assignments is not None:
        if len(asked.assignments) != asked.count - present:
            raise _Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{asked.count - present} partition(s) are to be added, but {len(asked.assignments)} assigned.",
            )
        for assignment in asked.assignments:
            _check_replicas(assignment.broker_ids, resources.node_id)
    return asked.count - present


def _name(asked: CreateTopicsRequest.Topic) -> str:
    return asked.name


def _name_and_id(asked: DeleteTopicsRequest.Topic) -> tuple[str | None, bytes]:
    return asked.name, asked.topic_id


# Each new topic is answered with some forty configs; each deletion reads the keys of all committed offsets.
CREATION = Slicing("topics", "topics", _name, 20)
DELETION = Slicing("topics", "responses", _name_and_id, 1)
REQUESTS = (
    Declaration(
        CreateTopicsRequest,
        create_topics,
        in_handler(
            Acl(Operation.CREATE, ResourceType.CLUSTER),
            Acl(Operation.CREATE, ResourceType.TOPIC),
            Acl(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
        ),
        CREATION,
        max_entries=FEWER_ENTRIES,
    ),
    Declaration(
        DeleteTopicsRequest,
        delete_topics,
        in_handler(
            Acl(Operation.DELETE, ResourceType.TOPIC),
            Acl(Operation.DESCRIBE, ResourceType.TOPIC),
            Acl(Operation.DELETE, ResourceType.CLUSTER),
        ),
        DELETION,
        max_entries=FEWER_ENTRIES,
    ),
    Declaration(
        CreatePartitionsRequest,
        create_partitions,
        in_handler(Acl(Operation.ALTER, ResourceType.TOPIC)),
        max_entries=FEWER_ENTRIES,
    ),
)
