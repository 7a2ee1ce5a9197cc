"""Kafka's error codes: what each means, in a few words, and whether trying again can help."""

from __future__ import annotations

from enum import IntEnum

RETRY = True


class ErrorCode(IntEnum):
    """The codes of responses; numbers and names are Kafka's."""

    meaning: str
    retriable: bool

    def __new__(cls, code: int, meaning: str, retriable: bool = False) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        member.retriable = retriable
        return member

    UNKNOWN_SERVER_ERROR = -1, "the broker failed in a way it has no code for"
    NONE = 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, "the partition has no record at that offset"
    CORRUPT_MESSAGE = 2, "the records are damaged: checksum, size or key is wrong", RETRY
    UNKNOWN_TOPIC_OR_PARTITION = 3, "no such topic or partition", RETRY
    INVALID_FETCH_SIZE = 4, "the fetch size is not valid"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader at the moment", RETRY
    NOT_LEADER_OR_FOLLOWER = 6, "this broker does not hold the partition", RETRY
    REQUEST_TIMED_OUT = 7, "the request took too long", RETRY
    BROKER_NOT_AVAILABLE = 8, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, "the replica is not available", RETRY
    MESSAGE_TOO_LARGE = 10, "a record batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, "the controller has moved"
    OFFSET_METADATA_TOO_LARGE = 12, "the text beside the committed offset is too long"
    NETWORK_EXCEPTION = 13, "the connection broke before the answer came", RETRY
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the group coordinator is still loading", RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "the group coordinator is not available", RETRY
    NOT_COORDINATOR = 16, "another broker coordinates this group", RETRY
    INVALID_TOPIC_EXCEPTION = 17, "the topic name is not valid, or the topic may not be used so"
    RECORD_LIST_TOO_LARGE = 18, "the batch is larger than a segment of the partition"
    NOT_ENOUGH_REPLICAS = 19, "fewer replicas are in sync than required", RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "written, but to fewer replicas than required", RETRY
    INVALID_REQUIRED_ACKS = 21, "acks must be 0, 1 or all"
    ILLEGAL_GENERATION = 22, "the group has moved on to another generation"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member shares no protocol or protocol type with the group"
    INVALID_GROUP_ID = 24, "the group id is not valid"
    UNKNOWN_MEMBER_ID = 25, "the group does not know this member"
    INVALID_SESSION_TIMEOUT = 26, "the session timeout is outside of what the broker allows"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing, the member must join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, "the offsets to commit are too large for one batch"
    TOPIC_AUTHORIZATION_FAILED = 29, "not permitted on this topic"
    GROUP_AUTHORIZATION_FAILED = 30, "not permitted on this group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "not permitted on the cluster"
    INVALID_TIMESTAMP = 32, "a record's timestamp is outside of the accepted range"
    UNSUPPORTED_SASL_MECHANISM = 33, "the broker does not offer this SASL mechanism"
    ILLEGAL_SASL_STATE = 34, "the request does not fit the state of the SASL exchange"
    UNSUPPORTED_VERSION = 35, "the broker does not support this version of the request"
    TOPIC_ALREADY_EXISTS = 36, "a topic of this name exists already"
    INVALID_PARTITIONS = 37, "the number of partitions is not valid"
    INVALID_REPLICATION_FACTOR = 38, "the replication factor is below 1 or above the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, "the replica assignment is not valid"
    INVALID_CONFIG = 40, "the configuration is not valid"
    NOT_CONTROLLER = 41, "this broker is not the controller", RETRY
    INVALID_REQUEST = 42, "the request makes no sense to the broker"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the broker's record format cannot do this"
    POLICY_VIOLATION = 44, "a policy of the cluster forbids this"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "a sequence number does not follow the one before it"
    DUPLICATE_SEQUENCE_NUMBER = 46, "a sequence number was used before"
    INVALID_PRODUCER_EPOCH = 47, "the producer's epoch is out of date"
    INVALID_TXN_STATE = 48, "the transaction is not in a state that allows this"
    INVALID_PRODUCER_ID_MAPPING = 49, "the transactional id belongs to another producer id"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction timeout is above what the broker allows"
    CONCURRENT_TRANSACTIONS = 51, "the transaction is being changed by another request", RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "the transaction coordinator is out of date"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "not permitted on this transactional id"
    SECURITY_DISABLED = 54, "the broker has no security switched on"
    OPERATION_NOT_ATTEMPTED = 55, "not attempted, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the broker's disk failed", RETRY
    LOG_DIR_NOT_FOUND = 57, "the broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, "authentication failed"
    UNKNOWN_PRODUCER_ID = 59, "the broker has forgotten this producer id"
    REASSIGNMENT_IN_PROGRESS = 60, "a reassignment of partitions is under way"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are not switched on"
    DELEGATION_TOKEN_NOT_FOUND = 62, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the delegation token belongs to someone else"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "delegation tokens cannot be asked for over this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "not permitted on this delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the broker does not know this kind of principal"
    NON_EMPTY_GROUP = 68, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "no such fetch session", RETRY
    INVALID_FETCH_SESSION_EPOCH = 71, "the epoch of the fetch session is wrong", RETRY
    LISTENER_NOT_FOUND = 72, "the leader has no listener like the one that was asked", RETRY
    TOPIC_DELETION_DISABLED = 73, "deleting topics is switched off"
    FENCED_LEADER_EPOCH = 74, "the leader epoch is older than the broker's", RETRY
    UNKNOWN_LEADER_EPOCH = 75, "the leader epoch is newer than the broker's", RETRY
    UNSUPPORTED_COMPRESSION_TYPE = 76, "this version of the request cannot carry that compression"
    STALE_BROKER_EPOCH = 77, "the broker epoch is out of date"
    OFFSET_NOT_AVAILABLE = 78, "the leader has not caught up with its high watermark", RETRY
    MEMBER_ID_REQUIRED = 79, "join again with the member id of this answer"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is not available", RETRY
    GROUP_MAX_SIZE_REACHED = 81, "the group has as many members as the broker allows"
    FENCED_INSTANCE_ID = 82, "another member has taken over this group instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no replica may become leader", RETRY
    ELECTION_NOT_NEEDED = 84, "the partition has the leader it should have", RETRY
    NO_REASSIGNMENT_IN_PROGRESS = 85, "no reassignment of partitions is under way"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group is subscribed to the topic"
    INVALID_RECORD = 87, "the broker refused a record"
    UNSTABLE_OFFSET_COMMIT = 88, "a transaction holds back the committed offset", RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "the quota is used up", RETRY
    PRODUCER_FENCED = 90, "a newer producer has the same transactional id"
    RESOURCE_NOT_FOUND = 91, "no such resource"
    DUPLICATE_RESOURCE = 92, "the resource exists already or was named twice"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential does not meet the rules"
    INCONSISTENT_VOTER_SET = 94, "the set of voters does not match"
    INVALID_UPDATE_VERSION = 95, "the version to update to is not valid"
    FEATURE_UPDATE_FAILED = 96, "the features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the forwarded principal cannot be read"
    SNAPSHOT_NOT_FOUND = 98, "no such snapshot"
    POSITION_OUT_OF_RANGE = 99, "the position lies outside of the snapshot"
    UNKNOWN_TOPIC_ID = 100, "no topic has this id", RETRY
    DUPLICATE_BROKER_REGISTRATION = 101, "a broker with this id is registered already"
    BROKER_ID_NOT_REGISTERED = 102, "no broker with this id is registered"
    INCONSISTENT_TOPIC_ID = 103, "the topic id does not match the log's", RETRY
    INCONSISTENT_CLUSTER_ID = 104, "the cluster id does not match"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "the fetch session mixes topic names and topic ids", RETRY
    INELIGIBLE_REPLICA = 107, "the replica may not join those in sync"
    NEW_LEADER_ELECTED = 108, "the change led to the election of another leader"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset lies in tiered storage"
    FENCED_MEMBER_EPOCH = 110, "the member's epoch is fenced, it must join again"
    UNRELEASED_INSTANCE_ID = 111, "the group instance id is still in use"
    UNSUPPORTED_ASSIGNOR = 112, "the group cannot use this assignor"
    STALE_MEMBER_EPOCH = 113, "the member's epoch is out of date"
    MISMATCHED_ENDPOINT_TYPE = 114, "the request went to the wrong kind of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "the endpoint type is not supported"
    UNKNOWN_CONTROLLER_ID = 116, "no controller with this id"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is out of date"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is larger than the broker takes"
    INVALID_REGISTRATION = 119, "the controller refused the broker's registration"
    TRANSACTION_ABORTABLE = 120, "the transaction met an error and must be aborted"
    INVALID_RECORD_STATE = 121, "the state of the record does not allow this"
    SHARE_SESSION_NOT_FOUND = 122, "no such share session", RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "the epoch of the share session is wrong", RETRY
    FENCED_STATE_EPOCH = 124, "the share coordinator knows a newer state epoch"
    INVALID_VOTER_KEY = 125, "the voter key does not match the replica"
    DUPLICATE_VOTER = 126, "the voter belongs to the set already"
    VOTER_NOT_FOUND = 127, "no such voter"
    INVALID_REGULAR_EXPRESSION = 128, "the regular expression is not valid"
    REBOOTSTRAP_REQUIRED = 129, "the client must start again from its bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, "the streams topology is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the epoch of the streams topology is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, "the epoch of the streams topology is out of date"
    SHARE_SESSION_LIMIT_REACHED = 133, "the broker has as many share sessions as it allows", RETRY


def is_retriable(code: int) -> bool:
    """Whether the same request may succeed later; False for a code that is not in the table."""
    found = _BY_CODE.get(code)
    return found is not None and found.retriable


def message_of(code: int) -> str:
    """What the code means, for people; names the number of a code that is not in the table."""
    found = _BY_CODE.get(code)
    return found.meaning if found is not None else f"unknown error code {code}"


_BY_CODE = {int(member): member for member in ErrorCode}
