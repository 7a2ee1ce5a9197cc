"""Kafka's error codes, with a short meaning and whether a retry can succeed."""

from __future__ import annotations

from enum import IntEnum

RETRY = True


class ErrorCode(IntEnum):
    """Error codes of responses, with Kafka's numbers and names."""

    meaning: str
    retriable: bool

    def __new__(cls, code: int, meaning: str, retriable: bool = False) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        member.retriable = retriable
        return member

    UNKNOWN_SERVER_ERROR = -1, "the broker failed for an unexpected reason"
    NONE = 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, "the offset is outside the range of the partition"
    CORRUPT_MESSAGE = 2, "the records are corrupt: wrong checksum, size or key", RETRY
    UNKNOWN_TOPIC_OR_PARTITION = 3, "no such topic or partition", RETRY
    INVALID_FETCH_SIZE = 4, "the fetch size is not valid"
    LEADER_NOT_AVAILABLE = 5, "the partition currently has no leader", RETRY
    NOT_LEADER_OR_FOLLOWER = 6, "this broker does not host the partition", RETRY
    REQUEST_TIMED_OUT = 7, "the request took too long", RETRY
    BROKER_NOT_AVAILABLE = 8, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, "the replica is not available", RETRY
    MESSAGE_TOO_LARGE = 10, "a record batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, "the controller has moved"
    OFFSET_METADATA_TOO_LARGE = 12, "the metadata of the committed offset is too large"
    NETWORK_EXCEPTION = 13, "the connection was lost before the response arrived", RETRY
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still loading", RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "the coordinator is not available", RETRY
    NOT_COORDINATOR = 16, "another broker is the coordinator", RETRY
    INVALID_TOPIC_EXCEPTION = 17, "the topic name is invalid, or the topic does not allow this operation"
    RECORD_LIST_TOO_LARGE = 18, "the batch is larger than a segment of the partition"
    NOT_ENOUGH_REPLICAS = 19, "fewer replicas are in sync than required", RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "appended, but to fewer replicas than required", RETRY
    INVALID_REQUIRED_ACKS = 21, "acks must be 0, 1 or all"
    ILLEGAL_GENERATION = 22, "the generation is not the current one of the group"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member has no protocol or protocol type in common with the group"
    INVALID_GROUP_ID = 24, "the group id is not valid"
    UNKNOWN_MEMBER_ID = 25, "the group does not know this member"
    INVALID_SESSION_TIMEOUT = 26, "the session timeout is outside the range that the broker allows"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing; the member must rejoin"
    INVALID_COMMIT_OFFSET_SIZE = 28, "the offsets to commit are too large for one batch"
    TOPIC_AUTHORIZATION_FAILED = 29, "not permitted on this topic"
    GROUP_AUTHORIZATION_FAILED = 30, "not permitted on this group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "not permitted on the cluster"
    INVALID_TIMESTAMP = 32, "the timestamp of a record is outside the accepted range"
    UNSUPPORTED_SASL_MECHANISM = 33, "the broker does not offer this SASL mechanism"
    ILLEGAL_SASL_STATE = 34, "the request is not valid in this state of the SASL exchange"
    UNSUPPORTED_VERSION = 35, "the broker does not support this version of the request"
    TOPIC_ALREADY_EXISTS = 36, "a topic with this name already exists"
    INVALID_PARTITIONS = 37, "the number of partitions is not valid"
    INVALID_REPLICATION_FACTOR = 38, "the replication factor is below 1 or above the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, "the replica assignment is not valid"
    INVALID_CONFIG = 40, "the configuration is not valid"
    NOT_CONTROLLER = 41, "this broker is not the controller", RETRY
    INVALID_REQUEST = 42, "the request is invalid"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the record format of the broker does not support this"
    POLICY_VIOLATION = 44, "a policy of the cluster forbids this"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "the sequence number does not follow the previous one"
    DUPLICATE_SEQUENCE_NUMBER = 46, "the sequence number was used before"
    INVALID_PRODUCER_EPOCH = 47, "the producer epoch is out of date"
    INVALID_TXN_STATE = 48, "the state of the transaction does not allow this"
    INVALID_PRODUCER_ID_MAPPING = 49, "the transactional id belongs to another producer id"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction timeout exceeds what the broker allows"
    CONCURRENT_TRANSACTIONS = 51, "another request is changing the transaction", RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "the transaction coordinator is out of date"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "not permitted on this transactional id"
    SECURITY_DISABLED = 54, "security is disabled on the broker"
    OPERATION_NOT_ATTEMPTED = 55, "not attempted, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the disk of the broker failed", RETRY
    LOG_DIR_NOT_FOUND = 57, "the broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, "authentication failed"
    UNKNOWN_PRODUCER_ID = 59, "the broker no longer knows this producer id"
    REASSIGNMENT_IN_PROGRESS = 60, "a partition reassignment is in progress"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are disabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the delegation token belongs to someone else"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "delegation token requests are not allowed on this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "not permitted on this delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the broker does not know this kind of principal"
    NON_EMPTY_GROUP = 68, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "no such fetch session", RETRY
    INVALID_FETCH_SESSION_EPOCH = 71, "the epoch of the fetch session is wrong", RETRY
    LISTENER_NOT_FOUND = 72, "the leader has no listener that matches the one that received the request", RETRY
    TOPIC_DELETION_DISABLED = 73, "topic deletion is disabled"
    FENCED_LEADER_EPOCH = 74, "the leader epoch is older than the broker's", RETRY
    UNKNOWN_LEADER_EPOCH = 75, "the leader epoch is newer than the broker's", RETRY
    UNSUPPORTED_COMPRESSION_TYPE = 76, "this version of the request cannot carry that compression"
    STALE_BROKER_EPOCH = 77, "the broker epoch is out of date"
    OFFSET_NOT_AVAILABLE = 78, "the leader has not caught up with its high watermark", RETRY
    MEMBER_ID_REQUIRED = 79, "join again with the member id of this response"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is not available", RETRY
    GROUP_MAX_SIZE_REACHED = 81, "the group has reached the maximum size that the broker allows"
    FENCED_INSTANCE_ID = 82, "another member has taken over this group instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no replica is eligible to become leader", RETRY
    ELECTION_NOT_NEEDED = 84, "the partition already has its preferred leader", RETRY
    NO_REASSIGNMENT_IN_PROGRESS = 85, "no partition reassignment is in progress"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group is subscribed to the topic"
    INVALID_RECORD = 87, "the broker rejected a record"
    UNSTABLE_OFFSET_COMMIT = 88, "the offset has a pending transactional commit", RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "the quota is exceeded", RETRY
    PRODUCER_FENCED = 90, "a newer producer has the same transactional id"
    RESOURCE_NOT_FOUND = 91, "no such resource"
    DUPLICATE_RESOURCE = 92, "the resource already exists or was given twice"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential does not meet the rules"
    INCONSISTENT_VOTER_SET = 94, "the set of voters does not match"
    INVALID_UPDATE_VERSION = 95, "the version to update to is not valid"
    FEATURE_UPDATE_FAILED = 96, "the features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the forwarded principal cannot be read"
    SNAPSHOT_NOT_FOUND = 98, "no such snapshot"
    POSITION_OUT_OF_RANGE = 99, "the position is outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, "no topic has this id", RETRY
    DUPLICATE_BROKER_REGISTRATION = 101, "a broker with this id is already registered"
    BROKER_ID_NOT_REGISTERED = 102, "no broker with this id is registered"
    INCONSISTENT_TOPIC_ID = 103, "the topic id does not match the log's", RETRY
    INCONSISTENT_CLUSTER_ID = 104, "the cluster id does not match"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "the fetch session mixes topic names and topic ids", RETRY
    INELIGIBLE_REPLICA = 107, "the replica is not eligible to join the in-sync replicas"
    NEW_LEADER_ELECTED = 108, "the change caused the election of another leader"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset is in tiered storage"
    FENCED_MEMBER_EPOCH = 110, "the member epoch is fenced; the member must rejoin"
    UNRELEASED_INSTANCE_ID = 111, "the group instance id is still in use"
    UNSUPPORTED_ASSIGNOR = 112, "the group cannot use this assignor"
    STALE_MEMBER_EPOCH = 113, "the member epoch is out of date"
    MISMATCHED_ENDPOINT_TYPE = 114, "the request went to the wrong kind of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "the endpoint type is not supported"
    UNKNOWN_CONTROLLER_ID = 116, "no controller with this id"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is out of date"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is larger than the broker accepts"
    INVALID_REGISTRATION = 119, "the controller refused the broker's registration"
    TRANSACTION_ABORTABLE = 120, "the transaction failed and must be aborted"
    INVALID_RECORD_STATE = 121, "the state of the record does not allow this"
    SHARE_SESSION_NOT_FOUND = 122, "no such share session", RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "the epoch of the share session is wrong", RETRY
    FENCED_STATE_EPOCH = 124, "the share coordinator knows a newer state epoch"
    INVALID_VOTER_KEY = 125, "the voter key does not match the replica"
    DUPLICATE_VOTER = 126, "the voter is already in the set"
    VOTER_NOT_FOUND = 127, "no such voter"
    INVALID_REGULAR_EXPRESSION = 128, "the regular expression is not valid"
    REBOOTSTRAP_REQUIRED = 129, "the client must bootstrap again"
    STREAMS_INVALID_TOPOLOGY = 130, "the streams topology is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the epoch of the streams topology is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, "the epoch of the streams topology is out of date"
    SHARE_SESSION_LIMIT_REACHED = 133, "the broker has reached its limit of share sessions", RETRY


def is_retriable(code: int) -> bool:
    """Whether a retry may succeed; False for a code that is not in the table."""
    found = _BY_CODE.get(code)
    return found is not None and found.retriable


def message_of(code: int) -> str:
    """The meaning of a code for users, or its number if it is not in the table."""
    found = _BY_CODE.get(code)
    return found.meaning if found is not None else f"unknown error code {code}"


_BY_CODE = {int(member): member for member in ErrorCode}
