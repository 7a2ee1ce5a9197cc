"""Guards: what a request requires of its sender. The router runs the guard of a request before its handler.

A guard passes the request, refuses it with a whole answer, or narrows it: the handler gets what is allowed of it, and the answer
is completed with what is denied. Without an authorizer no guard runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from broker.light_named_tuples import NamedTuple
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import NEVER, Gradual

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message, Struct
    from broker.server.access import Access
    from broker.server.exchange import Answerable
    from broker.server.resources import Resources


E = TypeVar("E")

# Kafka's messages, in those answers that have a field for them.
DENIALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}


class Passed(NamedTuple):
    """The handler runs."""


class Refused(NamedTuple):
    """The handler does not run; this is the answer."""

    response: Message


class Narrowed(NamedTuple):
    """The handler runs with this request; `complete` adds to its answer what is denied, or removes it."""

    request: Message
    complete: Callable[[Any], Message]


PASS = Passed()
Verdict: TypeAlias = Passed | Refused | Narrowed
# It may change the request if it refuses or narrows it.
Check = Callable[[Any, "Access", "Answerable", "Resources"], Verdict]


class Acl(NamedTuple):
    """An operation on a type of resource."""

    operation: Operation
    kind: ResourceType


class Guard:
    """A check, and the operations that it may ask for, which documentation shows. Without any, everybody passes."""

    __slots__ = ("acls", "check")

    def __init__(self, check: Check, *acls: Acl) -> None:
        self.check = check
        self.acls = acls


def _pass(request: Message, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    return PASS


# For requests that every client may send, before it has authenticated or without any ACL.
OPEN = Guard(_pass)


def in_handler(*acls: Acl) -> Guard:
    """The guard of a request whose handler asks `Access` itself, because other errors precede a denial, or to leave out rows."""
    return Guard(_pass, *acls)


def on_cluster(operation: Operation, refusal: Callable[[Any, ErrorCode], Message]) -> Guard:
    """The guard of a request that needs one operation on the cluster; `refusal` makes the whole answer if it is denied."""

    def check(request: Message, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
        if access.allows_on_cluster(operation):
            return PASS
        return Refused(refusal(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))

    return Guard(check, Acl(operation, ResourceType.CLUSTER))


def split(entries: Iterable[E], allowed: Callable[[E], bool]) -> tuple[list[E], list[E]]:
    """The entries that are allowed, and the others."""
    passed: list[E] = []
    denied: list[E] = []
    for entry in entries:
        (passed if allowed(entry) else denied).append(entry)
    return passed, denied


def only(entries: Any, keep: Callable[[Any], bool]) -> Any:
    """The entries of an answer for which `keep` is true."""
    return entries.only(keep) if isinstance(entries, Gradual) else list(filter(keep, entries))


def on_each(acl: Acl, asked: str, name: Callable[[Any], str], answered: str, refusal: Callable[[Any], Struct]) -> Guard:
    """The guard of a request about several resources, each of which needs the same operation.

    `asked` and `answered` are the fields of the entries, `name` is the resource of an entry, and `refusal` makes the answer to a
    denied one.
    """

    def check(request: Message, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
        may = access.of(acl.operation, acl.kind)
        return _narrowed(request, asked, lambda entry: may[name(entry)], answered, refusal)

    return Guard(check, acl)


def on_each_topic(
    operation: Operation,
    asked: str,
    name: Callable[[Any], str],
    answered: str,
    refusal: Callable[[Any], Struct],
    *,
    ids_since: int = NEVER,
) -> Guard:
    """Like `on_each`, for topics. From version `ids_since` on, the request names them by `topic_id`; ids that no topic has pass."""

    def check(request: Message, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
        if exchange.version < ids_since:
            return by_name.check(request, access, exchange, resources)
        may = access.of(operation, ResourceType.TOPIC)

        def allowed(entry: Any) -> bool:
            topic = resources.log.topic_by_id(entry.topic_id)
            return topic is None or may[topic.name]

        return _narrowed(request, asked, allowed, answered, refusal)

    by_name = on_each(Acl(operation, ResourceType.TOPIC), asked, name, answered, refusal)
    return by_name if ids_since == NEVER else Guard(check, *by_name.acls)


def _narrowed(
    request: Message,
    asked: str,
    is_allowed: Callable[[Any], bool],
    answered: str,
    refusal: Callable[[Any], Struct],
) -> Verdict:
    allowed, denied = split(getattr(request, asked), is_allowed)
    if not denied:
        return PASS
    setattr(request, asked, allowed)

    def complete(response: Message) -> Message:
        setattr(response, answered, [*getattr(response, answered), *map(refusal, denied)])
        return response

    return Narrowed(request, complete)


Run = Callable[[Any, Any, "Resources"], "Message | None"]


def guarded(guard: Guard, run: Run) -> Run:
    """A handler that runs behind its guard."""

    def handle(request: Message, exchange: Answerable, resources: Resources) -> Message | None:
        verdict = guard.check(request, resources.access(exchange.connection), exchange, resources)
        if verdict is PASS:
            return run(request, exchange, resources)
        if isinstance(verdict, Narrowed):
            exchange.complete = verdict.complete
            return run(verdict.request, exchange, resources)
        assert isinstance(verdict, Refused), f"{verdict!r} is not a verdict"
        return verdict.response

    return handle
