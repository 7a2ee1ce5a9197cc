"""Which permission is missing when a broker refuses a request for lack of authorization."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import Message

GROUP, TOPIC, CLUSTER, TRANSACTION = "group", "topic", "cluster", "transactional id"
_RESOURCES: dict[int, str] = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: GROUP,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: TOPIC,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: CLUSTER,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: TRANSACTION,
}
REFUSALS = frozenset(_RESOURCES)
_INIT_PRODUCER_ID = 22
# By api key: the operation that Kafka checks on each kind of resource that it may refuse.
_OPERATIONS: dict[int, dict[str, str]] = {
    0: {TOPIC: "WRITE", CLUSTER: "IDEMPOTENT_WRITE", TRANSACTION: "WRITE"},  # Produce
    1: {TOPIC: "READ"},  # Fetch
    2: {TOPIC: "DESCRIBE"},  # ListOffsets
    3: {TOPIC: "DESCRIBE"},  # Metadata
    8: {GROUP: "READ", TOPIC: "READ"},  # OffsetCommit
    9: {GROUP: "DESCRIBE", TOPIC: "DESCRIBE"},  # OffsetFetch
    10: {GROUP: "DESCRIBE", TRANSACTION: "DESCRIBE"},  # FindCoordinator
    11: {GROUP: "READ"},  # JoinGroup
    12: {GROUP: "READ"},  # Heartbeat
    13: {GROUP: "READ"},  # LeaveGroup
    14: {GROUP: "READ"},  # SyncGroup
    15: {GROUP: "DESCRIBE"},  # DescribeGroups
    16: {CLUSTER: "DESCRIBE"},  # ListGroups
    19: {TOPIC: "CREATE", CLUSTER: "CREATE"},  # CreateTopics
    20: {TOPIC: "DELETE"},  # DeleteTopics
    21: {TOPIC: "DELETE"},  # DeleteRecords
    22: {TRANSACTION: "WRITE"},  # InitProducerId
    23: {TOPIC: "DESCRIBE"},  # OffsetForLeaderEpoch
    24: {TOPIC: "WRITE", TRANSACTION: "WRITE"},  # AddPartitionsToTxn
    25: {GROUP: "READ", TRANSACTION: "WRITE"},  # AddOffsetsToTxn
    26: {TRANSACTION: "WRITE"},  # EndTxn
    27: {CLUSTER: "ALTER"},  # WriteTxnMarkers
    28: {GROUP: "READ", TOPIC: "READ", TRANSACTION: "WRITE"},  # TxnOffsetCommit
    29: {CLUSTER: "DESCRIBE"},  # DescribeAcls
    30: {CLUSTER: "ALTER"},  # CreateAcls
    31: {CLUSTER: "ALTER"},  # DeleteAcls
    32: {GROUP: "DESCRIBE_CONFIGS", TOPIC: "DESCRIBE_CONFIGS", CLUSTER: "DESCRIBE_CONFIGS"},  # DescribeConfigs
    35: {CLUSTER: "DESCRIBE"},  # DescribeLogDirs
    37: {TOPIC: "ALTER"},  # CreatePartitions
    42: {GROUP: "DELETE"},  # DeleteGroups
    44: {GROUP: "ALTER_CONFIGS", TOPIC: "ALTER_CONFIGS", CLUSTER: "ALTER_CONFIGS"},  # IncrementalAlterConfigs
    47: {GROUP: "DELETE", TOPIC: "READ"},  # OffsetDelete
    48: {CLUSTER: "DESCRIBE_CONFIGS"},  # DescribeClientQuotas
    49: {CLUSTER: "ALTER_CONFIGS"},  # AlterClientQuotas
    50: {CLUSTER: "DESCRIBE"},  # DescribeUserScramCredentials
    51: {CLUSTER: "ALTER"},  # AlterUserScramCredentials
    57: {CLUSTER: "ALTER"},  # UpdateFeatures
    60: {CLUSTER: "DESCRIBE"},  # DescribeCluster
    61: {TOPIC: "READ"},  # DescribeProducers
    65: {TRANSACTION: "DESCRIBE"},  # DescribeTransactions
    68: {GROUP: "READ", TOPIC: "DESCRIBE"},  # ConsumerGroupHeartbeat
    69: {GROUP: "DESCRIBE", TOPIC: "DESCRIBE"},  # ConsumerGroupDescribe
    74: {CLUSTER: "DESCRIBE_CONFIGS"},  # ListConfigResources
    75: {TOPIC: "DESCRIBE"},  # DescribeTopicPartitions
    76: {GROUP: "READ", TOPIC: "DESCRIBE"},  # ShareGroupHeartbeat
    77: {GROUP: "DESCRIBE", TOPIC: "DESCRIBE"},  # ShareGroupDescribe
    90: {GROUP: "DESCRIBE", TOPIC: "DESCRIBE"},  # DescribeShareGroupOffsets
    91: {GROUP: "READ", TOPIC: "READ"},  # AlterShareGroupOffsets
    92: {GROUP: "DELETE", TOPIC: "READ"},  # DeleteShareGroupOffsets
    10000: {GROUP: "DESCRIBE"},  # DescribeGroupDetails, of our broker
    10001: {GROUP: "READ"},  # TriggerRebalance, of our broker
    10002: {CLUSTER: "DESCRIBE"},  # DescribeBroker, of our broker
    10003: {CLUSTER: "DESCRIBE"},  # DescribeClients, of our broker
    10004: {CLUSTER: "DESCRIBE"},  # DescribeTelemetry, of our broker
}


class Asked(NamedTuple):
    """A request, and what it was about."""

    request: type[Message]
    group: str = ""
    topic: str = ""
    transactional_id: str = ""


def missing_permission(code: int, asked: Asked) -> str | None:
    """For example `not authorised for DESCRIBE on group orders`; None for an error of another kind."""
    resource = _RESOURCES.get(code)
    if resource is None:
        return None
    operation = _OPERATIONS.get(asked.request.API_KEY, {}).get(resource)
    if resource == CLUSTER and asked.request.API_KEY == _INIT_PRODUCER_ID:
        # A broker asks for WRITE on any topic; a user has one in mind.
        topic = f"topic {asked.topic}, nor on any other topic" if asked.topic else "any topic"
        return f"not authorised for WRITE on {topic}, nor for IDEMPOTENT_WRITE on the cluster"
    name = {GROUP: asked.group, TOPIC: asked.topic, TRANSACTION: asked.transactional_id}.get(resource, "")
    what = "the cluster" if resource == CLUSTER else f"{resource} {name}".rstrip()
    return f"not authorised for {operation or asked.request.__name__.removesuffix('Request')} on {what}"
