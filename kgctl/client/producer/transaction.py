"""The transaction of a producer: what may happen next, and what an error means. No I/O, no clock.

`Producer` drives it: `begin`, `use` for each record's partition, then `finish`. Errors go to `fail`. Kafka has two protocols:
in the older one the producer adds each partition with a request (`unadded`), and its epoch stays the same. In the one of
transaction.version 2 (KIP-890) a Produce request adds its partitions, and each EndTxn answers the next epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable
from kgctl.model.topic_partition import TopicPartition

FEATURE, IMPLICIT_LEVEL = "transaction.version", 2
# The newest versions of Produce and EndTxn in the older protocol.
EXPLICIT_PRODUCE_VERSION, EXPLICIT_END_VERSION = 11, 4


class ProducerIdentity(NamedTuple):
    """Identifies the producer in the broker's check for duplicates."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Kafka's producer options transactional.id and transaction.timeout.ms."""

    transactional_id: str
    timeout_ms: int = 60_000


class Phase(Enum):
    UNINITIALIZED = "without a producer id"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    ENDING = "ending a transaction"
    MUST_ABORT = "in a transaction that must be aborted"
    FATAL = "unusable"


_BEFORE = {
    Phase.READY: {Phase.UNINITIALIZED, Phase.READY, Phase.IN_TRANSACTION, Phase.ENDING, Phase.MUST_ABORT},
    Phase.IN_TRANSACTION: {Phase.READY},
    Phase.ENDING: {Phase.IN_TRANSACTION, Phase.ENDING, Phase.MUST_ABORT},
    Phase.MUST_ABORT: {Phase.IN_TRANSACTION, Phase.ENDING, Phase.MUST_ABORT},
    Phase.FATAL: set(Phase),
}


class TransactionFailed(KgctlError):
    """The transaction cannot be committed. `is_fatal`: it cannot be aborted either, and the producer cannot continue.

    The broker has aborted it then, or aborts it after transaction.timeout.ms.
    """

    def __init__(self, cause: KgctlError, text: str, *, is_fatal: bool) -> None:
        super().__init__(text)
        self.name = cause.name
        self.is_fatal = is_fatal


class OutcomeUnknown(KgctlError):
    """The answer to a commit is missing: the transaction is committed, or the broker aborts it later."""

    def __init__(self, cause: KgctlError) -> None:
        super().__init__(f"the transaction may be committed or not: {cause}")
        self.name = cause.name


class Transaction:
    """The state of one transactional id. `is_implicit`: the protocol of transaction.version 2."""

    def __init__(self, settings: TransactionSettings, *, is_implicit: bool) -> None:
        self.settings, self.is_implicit = settings, is_implicit
        self.phase = Phase.UNINITIALIZED
        self.identity = ProducerIdentity(-1, -1)
        self.failure: TransactionFailed | None = None
        # Whether the next transaction needs a new epoch: sequences are lost that the broker may know or not.
        self.needs_new_epoch = False
        self._began_ms = 0
        self._used: set[TopicPartition] = set()
        self._added: set[TopicPartition] = set()

    @property
    def is_open(self) -> bool:
        return self.phase in (Phase.IN_TRANSACTION, Phase.ENDING, Phase.MUST_ABORT)

    def initialized(self, identity: ProducerIdentity) -> None:
        """The coordinator answered InitProducerId: older producers with the id are fenced, their transactions ended."""
        self._enter(Phase.READY)
        self.identity, self.needs_new_epoch = identity, False

    def begin(self, now_ms: int) -> None:
        self._enter(Phase.IN_TRANSACTION)
        self._began_ms = now_ms
        self._used, self._added = set(), set()

    def use(self, partition: TopicPartition) -> None:
        """A record for this partition is part of the transaction."""
        assert self.phase is Phase.IN_TRANSACTION, f"the producer is {self.phase.value}"
        self._used.add(partition)

    def unadded(self) -> list[TopicPartition]:
        """The partitions to add with a request before anything is sent to them."""
        return [] if self.is_implicit else sorted(self._used - self._added)

    def added(self, partitions: Iterable[TopicPartition]) -> None:
        """The coordinator knows the partitions, or, in the newer protocol, a Produce request for them leaves."""
        self._added.update(partitions)

    def finish(self, commit: bool) -> bool:
        """End the transaction once everything is acknowledged, or to abort it. False if the coordinator need not know."""
        if self.failure is not None and (commit or self.failure.is_fatal):
            raise self.failure
        self._enter(Phase.ENDING)
        if not self._added:
            self.finished(None)
        return bool(self._added)

    def finished(self, identity: ProducerIdentity | None) -> None:
        """The coordinator answered EndTxn, in the newer protocol with the identity for the next transaction."""
        self._enter(Phase.READY)
        self.failure = None
        if identity is not None:
            self.identity, self.needs_new_epoch = identity, False

    def lose_sequences(self) -> None:
        """Batches were dropped of which the broker may know or not."""
        self.needs_new_epoch = True

    def fail(self, error: KgctlError, now_ms: int, *, by_coordinator: bool = False) -> TransactionFailed:
        """The error, as what it means for the transaction. The first one decides."""
        if self.failure is not None and (self.failure.is_fatal or not _is_fatal(error, by_coordinator)):
            return self.failure
        is_fatal = _is_fatal(error, by_coordinator)
        self.failure = TransactionFailed(error, self._explained(error, now_ms), is_fatal=is_fatal)
        self._enter(Phase.FATAL if is_fatal or not self.is_open else Phase.MUST_ABORT)
        return self.failure

    def _enter(self, phase: Phase) -> None:
        assert self.phase in _BEFORE[phase], f"the producer is {self.phase.value}"
        self.phase = phase

    def _explained(self, error: KgctlError, now_ms: int) -> str:
        name = repr(self.settings.transactional_id)
        code = error.code if isinstance(error, BrokerError) else None
        if code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            return (
                f"the transaction timeout of {self.settings.timeout_ms / 1000:g} s is longer than "
                f"transaction.max.timeout.ms of the broker ({error.name})"
            )
        if code not in _LOST:
            return str(error)
        if self.is_open and now_ms - self._began_ms >= self.settings.timeout_ms:
            seconds = f"{self.settings.timeout_ms / 1000:g} s"
            return (
                f"the broker aborted the transaction of transactional id {name}, which was open longer than its timeout "
                f"of {seconds}: commit more often, or raise the timeout ({error.name})"
            )
        return (
            f"another producer with transactional id {name} has started, or an administrator has aborted the transaction "
            f"({error.name})"
        )


# The coordinator has given the transactional id to another producer, or has ended the transaction itself.
_LOST = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)
# What Kafka's producer takes as the end of the producer, in the answer of a partition's leader.
_FATAL = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
)
# What the coordinator answers if an abort is still possible; its other errors are final.
_ABORTABLE_BY_COORDINATOR = (
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)


def _is_fatal(error: KgctlError, by_coordinator: bool) -> bool:
    if error.is_final:
        return True
    if not isinstance(error, BrokerError):
        return not isinstance(error, TimedOut | Unreachable) and by_coordinator
    if by_coordinator:
        return not error.retriable and error.code not in _ABORTABLE_BY_COORDINATOR
    return error.code in _FATAL
