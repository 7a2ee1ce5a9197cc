"""Exit codes of kgctl, one for each kind of failure.

The library names its errors (`KgctlError.name`, `RowError.name`); only this table turns a name into an exit code.
"""

from __future__ import annotations

from typing import Protocol

ERROR, USAGE, TIMED_OUT, PARTLY_FAILED, NOT_FOUND, WRONG_STATE, UNREACHABLE = range(1, 8)
INTERRUPTED = 130

_BY_NAME = {
    "BAD_ADDRESS": USAGE,
    "BAD_OPTION": USAGE,
    "BAD_VALUE": USAGE,
    "INVALID_TRANSACTION_TIMEOUT": USAGE,
    "TIMED_OUT": TIMED_OUT,
    "REQUEST_TIMED_OUT": TIMED_OUT,
    "NOT_FOUND": NOT_FOUND,
    "GROUP_ID_NOT_FOUND": NOT_FOUND,
    "RESOURCE_NOT_FOUND": NOT_FOUND,
    "TRANSACTIONAL_ID_NOT_FOUND": NOT_FOUND,
    "UNKNOWN_MEMBER_ID": NOT_FOUND,
    "UNKNOWN_TOPIC_ID": NOT_FOUND,
    "UNKNOWN_TOPIC_OR_PARTITION": NOT_FOUND,
    "BUSY": WRONG_STATE,
    "CONCURRENT_TRANSACTIONS": WRONG_STATE,
    "DATA_LOSS": WRONG_STATE,
    "GROUP_SUBSCRIBED_TO_TOPIC": WRONG_STATE,
    "INTERNAL_TOPIC": WRONG_STATE,
    "INVALID_PRODUCER_EPOCH": WRONG_STATE,
    "INVALID_TXN_STATE": WRONG_STATE,
    "NOT_CONFIRMED": WRONG_STATE,
    "NO_COMMITTED_OFFSET": WRONG_STATE,
    "NON_EMPTY_GROUP": WRONG_STATE,
    "PRECONDITION": WRONG_STATE,
    "PRODUCER_FENCED": WRONG_STATE,
    "READ_ONLY": WRONG_STATE,
    "REBALANCE_IN_PROGRESS": WRONG_STATE,
    "SECURITY_DISABLED": WRONG_STATE,
    "TOPIC_ALREADY_EXISTS": WRONG_STATE,
    "CLUSTER_AUTHORIZATION_FAILED": UNREACHABLE,
    "GROUP_AUTHORIZATION_FAILED": UNREACHABLE,
    "ILLEGAL_SASL_STATE": UNREACHABLE,
    "SASL_AUTHENTICATION_FAILED": UNREACHABLE,
    "TLS_FAILED": UNREACHABLE,
    "TOPIC_AUTHORIZATION_FAILED": UNREACHABLE,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": UNREACHABLE,
    "UNREACHABLE": UNREACHABLE,
    "UNSUPPORTED_SASL_MECHANISM": UNREACHABLE,
}


class Named(Protocol):
    @property
    def name(self) -> str: ...


def exit_code_of(error: Named) -> int:
    """The exit code for an error or a failed row. An error that carries the code of another program keeps it."""
    own = getattr(error, "exit_code", None)
    return own if isinstance(own, int) else _BY_NAME.get(error.name, ERROR)
