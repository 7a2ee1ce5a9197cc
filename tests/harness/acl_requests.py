"""Requests about ACLs, and a sequence of them that every broker must answer alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from broker.protocol.messages.create_acls import CreateAclsRequest
from broker.protocol.messages.delete_acls import DeleteAclsRequest
from broker.protocol.messages.describe_acls import DescribeAclsRequest
from broker.protocol.wire_types import Message
from tests.harness.running import until
from tests.harness.wire_client import ConnectionClosed, WireClient

Answer = list[tuple[object, ...]] | str

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, USER = 2, 3, 4, 5, 7
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
ALL, READ, WRITE, CREATE = 2, 3, 4, 5
DENY, ALLOW = 2, 3
UNKNOWN, UNHEARD_OF = 0, 99


def creation(
    name: str = "orders",
    *,
    kind: int = TOPIC,
    pattern: int = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    operation: int = READ,
    permission: int = ALLOW,
) -> CreateAclsRequest.Creation:
    return CreateAclsRequest.Creation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def create(*creations: CreateAclsRequest.Creation) -> CreateAclsRequest:
    return CreateAclsRequest(creations=list(creations))


def _fields(
    name: str | None = None,
    *,
    kind: int = ANY,
    pattern: int = ANY,
    principal: str | None = None,
    host: str | None = None,
    operation: int = ANY,
    permission: int = ANY,
) -> dict[str, Any]:
    return {
        "resource_type_filter": kind,
        "resource_name_filter": name,
        "pattern_type_filter": pattern,
        "principal_filter": principal,
        "host_filter": host,
        "operation": operation,
        "permission_type": permission,
    }


def describe(name: str | None = None, **fields: Any) -> DescribeAclsRequest:
    return DescribeAclsRequest(**_fields(name, **fields))


def chosen(name: str | None = None, **fields: Any) -> DeleteAclsRequest.Filter:
    return DeleteAclsRequest.Filter(**_fields(name, **fields))


def delete(*filters: DeleteAclsRequest.Filter) -> DeleteAclsRequest:
    return DeleteAclsRequest(filters=list(filters))


def entries(response: Any) -> list[tuple[object, ...]]:
    """What an answer says, independent of its order where Kafka has none."""
    if hasattr(response, "resources"):
        found = [
            (each.resource_type, each.pattern_type, each.resource_name, *_entry(acl))
            for each in response.resources
            for acl in each.acls
        ]
        return [(response.error_code, response.error_message), *sorted(found)]
    if hasattr(response, "results"):
        return [(each.error_code, each.error_message) for each in response.results]
    return [
        (
            each.error_code,
            each.error_message,
            *sorted(
                (acl.error_code, acl.resource_type, acl.pattern_type, acl.resource_name, *_entry(acl))
                for acl in each.matching_acls
            ),
        )
        for each in response.filter_results
    ]


def _entry(acl: Any) -> tuple[object, ...]:
    return acl.principal, acl.host, acl.operation, acl.permission_type


def ask(client: WireClient, request: Message, version: int | None = None) -> Answer:
    """What the answer says, or "closed"."""
    try:
        return entries(client.ask(request, version))
    except (ConnectionClosed, ConnectionResetError):
        return "closed"


_BAD_NUMBERS = (UNKNOWN, ANY, UNHEARD_OF, -1)

CHANGES = [
    create(creation(), creation("orders"), creation("", kind=GROUP), creation("batch")),
    create(creation("bad", principal="alice"), creation("good", principal="Group:x"), creation("also", principal=":")),
    create(creation("bad", principal=""), creation("named", host="no such host"), creation("naïve *", host="")),
    create(creation("kafka-cluster", kind=CLUSTER), creation("*", kind=CLUSTER), creation("other", kind=CLUSTER)),
    create(creation("kafka-cluster", kind=CLUSTER, pattern=PREFIXED, operation=CREATE)),
    create(creation("User:bob", kind=USER, operation=13), creation("not a principal", kind=USER, operation=13)),
    create(
        creation("ord", pattern=PREFIXED), creation("*", permission=DENY, host="10.0.0.1"), creation("*", kind=GROUP)
    ),
    create(creation("o", pattern=PREFIXED, principal="User:*", operation=ALL), creation("odd", operation=9)),
    create(creation("valid"), creation(kind=ANY), creation("also-valid")),
    create(creation("n" * 30000, kind=TRANSACTIONAL_ID, operation=WRITE)),
    create(),
    *(create(creation("bad", kind=number)) for number in _BAD_NUMBERS),
    *(create(creation("bad", pattern=number)) for number in (*_BAD_NUMBERS, MATCH)),
    *(create(creation("bad", operation=number)) for number in _BAD_NUMBERS),
    *(create(creation("bad", permission=number)) for number in _BAD_NUMBERS),
]
QUESTIONS = [
    describe(),
    describe(kind=TOPIC),
    describe("orders"),
    describe("orders", pattern=MATCH),
    describe("orders", pattern=MATCH, kind=GROUP),
    describe("orders", pattern=PREFIXED),
    describe("ord", pattern=PREFIXED, kind=TOPIC),
    describe("*", kind=TOPIC, pattern=LITERAL),
    describe("*", pattern=MATCH),
    describe(None, pattern=MATCH, kind=CLUSTER),
    describe(principal="User:*"),
    describe(principal="alice"),
    describe(host="10.0.0.1", permission=DENY),
    describe(host="*", operation=READ),
    describe(""),
    *(describe(kind=number) for number in (UNKNOWN, UNHEARD_OF, -1)),
    *(describe(pattern=number) for number in (UNKNOWN, UNHEARD_OF)),
    *(describe(operation=number) for number in (UNKNOWN, UNHEARD_OF, ALL)),
    *(describe(permission=number) for number in (UNKNOWN, UNHEARD_OF)),
]
REMOVALS = [
    delete(chosen("nothing")),
    delete(chosen("batch"), chosen(kind=UNHEARD_OF), chosen("batch", kind=TOPIC, principal="User:alice")),
    delete(chosen(operation=UNHEARD_OF), chosen(permission=UNHEARD_OF), chosen(pattern=UNHEARD_OF)),
    delete(chosen("bad"), chosen(kind=UNKNOWN)),
    delete(chosen("orders", pattern=MATCH, kind=TOPIC)),
    delete(),
    delete(chosen(kind=USER), chosen()),
]


def play(connect: Callable[[], WireClient]) -> Iterator[tuple[str, Answer]]:
    """Send all of them in order, in every version. Yields what was asked and what was answered."""
    for step, part in enumerate((CHANGES, QUESTIONS, REMOVALS, [describe()])):
        _settle(connect, step)
        for number, request in enumerate(part):
            version = 1 + number % 3
            asked = f"{request} v{version}"
            with connect() as client:
                yield asked, ask(client, request, version)


def _settle(connect: Callable[[], WireClient], step: int) -> None:
    """Wait until earlier changes are in force: a Kafka answers before its broker has applied them."""
    name = f"settled-{step}"
    with connect() as client:
        client.ask(create(creation(name)))
        until(lambda: client.ask(describe(name)).resources)
