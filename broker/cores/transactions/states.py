"""The states of a transaction, with the codes and names that Kafka gives them."""

from __future__ import annotations

from enum import Enum


class TransactionState(Enum):
    """A state; its value is the byte that `__transaction_state` holds."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        """The name as ListTransactions and DescribeTransactions spell it."""
        return _NAMES[self]

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided and markers are still to be written."""
        return self in _PREPARED

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open, so that a new one may begin and the transactional id may expire."""
        return self in _IDLE


_PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
_IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
_NAMES = {state: "".join(word.capitalize() for word in state.name.split("_")) for state in TransactionState}
# The states that a state record may have, by their byte. Dead and PrepareEpochFence are names only.
STORED = {state.value: state for state in (TransactionState.ONGOING, *_IDLE, *_PREPARED)}
BY_NAME = {name: state for state, name in _NAMES.items()}
