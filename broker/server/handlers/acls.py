"""CreateAcls, DescribeAcls and DeleteAcls, with the checks and messages of Kafka's AclApis and AclControlManager."""

from __future__ import annotations

from collections.abc import Generator
from enum import IntEnum
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from broker.protocol.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from broker.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from broker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from broker.protocol.wire_types import Gradual
from broker.security.acls.bindings import Binding, Filter
from broker.server.declaration import FEWER_ENTRIES, Declaration, Slicing
from broker.server.exchange import RequestRefused
from broker.server.gradual import Turns, encoded
from broker.server.guards import on_cluster

if TYPE_CHECKING:
    from broker.server.declaration import SliceHandler
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources
    from broker.server.stored_acls import StoredAcls

# How many run in one slice of a request.
CREATIONS_PER_SLICE = 100
ACLS_PER_STEP = 50
NEEDS_ALTER = "The principal needs ALTER on the cluster."
NEEDS_DESCRIBE = "The principal needs DESCRIBE on the cluster."

E = TypeVar("E", bound=IntEnum)
_Result = CreateAclsResponse.Result


class _Invalid(Exception):
    """An entry of the request is not valid; the text is Kafka's."""


def _number(kind: type[E], number: int) -> E:
    """The member of an enumeration; a number that it does not have is UNKNOWN."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def _refuse_unknown(*numbers: int) -> None:
    """Kafka refuses requests with the number of UNKNOWN as it reads them, whoever sends them."""
    if ResourceType.UNKNOWN in numbers:
        raise RequestRefused("the request has an ACL or a filter with an UNKNOWN element")


# -- CreateAcls


def create_acls(request: CreateAclsRequest, exchange: Exchange, resources: Resources) -> SliceHandler:
    has_any = False
    for asked in request.creations:
        numbers = asked.resource_type, asked.resource_pattern_type, asked.operation, asked.permission_type
        _refuse_unknown(*numbers)
        has_any = has_any or _is_filter(*numbers)
    acls = resources.authorizer
    denying = [asked for asked in request.creations if asked.permission_type == Permission.DENY]

    def run(part: CreateAclsRequest, answerable: Answerable) -> CreateAclsResponse:
        if acls is None:
            refusal = _Result(error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured.")
        elif has_any:
            # Kafka fails on the whole request.
            refusal = _Result(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            # What denies goes first: in between, and if the client disconnects, no more is allowed than was asked for.
            while denying:
                _create(denying.pop(), acls)
            return CreateAclsResponse(results=[_create(asked, acls) for asked in part.creations])
        return CreateAclsResponse(results=[refusal] * len(part.creations))

    return run


def _is_filter(kind: int, pattern: int, operation: int, permission: int) -> bool:
    return (
        kind == ResourceType.ANY
        or pattern in (PatternType.ANY, PatternType.MATCH)
        or operation == Operation.ANY
        or permission == Permission.ANY
    )


def _create(asked: CreateAclsRequest.Creation, acls: StoredAcls) -> CreateAclsResponse.Result:
    binding = Binding(
        _number(ResourceType, asked.resource_type),
        _number(PatternType, asked.resource_pattern_type),
        asked.resource_name,
        asked.principal,
        asked.host,
        _number(Operation, asked.operation),
        _number(Permission, asked.permission_type),
    )
    try:
        _check(binding)
    except _Invalid as error:
        return _Result(error_code=ErrorCode.INVALID_REQUEST, error_message=str(error))
    acls.add(binding)
    return _Result(error_message="")


def _check(binding: Binding) -> None:
    if binding.kind == ResourceType.CLUSTER and binding.name != CLUSTER_NAME:
        raise _Invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not binding.name:
        raise _Invalid("Invalid empty resource name")
    for name, value in (
        ("resourceType", binding.kind),
        ("patternType", binding.pattern),
        ("operation", binding.operation),
        ("permissionType", binding.permission),
    ):
        if value == 0:
            raise _Invalid(f"Invalid {name} UNKNOWN")
    if ":" not in binding.principal:
        raise _Invalid(
            f"Could not parse principal from `{binding.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )


# -- DescribeAcls


def describe_acls(
    request: DescribeAclsRequest, exchange: Exchange, resources: Resources
) -> DescribeAclsResponse | None:
    chosen = _filter(request)
    acls = resources.authorizer
    if acls is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
        )
    Turns(exchange, _describing(acls, chosen, exchange.version)).resume()
    return None


def _describing(acls: StoredAcls, chosen: Filter, version: int) -> Generator[None, None, DescribeAclsResponse]:
    found = [] if _unknown_part(chosen) else (yield from _search(acls, chosen))
    by_pattern: list[list[Binding]] = []
    for number, (_, bindings) in enumerate(groupby(found, key=itemgetter(0, 1, 2)), 1):
        by_pattern.append(list(bindings))
        if number % ACLS_PER_STEP == 0:
            yield
    response = DescribeAclsResponse(error_message="", resources=Gradual(by_pattern, _described, ACLS_PER_STEP))
    yield from encoded(response, version)
    return response


def _search(acls: StoredAcls, chosen: Filter) -> Generator[None, None, list[Binding]]:
    """The ACLs that a filter selects, in several turns."""
    found = []
    for number, binding in enumerate(acls.scan(chosen), 1):
        if binding is not None:
            found.append(binding)
        if number % ACLS_PER_STEP == 0:
            yield
    return found


def _described(bindings: list[Binding]) -> DescribeAclsResponse.Resource:
    kind, pattern, name, *_ = bindings[0]
    return DescribeAclsResponse.Resource(
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        acls=[
            DescribeAclsResponse.Acl(
                principal=binding.principal,
                host=binding.host,
                operation=binding.operation,
                permission_type=binding.permission,
            )
            for binding in bindings
        ],
    )


def _filter(asked: DescribeAclsRequest | DeleteAclsRequest.Filter) -> Filter:
    _refuse_unknown(asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)
    return Filter(
        _number(ResourceType, asked.resource_type_filter),
        _number(PatternType, asked.pattern_type_filter),
        asked.resource_name_filter,
        asked.principal_filter,
        asked.host_filter,
        _number(Operation, asked.operation),
        _number(Permission, asked.permission_type),
    )


def _unknown_part(chosen: Filter) -> str | None:
    if 0 in (chosen.kind, chosen.pattern):
        return "patternFilter"
    return "entryFilter" if 0 in (chosen.operation, chosen.permission) else None


# -- DeleteAcls


def delete_acls(request: DeleteAclsRequest, exchange: Exchange, resources: Resources) -> DeleteAclsResponse | None:
    filters = [_filter(asked) for asked in request.filters]
    acls = resources.authorizer
    if acls is None:
        refusal = DeleteAclsResponse.FilterResult(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
        )
        return DeleteAclsResponse(filter_results=[refusal] * len(filters))
    Turns(exchange, _deleting(acls, filters, exchange.version)).resume()
    return None


def _deleting(acls: StoredAcls, filters: list[Filter], version: int) -> Generator[None, None, DeleteAclsResponse]:
    """All filters see the ACLs as they were; then everything that they found is removed."""
    results: list[DeleteAclsResponse.FilterResult] = []
    found: dict[Binding, None] = {}
    for chosen in filters:
        unknown = _unknown_part(chosen)
        if unknown is not None:
            message = f"Unknown {unknown}."
            results.append(DeleteAclsResponse.FilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=message))
            continue
        selected = yield from _search(acls, chosen)
        found.update(dict.fromkeys(selected))
        matching = Gradual(selected, _deleted, ACLS_PER_STEP)
        results.append(DeleteAclsResponse.FilterResult(matching_acls=matching))
    # What allows goes first: in between, and if the client disconnects, no more is allowed than before.
    order = sorted(found, key=lambda binding: binding.permission != Permission.ALLOW)
    for number, binding in enumerate(order, 1):
        acls.remove(binding)
        if number % ACLS_PER_STEP == 0:
            yield
    response = DeleteAclsResponse(filter_results=results)
    yield from encoded(response, version)
    return response


def _deleted(binding: Binding) -> DeleteAclsResponse.MatchingAcl:
    return DeleteAclsResponse.MatchingAcl(
        resource_type=binding.kind,
        resource_name=binding.name,
        pattern_type=binding.pattern,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )


# -- refusals


def _may_not_create(request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
    return CreateAclsResponse(results=[_Result(error_code=code, error_message=NEEDS_ALTER)] * len(request.creations))


def _may_not_describe(request: DescribeAclsRequest, code: ErrorCode) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=NEEDS_DESCRIBE)


def _may_not_delete(request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
    refusal = DeleteAclsResponse.FilterResult(error_code=code, error_message=NEEDS_ALTER)
    return DeleteAclsResponse(filter_results=[refusal] * len(request.filters))


REQUESTS = (
    Declaration(
        CreateAclsRequest,
        create_acls,
        on_cluster(Operation.ALTER, _may_not_create),
        # Each entry has its own answer, also a duplicate.
        Slicing("creations", "results", id, CREATIONS_PER_SLICE),
        max_entries=FEWER_ENTRIES,
    ),
    Declaration(DescribeAclsRequest, describe_acls, on_cluster(Operation.DESCRIBE, _may_not_describe)),
    Declaration(
        DeleteAclsRequest,
        delete_acls,
        on_cluster(Operation.ALTER, _may_not_delete),
        max_entries=FEWER_ENTRIES,
    ),
)
