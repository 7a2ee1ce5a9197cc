"""Guards: what a request requires of its sender. The router runs the guard of a request before its handler.

A guard passes the request, refuses it with a whole answer, or narrows it: the handler gets what is allowed of it, and the answer
is completed with what is denied. Without an authorizer no guard runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.server.exchange import RequestRefused

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message, Struct
    from broker.server.access import Access
    from broker.server.exchange import Answerable
    from broker.server.resources import Resources


E = TypeVar("E")


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


def on_each(acl: Acl, asked: str, name: Callable[[Any], str], answered: str, refusal: Callable[[Any], Struct]) -> Guard:
    """The guard of a request about several resources, each of which needs the same operation.

    `asked` and `answered` are the fields of the entries, `name` is the resource of an entry, and `refusal` makes the answer to a
    denied one.
    """

    def check(request: Message, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
        may = access.of(acl.operation, acl.kind)
        allowed, denied = split(getattr(request, asked), lambda entry: may[name(entry)])
        if not denied:
            return PASS
        setattr(request, asked, allowed)

        def complete(response: Message) -> Message:
            setattr(response, answered, [*getattr(response, answered), *map(refusal, denied)])
            return response

        return Narrowed(request, complete)

    return Guard(check, acl)


def unwritten(request: Message, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    """Refuse everything."""
    raise RequestRefused("this request is not served with an authorizer yet")


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
