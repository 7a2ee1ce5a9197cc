"""The cases of the matrix: requests, and the ACLs that each needs.

Every API key that the broker serves has at least one case, or the matrix fails. A case names resources of which its `needs`
cover only some, so that its answers are partial. The requests leave the cluster as it is, even if they are allowed: they name
what does not exist, only validate, or are refused for another reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from broker.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from broker.protocol.api_keys import APIS
from broker.protocol.wire_types import Message

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
# Topics and groups that exist. Principals of a case are allowed something on "mine" at most.
MINE, THEIRS = "mine", "theirs"
# Topics and groups that do not.
MY_GHOST, THEIR_GHOST = "mine-ghost", "theirs-ghost"
# A topic that those who may do so delete.
DOOMED = "doomed"
# Transactional ids with an ongoing transaction.
TRANSACTION, THEIR_TRANSACTION = "mine-transaction", "theirs-transaction"
# A producer id that none of them has.
NO_PRODUCER = 10**9
NO_MEMBER = "no-such-member"
# Of a share group, whose members have UUIDs.
NO_SHARE_MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


class Need(NamedTuple):
    """An operation on one resource."""

    operation: Operation
    kind: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.operation.name} {self.kind.name} {self.name}"


class World(NamedTuple):
    """What requests name that differs between clusters."""

    topic_ids: dict[str, bytes]
    node_id: int
    records: bytes
    transactional_records: bytes


@dataclass(frozen=True)
class Case:
    """`build` makes the request in a version; `make` gets its message class and its nested structs from it."""

    key: int
    name: str
    build: Callable[[type[Any], int, World], Message]
    needs: tuple[Need, ...] = ()
    versions: range | None = None
    # Kafka allows what this broker cannot do yet: only refusals are compared.
    only_refusals: bool = False
    # Nobody with other ACLs sends it: it would change the cluster.
    only_exact: bool = False
    # Not part of Kafka.
    is_native: bool = False

    @property
    def message(self) -> type[Any]:
        return APIS[self.key].request

    def all_versions(self) -> range:
        served = APIS[self.key].versions
        if self.versions is None:
            return served
        return range(max(served.start, self.versions.start), min(served.stop, self.versions.stop))

    def __str__(self) -> str:
        return f"{APIS[self.key].name} {self.name}".strip()


def on_topic(operation: Operation, name: str = MINE) -> Need:
    return Need(operation, TOPIC, name)


def on_group(operation: Operation, name: str = MINE) -> Need:
    return Need(operation, GROUP, name)


def on_cluster(operation: Operation) -> Need:
    return Need(operation, CLUSTER, CLUSTER_NAME)


def on_transaction(operation: Operation) -> Need:
    return Need(operation, ResourceType.TRANSACTIONAL_ID, TRANSACTION)


O = Operation  # noqa: E741  the tables below name it in each line
LATER = 2**15

# ---- records


def _produce(R: Any, version: int, world: World, transactional_id: str | None = None) -> Message:
    def topic(name: str) -> Any:
        records = world.transactional_records if transactional_id is not None else world.records
        rows = [R.Partition(index=0, records=records)]
        return R.Topic(name=name, topic_id=world.topic_ids.get(name, bytes(16)), partition_data=rows)

    names = [MINE, THEIRS] if version >= 13 else [MINE, THEIRS, MY_GHOST, THEIR_GHOST]
    return R(transactional_id=transactional_id, acks=1, timeout_ms=1000, topic_data=list(map(topic, names)))


def _fetch(R: Any, version: int, world: World, replica_id: int = -1) -> Message:
    def topic(name: str) -> Any:
        rows = [R.Partition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
        return R.Topic(topic=name, topic_id=world.topic_ids.get(name, b"\1" * 16), partitions=rows)

    return R(
        replica_id=replica_id,
        replica_state=R.ReplicaState(replica_id=replica_id) if version >= 15 and replica_id >= 0 else None,
        max_wait_ms=0,
        min_bytes=0,
        topics=[topic(MINE), topic(THEIRS), topic(MY_GHOST)],
    )


def _list_offsets(R: Any, version: int, world: World) -> Message:
    rows = [R.Partition(partition_index=0, timestamp=-1)]
    return R(topics=[R.Topic(name=name, partitions=rows) for name in (MINE, THEIRS, MY_GHOST, THEIR_GHOST)])


def _epochs(R: Any, version: int, world: World) -> Message:
    rows = [R.Partition(partition=0, leader_epoch=0)]
    return R(topics=[R.Topic(topic=name, partitions=rows) for name in (MINE, THEIRS, THEIR_GHOST)])


def _delete_records(R: Any, version: int, world: World) -> Message:
    rows = [R.Partition(partition_index=0, offset=0)]
    return R(topics=[R.Topic(name=name, partitions=rows) for name in (MINE, THEIRS, THEIR_GHOST)], timeout_ms=1000)


def _producer_id(R: Any, version: int, world: World) -> Message:
    return R(transactional_id=None, transaction_timeout_ms=1000)


# ---- transactions


def _transactional_id(R: Any, version: int, world: World) -> Message:
    return R(transactional_id=TRANSACTION, transaction_timeout_ms=-1)


def _add_partitions(R: Any, version: int, world: World, *names: str) -> Message:
    topics = [R.Topic(name=name, partitions=[0]) for name in names]
    if version >= 4:
        row = R.Transaction(transactional_id=TRANSACTION, producer_id=NO_PRODUCER, producer_epoch=0, topics=topics)
        return R(transactions=[row])
    return R(
        v3_and_below_transactional_id=TRANSACTION, v3_and_below_producer_id=NO_PRODUCER, v3_and_below_topics=topics
    )


def _add_offsets(R: Any, version: int, world: World) -> Message:
    return R(transactional_id=TRANSACTION, producer_id=NO_PRODUCER, producer_epoch=0, group_id=MINE)


def _end(R: Any, version: int, world: World) -> Message:
    return R(transactional_id=TRANSACTION, producer_id=NO_PRODUCER, producer_epoch=0, committed=True)


def _write_markers(R: Any, version: int, world: World) -> Message:
    topics = [R.Topic(name=name, partition_indexes=[0]) for name in (MY_GHOST, THEIR_GHOST)]
    made = {"producer_epoch": 0, "transaction_result": False, "coordinator_epoch": 0}
    return R(markers=[R.Marker(producer_id=NO_PRODUCER, topics=topics, **made)])


def _commit_in_transaction(R: Any, version: int, world: World) -> Message:
    rows = [R.Partition(partition_index=0, committed_offset=1, committed_metadata="")]
    topics = [R.Topic(name=name, partitions=rows) for name in (MINE, THEIRS, MY_GHOST, THEIR_GHOST)]
    return R(transactional_id=TRANSACTION, group_id=MINE, producer_id=NO_PRODUCER, producer_epoch=0, topics=topics)


def _describe_producers(R: Any, version: int, world: World) -> Message:
    names = (MINE, THEIRS, MY_GHOST, THEIR_GHOST, "theirs?")
    return R(topics=[R.Topic(name=name, partition_indexes=[0, 7]) for name in names])


def _describe_transactions(R: Any, version: int, world: World) -> Message:
    return R(transactional_ids=[TRANSACTION, THEIR_TRANSACTION, MY_GHOST])


def _list_transactions(R: Any, version: int, world: World) -> Message:
    return R(state_filters=[], producer_id_filters=[])


# ---- metadata


def _metadata(R: Any, version: int, world: World) -> Message:
    return R(
        topics=[R.Topic(name=name) for name in (MINE, THEIRS, *([THEIR_GHOST, MY_GHOST] if version >= 4 else []))],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )


def _all_metadata(R: Any, version: int, world: World) -> Message:
    return R(topics=None if version else [], include_topic_authorized_operations=True)


def _metadata_by_id(R: Any, version: int, world: World) -> Message:
    ids = [world.topic_ids[MINE], world.topic_ids[THEIRS], b"\1" * 16]
    return R(
        topics=[R.Topic(name=None, topic_id=topic_id) for topic_id in ids], include_topic_authorized_operations=True
    )


def _auto_creation(R: Any, version: int, world: World) -> Message:
    # An invalid name is refused only once it is allowed to create it.
    return R(topics=[R.Topic(name=name) for name in ("mine?", "theirs?", MINE)])


def _describe_topic_partitions(R: Any, version: int, world: World) -> Message:
    return R(topics=[R.Topic(name=name) for name in (MINE, THEIRS, MY_GHOST, THEIR_GHOST)])


def _find(R: Any, version: int, world: World, key_type: int, *keys: str) -> Message:
    return R(key=keys[0], key_type=key_type, coordinator_keys=list(keys))


# ---- groups


def _commit(R: Any, version: int, world: World) -> Message:
    rows = [R.Partition(partition_index=0, committed_offset=1, committed_metadata="")]
    return R(
        group_id=MINE, member_id="", topics=[R.Topic(name=name, partitions=rows) for name in (MINE, THEIRS, MY_GHOST)]
    )


def _offset_fetch(R: Any, version: int, world: World, names: tuple[str, ...] | None = (MINE, THEIRS)) -> Message:
    topics = None if names is None else [R.Topic(name=name, partition_indexes=[0, 1]) for name in names]
    if version < 8:
        return R(group_id=MINE, topics=topics)
    return R(groups=[R.Group(group_id=group_id, topics=topics) for group_id in (MINE, THEIRS)])


def _offset_delete(R: Any, version: int, world: World) -> Message:
    # Partition 7 does not exist.
    rows = [R.Partition(partition_index=7)]
    return R(group_id=MINE, topics=[R.Topic(name=name, partitions=rows) for name in (MINE, THEIRS)])


def _consumer_heartbeat(R: Any, version: int, world: World) -> Message:
    # The group is none of consumers.
    return R(group_id=MINE, member_id=NO_MEMBER, member_epoch=1, subscribed_topic_names=[MINE])


def _describe_consumer_groups(R: Any, version: int, world: World) -> Message:
    return R(group_ids=[MINE, THEIRS, MY_GHOST], include_authorized_operations=True)


def _share_fetch(R: Any, version: int, world: World) -> Message:
    # A session without partitions that may be read.
    rows = [R.Partition(partition_index=0, acknowledgement_batches=[])]
    limits = {"max_wait_ms": 0, "min_bytes": 0, "max_records": 1, "batch_size": 1}
    asked = [R.Topic(topic_id=world.topic_ids[THEIRS], partitions=rows)]
    return R(group_id=MINE, member_id=NO_SHARE_MEMBER, share_session_epoch=0, topics=asked, **limits)


def _share_acknowledge(R: Any, version: int, world: World) -> Message:
    # There is no such session.
    return R(group_id=MINE, member_id=NO_SHARE_MEMBER, share_session_epoch=5, topics=[])


def _share_heartbeat(R: Any, version: int, world: World) -> Message:
    # The group is none of the share protocol.
    return R(group_id=MINE, member_id=NO_MEMBER, member_epoch=1, subscribed_topic_names=[MINE])


def _share_offsets(R: Any, version: int, world: World, of_all: bool) -> Message:
    topics = None if of_all else [R.Topic(topic_name=name, partitions=[0]) for name in (MINE, THEIRS, MY_GHOST)]
    return R(groups=[R.Group(group_id=group_id, topics=topics) for group_id in (MINE, THEIRS, MY_GHOST)])


def _alter_share_offsets(R: Any, version: int, world: World) -> Message:
    # Kafka 4.1.0 loses topics that exist and may be read.
    rows = [R.Partition(partition_index=0, start_offset=1)]
    return R(group_id=MINE, topics=[R.Topic(topic_name=name, partitions=rows) for name in (MY_GHOST, THEIR_GHOST)])


def _delete_share_offsets(R: Any, version: int, world: World) -> Message:
    # The group is none of the share protocol.
    return R(group_id=MINE, topics=[R.Topic(topic_name=name) for name in (MINE, MY_GHOST)])


def _join(R: Any, version: int, world: World) -> Message:
    # The session timeout is below the minimum.
    protocols = [R.Protocol(name="range", metadata=b"")]
    return R(group_id=MINE, session_timeout_ms=1, member_id="", protocol_type="consumer", protocols=protocols)


def _sync(R: Any, version: int, world: World) -> Message:
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    return R(group_id=MINE, generation_id=1, member_id=NO_MEMBER, assignments=[], **named)


def _sync_without_protocol(R: Any, version: int, world: World) -> Message:
    return R(group_id=MINE, generation_id=1, member_id=NO_MEMBER, assignments=[])


def _heartbeat(R: Any, version: int, world: World) -> Message:
    return R(group_id=MINE, generation_id=1, member_id=NO_MEMBER)


def _leave(R: Any, version: int, world: World) -> Message:
    return R(group_id=MINE, member_id=NO_MEMBER, members=[R.Member(member_id=NO_MEMBER)] if version >= 3 else [])


def _describe_groups(R: Any, version: int, world: World) -> Message:
    return R(groups=[MINE, THEIRS, MY_GHOST, THEIR_GHOST], include_authorized_operations=True)


def _groups(R: Any, version: int, world: World) -> Message:
    return R(groups=[MINE, THEIRS])


def _group_details(R: Any, version: int, world: World) -> Message:
    return R(groups=[MINE, THEIRS], include_commits=version >= 1)


def _trigger(R: Any, version: int, world: World) -> Message:
    return R(groups=[R.Group(group_id=name) for name in (MINE, THEIRS)])


def _delete_groups(R: Any, version: int, world: World) -> Message:
    return R(groups_names=[MY_GHOST, THEIR_GHOST])


# ---- topics and configs


def _create_topics(R: Any, version: int, world: World) -> Message:
    names = ["mine-new", "theirs-new", "mine-new?", "theirs-new?", THEIRS, "twice", "twice"]
    topics = [R.Topic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return R(topics=topics, validate_only=True, timeout_ms=10_000)


def _delete_topics(R: Any, version: int, world: World) -> Message:
    names = [MY_GHOST, THEIR_GHOST]
    return R(topics=[R.Topic(name=name) for name in names], topic_names=names, timeout_ms=10_000)


def _delete_by_id(R: Any, version: int, world: World) -> Message:
    ids = [world.topic_ids[DOOMED], b"\1" * 16]
    return R(topics=[R.Topic(topic_id=topic_id) for topic_id in ids], timeout_ms=10_000)


def _create_partitions(R: Any, version: int, world: World) -> Message:
    names = [MINE, THEIRS, MY_GHOST, THEIR_GHOST]
    return R(topics=[R.Topic(name=name, count=1) for name in names], timeout_ms=10_000, validate_only=True)


def _describe_configs(R: Any, version: int, world: World, kind: int, *names: str) -> Message:
    return R(resources=[R.Resource(resource_type=kind, resource_name=name) for name in names])


def _alter_configs(R: Any, version: int, world: World, kind: int, *names: str) -> Message:
    resources = [R.Resource(resource_type=kind, resource_name=name, configs=[]) for name in names]
    return R(resources=resources, validate_only=True)


def _null(R: Any, version: int, world: World) -> Message:
    configs = [R.Config(name="retention.ms", value=None)]
    resources = [R.Resource(resource_type=2, resource_name=name, configs=configs) for name in (MINE, THEIR_GHOST)]
    return R(resources=resources, validate_only=True)


def _wrong_broker(R: Any, version: int, world: World) -> Message:
    return _alter_configs(R, version, world, 4, str(world.node_id + 1))


def _log_dirs(R: Any, version: int, world: World) -> Message:
    return R(topics=[R.Topic(topic=MINE, partitions=[0])])


def _describe_cluster(R: Any, version: int, world: World) -> Message:
    return R(include_cluster_authorized_operations=True)


# ---- security


def _describe_acls(R: Any, version: int, world: World) -> Message:
    return R(
        resource_type_filter=TOPIC,
        resource_name_filter=MY_GHOST,
        principal_filter=None,
        host_filter=None,
        operation=O.ANY,
        permission_type=1,
    )


def _create_acls(R: Any, version: int, world: World) -> Message:
    # The cluster has another name.
    made = {"principal": "User:x", "host": "*", "operation": O.READ, "permission_type": 3}
    return R(creations=[R.Creation(resource_type=CLUSTER, resource_name=name, **made) for name in ("a", "b")])


def _delete_acls(R: Any, version: int, world: World) -> Message:
    chosen = R.Filter(
        resource_type_filter=TOPIC,
        resource_name_filter=MY_GHOST,
        principal_filter=None,
        host_filter=None,
        operation=O.ANY,
        permission_type=1,
    )
    return R(filters=[chosen, chosen])


def _describe_users(R: Any, version: int, world: World) -> Message:
    return R(users=[R.UserName(name="no-such-user"), R.UserName(name="nor-this")])


def _alter_users(R: Any, version: int, world: World) -> Message:
    return R(deletions=[R.Deletion(name=name, mechanism=1) for name in ("no-such-user", "nor-this")], upsertions=[])


def _describe_quotas(R: Any, version: int, world: World) -> Message:
    return R(components=[R.Component(entity_type="user", match_type=0, match="no-such-user")], strict=True)


def _alter_quotas(R: Any, version: int, world: World) -> Message:
    ops = [R.Op(key="producer_byte_rate", value=1000.0)]
    entries = [
        R.Entry(entity=[R.Entity(entity_type="user", entity_name=name)], ops=ops)
        for name in ("no-such-user", "nor-this")
    ]
    return R(entries=entries, validate_only=True)


def _update_features(R: Any, version: int, world: World) -> Message:
    updates = [R.Update(feature=name, max_version_level=1) for name in ("no-such-feature", "nor-this")]
    return R(feature_updates=updates)


def _list_configs(R: Any, version: int, world: World) -> Message:
    return R(resource_types=[16])


def _call(function: Callable[..., Message], *arguments: Any) -> Callable[[type[Any], int, World], Message]:
    return lambda R, version, world: function(R, version, world, *arguments)


READ_MINE, DESCRIBE_MINE = on_topic(O.READ), on_topic(O.DESCRIBE)
READ_GROUP, DESCRIBE_GROUP = on_group(O.READ), on_group(O.DESCRIBE)
GHOST = (on_topic(O.DESCRIBE, MY_GHOST),)

_CASES = (
    Case(0, "", _produce, (on_topic(O.WRITE), on_topic(O.WRITE, MY_GHOST))),
    Case(
        0,
        "in a transaction",
        _call(_produce, TRANSACTION),
        (on_transaction(O.WRITE), on_topic(O.WRITE)),
    ),
    Case(1, "", _fetch, (READ_MINE, on_topic(O.READ, MY_GHOST))),
    Case(1, "of a follower", _call(_fetch, 7), (on_cluster(O.CLUSTER_ACTION),), only_refusals=True),
    Case(2, "", _list_offsets, (DESCRIBE_MINE, *GHOST)),
    Case(3, "", _metadata, (DESCRIBE_MINE, *GHOST, on_cluster(O.DESCRIBE))),
    Case(3, "of all topics", _all_metadata, (DESCRIBE_MINE,)),
    Case(3, "by id", _metadata_by_id, (DESCRIBE_MINE,), range(12, LATER)),
    Case(3, "that creates topics", _auto_creation, (on_topic(O.DESCRIBE, "mine?"), on_topic(O.CREATE, "mine?"))),
    Case(
        3, "that creates topics by the cluster", _auto_creation, (on_topic(O.DESCRIBE, "mine?"), on_cluster(O.CREATE))
    ),
    Case(8, "", _commit, (READ_GROUP, READ_MINE)),
    Case(9, "", _offset_fetch, (DESCRIBE_GROUP, DESCRIBE_MINE)),
    Case(9, "of all topics", _call(_offset_fetch, None), (DESCRIBE_GROUP, DESCRIBE_MINE), range(2, LATER)),
    Case(10, "of groups", _call(_find, 0, MINE, THEIRS), (DESCRIBE_GROUP,)),
    Case(
        10,
        "of transactions",
        _call(_find, 1, TRANSACTION),
        (on_transaction(O.DESCRIBE),),
        range(1, LATER),
    ),
    Case(
        10,
        "of a share group",
        _call(_find, 2, "mine:AAAAAAAAAAAAAAAAAAAAAQ:0"),
        (on_cluster(O.CLUSTER_ACTION),),
        range(6, LATER),
        only_refusals=True,
    ),
    Case(11, "", _join, (READ_GROUP,)),
    Case(12, "", _heartbeat, (READ_GROUP,)),
    Case(13, "", _leave, (READ_GROUP,)),
    Case(14, "", _sync, (READ_GROUP,)),
    Case(14, "without a protocol", _sync_without_protocol, (READ_GROUP,)),
    Case(15, "", _describe_groups, (DESCRIBE_GROUP, on_group(O.DESCRIBE, MY_GHOST))),
    Case(16, "", lambda R, version, world: R(), (DESCRIBE_GROUP,)),
    Case(16, "by the cluster", lambda R, version, world: R(), (on_cluster(O.DESCRIBE),)),
    Case(19, "", _create_topics, (on_topic(O.CREATE, "mine-new"), on_topic(O.CREATE, "mine-new?"))),
    Case(19, "by the cluster", _create_topics, (on_cluster(O.CREATE), on_topic(O.DESCRIBE_CONFIGS, "mine-new"))),
    Case(20, "", _delete_topics, (on_topic(O.DELETE, MY_GHOST),)),
    Case(20, "that may only be seen", _delete_topics, (on_topic(O.DESCRIBE, MY_GHOST),)),
    Case(20, "by the cluster", _delete_topics, (on_cluster(O.DELETE),)),
    Case(
        20,
        "by id that may only be seen",
        _delete_by_id,
        (on_topic(O.DESCRIBE, DOOMED),),
        range(6, LATER),
        only_exact=True,
    ),
    Case(20, "by id", _delete_by_id, (on_topic(O.DELETE, DOOMED),), range(6, LATER)),
    Case(21, "", _delete_records, (on_topic(O.DELETE),)),
    Case(22, "", _producer_id, (on_cluster(O.IDEMPOTENT_WRITE),)),
    Case(22, "of a writer", _producer_id, (on_topic(O.WRITE),)),
    Case(22, "of a transaction", _transactional_id, (on_transaction(O.WRITE),)),
    Case(23, "", _epochs, (DESCRIBE_MINE,)),
    Case(23, "of a broker", _epochs, (on_cluster(O.CLUSTER_ACTION),)),
    Case(
        24,
        "",
        _call(_add_partitions, MINE, THEIRS, MY_GHOST),
        (on_transaction(O.WRITE), on_topic(O.WRITE), on_topic(O.WRITE, MY_GHOST)),
        range(4),
    ),
    Case(
        24, "to topics that exist", _call(_add_partitions, MINE), (on_transaction(O.WRITE), on_topic(O.WRITE)), range(4)
    ),
    Case(24, "of a broker", _call(_add_partitions, MINE), (on_cluster(O.CLUSTER_ACTION),), range(4, LATER)),
    Case(25, "", _add_offsets, (on_transaction(O.WRITE), READ_GROUP)),
    Case(26, "", _end, (on_transaction(O.WRITE),)),
    Case(27, "", _write_markers, (on_cluster(O.ALTER),)),
    Case(27, "of a broker", _write_markers, (on_cluster(O.CLUSTER_ACTION),)),
    Case(28, "", _commit_in_transaction, (on_transaction(O.WRITE), READ_GROUP, READ_MINE)),
    Case(29, "", _describe_acls, (on_cluster(O.DESCRIBE),)),
    Case(30, "", _create_acls, (on_cluster(O.ALTER),)),
    Case(31, "", _delete_acls, (on_cluster(O.ALTER),)),
    Case(32, "of topics", _call(_describe_configs, 2, MINE, THEIRS, THEIR_GHOST), (on_topic(O.DESCRIBE_CONFIGS),)),
    Case(32, "of brokers", _call(_describe_configs, 4, ""), (on_cluster(O.DESCRIBE_CONFIGS),)),
    Case(32, "of groups", _call(_describe_configs, 32, MINE, THEIRS), (on_group(O.DESCRIBE_CONFIGS),)),
    Case(33, "of topics", _call(_alter_configs, 2, MINE, THEIRS, THEIR_GHOST, "theirs?"), (on_topic(O.ALTER_CONFIGS),)),
    Case(33, "to null", _null, (on_topic(O.ALTER_CONFIGS),)),
    # Kafka allows no change of all brokers that has no configs.
    Case(33, "of brokers", _call(_alter_configs, 4, ""), (on_cluster(O.ALTER_CONFIGS),), only_refusals=True),
    Case(33, "of another broker", _wrong_broker, (on_cluster(O.ALTER_CONFIGS),)),
    Case(33, "of groups", _call(_alter_configs, 32, MINE, THEIRS), (on_group(O.ALTER_CONFIGS),)),
    Case(35, "", _log_dirs, (on_cluster(O.DESCRIBE),)),
    Case(37, "", _create_partitions, (on_topic(O.ALTER), on_topic(O.ALTER, MY_GHOST))),
    Case(42, "", _delete_groups, (on_group(O.DELETE, MY_GHOST),)),
    Case(44, "of topics", _call(_alter_configs, 2, MINE, THEIRS, THEIR_GHOST, "theirs?"), (on_topic(O.ALTER_CONFIGS),)),
    Case(44, "of brokers", _call(_alter_configs, 4, ""), (on_cluster(O.ALTER_CONFIGS),)),
    Case(44, "of another broker", _wrong_broker, (on_cluster(O.ALTER_CONFIGS),)),
    Case(44, "of groups", _call(_alter_configs, 32, MINE, THEIRS), (on_group(O.ALTER_CONFIGS),)),
    Case(47, "", _offset_delete, (on_group(O.DELETE), READ_MINE)),
    Case(48, "", _describe_quotas, (on_cluster(O.DESCRIBE_CONFIGS),)),
    Case(49, "", _alter_quotas, (on_cluster(O.ALTER_CONFIGS),)),
    Case(50, "", _describe_users, (on_cluster(O.DESCRIBE),)),
    Case(51, "", _alter_users, (on_cluster(O.ALTER),)),
    Case(57, "", _update_features, (on_cluster(O.ALTER),)),
    Case(60, "", _describe_cluster, (on_cluster(O.DESCRIBE),)),
    Case(61, "", _describe_producers, (READ_MINE,)),
    Case(65, "", _describe_transactions, (on_transaction(O.DESCRIBE), DESCRIBE_MINE)),
    Case(66, "", _list_transactions, (on_transaction(O.DESCRIBE),)),
    Case(68, "", _consumer_heartbeat, (READ_GROUP, DESCRIBE_MINE)),
    Case(69, "", _describe_consumer_groups, (DESCRIBE_GROUP, on_group(O.DESCRIBE, MY_GHOST), DESCRIBE_MINE)),
    Case(74, "", _list_configs, (on_cluster(O.DESCRIBE_CONFIGS),)),
    Case(75, "", _describe_topic_partitions, (DESCRIBE_MINE, *GHOST)),
    Case(75, "of all topics", lambda R, version, world: R(topics=[]), (DESCRIBE_MINE,)),
    Case(76, "", _share_heartbeat, (READ_GROUP, DESCRIBE_MINE)),
    Case(77, "", _describe_consumer_groups, (DESCRIBE_GROUP, on_group(O.DESCRIBE, MY_GHOST), DESCRIBE_MINE)),
    Case(78, "of a topic of others", _share_fetch, (READ_GROUP, READ_MINE), only_exact=True),
    Case(79, "", _share_acknowledge, (READ_GROUP, READ_MINE)),
    Case(90, "", _call(_share_offsets, False), (DESCRIBE_GROUP, DESCRIBE_MINE)),
    Case(90, "of all topics", _call(_share_offsets, True), (DESCRIBE_GROUP, DESCRIBE_MINE)),
    Case(91, "", _alter_share_offsets, (READ_GROUP, on_topic(O.READ, MY_GHOST))),
    Case(92, "", _delete_share_offsets, (on_group(O.DELETE), READ_MINE)),
    Case(10000, "", _group_details, (DESCRIBE_GROUP, DESCRIBE_MINE), is_native=True),
    Case(10001, "", _trigger, (READ_GROUP,), is_native=True),
    *(
        Case(key, "", lambda R, version, world: R(), (on_cluster(O.DESCRIBE),), is_native=True)
        for key in (10002, 10003, 10004)
    ),
)
CASES = tuple(case for case in _CASES if case.key in APIS)
# Requests that everybody may send. The requests of SASL and of telemetry have tests of their own.
OPEN_KEYS = (17, 18, 36, 71, 72)
