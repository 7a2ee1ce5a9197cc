"""What can go wrong for a producer, beyond what a broker answers."""

from __future__ import annotations

from kgctl.client.net.errors import KgctlError, Precondition, TimedOut


class BufferFull(TimedOut):
    """No memory became free within max.block.ms: records come faster than the cluster takes them (buffer.memory)."""

    name = "BUFFER_FULL"


class RecordTooLarge(KgctlError):
    """A record is larger than max.request.size or buffer.memory, or than its topic allows (max.message.bytes)."""

    name = "RECORD_TOO_LARGE"


class ProducerClosed(KgctlError):
    """The producer is closed, or was closed before the record was acknowledged."""

    name = "PRODUCER_CLOSED"


class WrongState(Precondition):
    """A call that does not fit the state of the producer, such as a commit without a transaction."""

    changed_nothing = True


class TransactionFailed(KgctlError):
    """The transaction cannot be committed. `is_fatal`: it cannot be aborted either, and the producer cannot continue.

    The broker has aborted it then, or aborts it after transaction.timeout.ms.
    """

    is_fatal = True

    def __init__(self, cause: KgctlError, text: str) -> None:
        super().__init__(text)
        self.name = cause.name
        self.__cause__ = cause


class TransactionAbortable(TransactionFailed):
    """The transaction must be aborted; the producer can begin the next one."""

    is_fatal = False


class ProducerFenced(TransactionFailed):
    """Another producer with the transactional id has started, or the broker has ended the transaction: close this one."""


class OutcomeUnknown(TimedOut):
    """The answer to a commit is missing: the transaction is committed, or the broker aborts it later. Committing again may show which."""

    def __init__(self, cause: KgctlError) -> None:
        super().__init__(f"the transaction may be committed or not: {cause}")
        self.name = cause.name


class TransactionAborted(KgctlError):
    """The record was not sent before its transaction was aborted."""

    name = "TRANSACTION_ABORTED"

    def __init__(self) -> None:
        super().__init__("the transaction was aborted before the record was sent")
