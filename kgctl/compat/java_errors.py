"""Errors as Kafka's Java client names them: its exception classes and default messages, which scripts search for."""

from __future__ import annotations

from broker.protocol.errors import ErrorCode
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.exit_codes import ERROR, NOT_FOUND, exit_code_of
from kgctl.model.failure import RowError

RUNTIME = "java.lang.RuntimeException"
EXECUTION = "java.util.concurrent.ExecutionException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
_PACKAGE = "org.apache.kafka.common.errors."
_TIMEOUT = "TimeoutException", "Timed out waiting for a node assignment. Call: {call}"

# By Kafka's name of the error code.
_KNOWN = {
    "CLUSTER_AUTHORIZATION_FAILED": ("ClusterAuthorizationException", "Cluster authorization failed."),
    "CONCURRENT_TRANSACTIONS": (
        "ConcurrentTransactionsException",
        (
            "The producer attempted to update a transaction while another concurrent operation on the same transaction "
            "was ongoing."
        ),
    ),
    "COORDINATOR_NOT_AVAILABLE": ("CoordinatorNotAvailableException", "The coordinator is not available."),
    "GROUP_AUTHORIZATION_FAILED": ("GroupAuthorizationException", "Group authorization failed."),
    "GROUP_ID_NOT_FOUND": ("GroupIdNotFoundException", "The group id does not exist."),
    "GROUP_SUBSCRIBED_TO_TOPIC": (
        "GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
    ),
    "INVALID_CONFIG": ("InvalidConfigurationException", "Configuration is invalid."),
    "INVALID_GROUP_ID": ("InvalidGroupIdException", "The group id is invalid."),
    "INVALID_PARTITIONS": ("InvalidPartitionsException", "Number of partitions is below 1."),
    "INVALID_PRODUCER_EPOCH": (
        "InvalidProducerEpochException",
        "Producer attempted to produce with an old epoch.",
    ),
    "INVALID_REPLICATION_FACTOR": (
        "InvalidReplicationFactorException",
        "Replication factor is below 1 or larger than the number of available brokers.",
    ),
    "INVALID_TOPIC_EXCEPTION": (
        "InvalidTopicException",
        "The request attempted to perform an operation on an invalid topic.",
    ),
    "NON_EMPTY_GROUP": ("GroupNotEmptyException", "The group is not empty."),
    "NOT_COORDINATOR": ("NotCoordinatorException", "This is not the correct coordinator."),
    "REBALANCE_IN_PROGRESS": (
        "RebalanceInProgressException",
        "The group is rebalancing, so a rejoin is needed.",
    ),
    "REQUEST_TIMED_OUT": ("TimeoutException", "The request timed out."),
    "SECURITY_DISABLED": ("SecurityDisabledException", "Security features are disabled."),
    "TOPIC_ALREADY_EXISTS": ("TopicExistsException", "Topic with this name already exists."),
    "TOPIC_AUTHORIZATION_FAILED": ("TopicAuthorizationException", "Topic authorization failed."),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "TransactionalIdAuthorizationException",
        "Transactional Id authorization failed.",
    ),
    "TRANSACTIONAL_ID_NOT_FOUND": (
        "TransactionalIdNotFoundException",
        "The transactionalId could not be found.",
    ),
    "UNKNOWN_MEMBER_ID": ("UnknownMemberIdException", "The coordinator is not aware of this member."),
    "UNKNOWN_TOPIC_ID": ("UnknownTopicIdException", "This server does not host this topic ID."),
    "UNKNOWN_TOPIC_OR_PARTITION": (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
}
NO_ANSWER = ("UNREACHABLE", "TIMED_OUT")


class JavaError(Exception):
    """An exception of the Java client or of a tool. `name` is Kafka's or kgctl's name of the failure, for the exit code."""

    def __init__(self, kind: str, message: str | None, name: str = "ERROR", exit_code: int = ERROR) -> None:
        super().__init__(kind if message is None else f"{kind}: {message}")
        self.kind, self.message, self.name, self.exit_code = kind, message, name, exit_code
        self.cause: JavaError | None = None

    def within(self, kind: str = EXECUTION) -> JavaError:
        """An exception with this one as its cause."""
        outer = JavaError(kind, str(self), self.name, self.exit_code)
        outer.cause = self
        return outer

    def rethrown(self) -> JavaError:
        """The same in a RuntimeException."""
        return self.within(RUNTIME)


def java_error(error: KgctlError | RowError, *, call: str = "") -> JavaError:
    """The exception that the Java client throws in place of this error; `call` is its name for the request."""
    code = exit_code_of(error)
    if error.name in _KNOWN:
        kind, message = _KNOWN[error.name]
        return JavaError(_PACKAGE + kind, message, error.name, code)
    if error.name in NO_ANSWER:
        kind, message = _TIMEOUT
        return JavaError(_PACKAGE + kind, message.format(call=call), error.name, code)
    text = error.message if isinstance(error, RowError) else str(error)
    if isinstance(error, BrokerError) and error.name in ErrorCode.__members__:
        # Most classes have the name of the error.
        words = "".join(word.capitalize() for word in error.name.removesuffix("_EXCEPTION").split("_"))
        return JavaError(f"{_PACKAGE}{words}Exception", text, error.name, code)
    return JavaError("org.apache.kafka.common.KafkaException", text, error.name, code)


def of_code(code: int, message: str | None = None) -> JavaError:
    """The exception of an error code, with the broker's message in place of the default one."""
    found = java_error(BrokerError(code, "the broker"))
    return JavaError(found.kind, message, found.name, found.exit_code) if message else found


def no_such_config(message: str) -> JavaError:
    return JavaError(_PACKAGE + "InvalidConfigurationException", message, "NOT_FOUND", NOT_FOUND)


def illegal_argument(message: str) -> JavaError:
    return JavaError(ILLEGAL_ARGUMENT, message, "BAD_VALUE", exit_code_of(RowError("BAD_VALUE", "")))
