"""What can go wrong between kgctl and a cluster."""

from __future__ import annotations

from broker.protocol.errors import ErrorCode
from kgctl.client.net.authorization import REFUSALS, Asked, missing_permission
from kgctl.model.failure import RowError


class KgctlError(Exception):
    """A failure that one line explains.

    `retriable`: the same request may succeed later. `is_final`: nothing succeeds until somebody changes the settings or the
    cluster, so that not even a program that runs for long should try again by itself. `changed_nothing`: it was raised
    before a change began.
    """

    retriable = False
    is_final = False
    changed_nothing = False
    name = "ERROR"

    def as_row(self) -> RowError:
        """The failure as part of a table, with Kafka's name for it or kgctl's."""
        return RowError(self.name, str(self))


def from_row(error: RowError) -> KgctlError:
    """The error of a row, to raise it."""
    kind = {NotFound.name: NotFound, Precondition.name: Precondition}.get(error.name, KgctlError)
    failure = kind(error.message)
    failure.name = error.name
    return failure


class TimedOut(KgctlError):
    name = "TIMED_OUT"


class NoAnswer(TimedOut):
    """A request got no answer within its time-out. The broker may have executed it."""

    retriable = True


class InsideCallback(KgctlError):
    """A callback waits for its own client, whose thread it keeps from working. Kafka's flush raises a KafkaException then."""

    name = "INSIDE_CALLBACK"

    def __init__(self) -> None:
        super().__init__(
            "a callback cannot wait for its own client: it runs in the client's thread, which does the work that it waits"
            " for; return from the callback, and wait in another thread"
        )


class BadValue(KgctlError):
    """A value that no request can carry: a number too large, a name that is not text."""

    name = "BAD_VALUE"


class NotFound(KgctlError):
    name = "NOT_FOUND"


def missing_partition(topic: str, partition: int, count: int) -> NotFound:
    return NotFound(f"topic {topic!r} has no partition {partition}: it has {count}, numbered from 0")


class Precondition(KgctlError):
    """The cluster is not in the required state: a group has members, a topic already exists."""

    name = "PRECONDITION"


class Unreachable(KgctlError):
    retriable = True
    name = "UNREACHABLE"


class Refused(Unreachable):
    """Nothing listens at the address."""


class NotKafka(Unreachable):
    """What answers at the address does not speak Kafka's protocol."""

    retriable = False


class TlsFailed(KgctlError):
    """The TLS handshake failed."""

    is_final = True
    name = "TLS_FAILED"


class AuthenticationFailed(KgctlError):
    """The cluster does not accept the credentials, or there are none to give. Repeated attempts may lock a user out."""

    is_final = True
    name = "SASL_AUTHENTICATION_FAILED"


class Unsupported(KgctlError):
    """The broker does not offer a request, or not in the required version."""

    name = "UNSUPPORTED"


class LeftOut(Unsupported):
    """The broker answered without this item, so its outcome is unknown."""

    name = "NO_ANSWER"

    def __init__(self, about: str) -> None:
        super().__init__(f"{about}: the answer of the broker does not contain it")


class BrokerError(KgctlError):
    """An error code from a broker, and what it is about. `asked` lets it name the permission that is missing.

    An error about permissions is an AuthorizationFailed.
    """

    def __new__(cls, code: int, *others: object, **named: object) -> BrokerError:
        return super().__new__(AuthorizationFailed if cls is BrokerError and code in REFUSALS else cls)

    def __init__(
        self,
        code: int,
        about: str,
        message: str | None = None,
        *,
        asked: Asked | None = None,
        by_leader: bool = False,
    ) -> None:
        known = ErrorCode._value2member_map_.get(code)
        kind = known if isinstance(known, ErrorCode) else None
        self.code = code
        self.name = kind.name if kind else f"error {code}"
        # Metadata without a topic is final: a stale commit must not delay every table by three seconds. From the leader
        # of the metadata it means that the topic is new, and that the leader does not have it yet.
        self.retriable = kind is not None and kind.retriable and (by_leader or code not in _FINAL)
        reason = _HINTS.get(code) or message or (kind.meaning if kind else "the broker refused")
        text = f"{about}: {reason.rstrip('.')}"
        if asked is not None and (permission := missing_permission(code, asked)):
            # Often the resource is all that the error is about.
            resources = (
                f"group {asked.group!r}",
                f"topic {asked.topic!r}",
                f"transactional id {asked.transactional_id!r}",
            )
            is_resource = about in resources
            text = permission if is_resource else f"{about}: {permission}"
        super().__init__(f"{text} ({self.name})")


class AuthorizationFailed(BrokerError):
    """The user lacks a permission."""


def is_missing(error: KgctlError) -> bool:
    """Whether a broker says that the partition does not exist; a new topic may not be known everywhere yet."""
    return isinstance(error, BrokerError) and error.code in _FINAL


_FINAL = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}

_HINTS: dict[int, str] = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "it already exists",
    ErrorCode.NON_EMPTY_GROUP: "the group has active members; stop them first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group is actively subscribed to the topic",
}
