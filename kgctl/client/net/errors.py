"""What can go wrong between kgctl and a cluster."""

from __future__ import annotations

from broker.protocol.errors import ErrorCode
from kgctl.model.failure import RowError


class KgctlError(Exception):
    """A failure that one line explains. `retriable`: the same request may succeed in a moment."""

    retriable = False
    name = "ERROR"

    def as_row(self) -> RowError:
        """The failure as part of a table: Kafka's name for it, or ours."""
        return RowError(self.name, str(self))


def from_row(error: RowError) -> KgctlError:
    """A failure again, of what was part of a table."""
    failure = NotFound(error.message) if error.name == NotFound.name else KgctlError(error.message)
    failure.name = error.name
    return failure


class TimedOut(KgctlError):
    name = "TIMED_OUT"


class BadValue(KgctlError):
    """A value that no request can carry: a number too large, a name that is not text."""

    name = "BAD_VALUE"


class NotFound(KgctlError):
    name = "NOT_FOUND"


class Precondition(KgctlError):
    """The cluster is not in the state that the command needs: a group has members, a topic exists already."""

    name = "PRECONDITION"


class Unreachable(KgctlError):
    retriable = True
    name = "UNREACHABLE"


class Refused(Unreachable):
    """Nothing listens at the address."""


class NotKafka(Unreachable):
    """Something answers at the address, but not in Kafka's protocol."""

    retriable = False


class Unsupported(KgctlError):
    """The broker lacks a request, or the version of it, that a command needs."""

    name = "UNSUPPORTED"


class LeftOut(Unsupported):
    """The broker answered, but not about this: what became of it is not known."""

    def __init__(self, about: str) -> None:
        super().__init__(f"{about}: the broker left it out of its answer")


class BrokerError(KgctlError):
    """An error code that a broker answered, and what it was about."""

    def __init__(self, code: int, about: str, message: str | None = None, *, by_leader: bool = False) -> None:
        known = ErrorCode._value2member_map_.get(code)
        kind = known if isinstance(known, ErrorCode) else None
        self.code = code
        self.name = kind.name if kind else f"error {code}"
        # A topic that metadata lacks is an answer: a stale commit must not cost every table three seconds. From the
        # leader that metadata names it is a topic so new that the leader has not heard of it.
        self.retriable = kind is not None and kind.retriable and (by_leader or code not in _FINAL)
        reason = _HINTS.get(code) or message or (kind.meaning if kind else "the broker refused")
        super().__init__(f"{about}: {reason.rstrip('.')} ({self.name})")


_FINAL = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}

_HINTS: dict[int, str] = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "it exists already",
    ErrorCode.NON_EMPTY_GROUP: "the group has active members; stop them first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group is actively subscribed to the topic",
}
