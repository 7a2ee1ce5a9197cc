"""The states of a transactional producer."""

from __future__ import annotations

from enum import Enum

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Kafka's producer options transactional.id and transaction.timeout.ms."""

    transactional_id: str
    timeout_ms: int = 60_000


class State(Enum):
    UNINITIALIZED = "without a producer id"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing a transaction"
    ABORTING = "aborting a transaction"
    MUST_ABORT = "in a transaction that must be aborted"
    FATAL = "unusable"


# What to do in a state that does not allow a call.
NEXT = {
    State.UNINITIALIZED: "call init_transactions first",
    State.INITIALIZING: "repeat init_transactions until it returns",
    State.READY: "call begin_transaction",
    State.IN_TRANSACTION: "call commit_transaction or abort_transaction first",
    State.COMMITTING: "repeat commit_transaction until it returns",
    State.ABORTING: "repeat abort_transaction until it returns",
    State.MUST_ABORT: "call abort_transaction first",
    State.FATAL: "close it",
}
BEFORE = {
    State.UNINITIALIZED: {State.READY, State.MUST_ABORT, State.INITIALIZING},
    State.INITIALIZING: {State.UNINITIALIZED, State.COMMITTING, State.ABORTING},
    State.READY: {State.INITIALIZING, State.COMMITTING, State.ABORTING},
    State.IN_TRANSACTION: {State.READY},
    State.COMMITTING: {State.IN_TRANSACTION},
    State.ABORTING: {State.IN_TRANSACTION, State.MUST_ABORT},
    State.MUST_ABORT: {State.IN_TRANSACTION, State.COMMITTING, State.MUST_ABORT, State.INITIALIZING},
    State.FATAL: set(State),
}
