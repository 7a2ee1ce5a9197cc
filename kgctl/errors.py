"""What can go wrong: the errors that the clients of this library raise. All are a KgctlError.

`error.retriable`: the same request may succeed later. `error.is_final`: nothing succeeds until somebody changes the settings or
the cluster. `error.name`: Kafka's name of the error, or one of kgctl.
"""

from __future__ import annotations

from kgctl.client.config.option import BadOption
from kgctl.client.consumer.errors import (
    ConcurrentUse,
    ConsumerClosed,
    CorruptRecord,
    DeserializationFailed,
    LogTruncated,
    MixedSubscription,
    NoGroup,
    NoOffsetForPartition,
    NotAssigned,
    NotSubscribed,
    OffsetOutOfRange,
    WakeupError,
)
from kgctl.client.consumer.group.errors import CommitFailed, CoordinatorUnknown, FencedInstance, RebalanceInProgress
from kgctl.client.net.bootstrap import BadAddress
from kgctl.client.net.errors import (
    AuthenticationFailed,
    AuthorizationFailed,
    BadValue,
    BrokerError,
    InsideCallback,
    KgctlError,
    NoAnswer,
    NotFound,
    NotKafka,
    Precondition,
    Refused,
    TimedOut,
    TlsFailed,
    Unreachable,
    Unsupported,
)
from kgctl.client.net.lifetime import WrongProcess
from kgctl.client.net.read_only import ReadOnly
from kgctl.client.net.security import BadSecurity
from kgctl.client.producer.core.errors import (
    BufferFull,
    OutcomeUnknown,
    ProducerClosed,
    ProducerFenced,
    RecordTooLarge,
    TransactionAbortable,
    TransactionAborted,
    TransactionFailed,
    WrongState,
)
from kgctl.client.producer.partitioners import UnusablePartitioner

__all__ = [
    "AuthenticationFailed",
    "AuthorizationFailed",
    "BadAddress",
    "BadOption",
    "BadSecurity",
    "BadValue",
    "BrokerError",
    "BufferFull",
    "CommitFailed",
    "ConcurrentUse",
    "ConsumerClosed",
    "CoordinatorUnknown",
    "CorruptRecord",
    "DeserializationFailed",
    "FencedInstance",
    "InsideCallback",
    "KgctlError",
    "LogTruncated",
    "MixedSubscription",
    "NoAnswer",
    "NoGroup",
    "NoOffsetForPartition",
    "NotAssigned",
    "NotFound",
    "NotKafka",
    "NotSubscribed",
    "OffsetOutOfRange",
    "OutcomeUnknown",
    "Precondition",
    "ProducerClosed",
    "ProducerFenced",
    "ReadOnly",
    "RebalanceInProgress",
    "RecordTooLarge",
    "Refused",
    "TimedOut",
    "TlsFailed",
    "TransactionAbortable",
    "TransactionAborted",
    "TransactionFailed",
    "Unreachable",
    "Unsupported",
    "UnusablePartitioner",
    "WakeupError",
    "WrongProcess",
    "WrongState",
]
