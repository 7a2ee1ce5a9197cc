"""Lists, adds and removes ACLs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from enum import IntEnum

from broker.light_dataclasses import replace
from broker.protocol.acls import Operation, PatternType, Permission, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from broker.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from broker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from broker.protocol.wire_types import Message
from broker.security.acls.bindings import WILDCARD, Binding, Filter
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.acls import AclChange, AclRow
from kgctl.model.changes import DONE, FAILED, PLANNED

Found = dict[str, BrokerError | None]

EXISTS = "exists"
ACLS_PER_REQUEST = 1000

NO_AUTHORIZER = "the cluster has no authorizer (option authorizer.class.name), so it has no ACLs"


def list_acls(cluster: Cluster, filters: Iterable[Filter]) -> Steps[list[AclRow]]:
    """The ACLs that any of the filters selects, by resource and principal."""
    rows: set[AclRow] = set()
    for chosen in filters:
        request = DescribeAclsRequest(
            resource_type_filter=chosen.kind,
            resource_name_filter=chosen.name,
            pattern_type_filter=chosen.pattern,
            principal_filter=chosen.principal,
            host_filter=chosen.host,
            operation=chosen.operation,
            permission_type=chosen.permission,
        )
        answer = yield from cluster.ask_any(request, DescribeAclsResponse)
        refusal = _refusal("ACLs", answer.error_code, answer.error_message, DescribeAclsRequest)
        if refusal is not None:
            raise refusal
        rows.update(
            AclRow(
                _name(ResourceType, found.resource_type),
                found.resource_name,
                _name(PatternType, found.pattern_type),
                acl.principal,
                _name(Permission, acl.permission_type),
                _name(Operation, acl.operation),
                acl.host,
            )
            for found in answer.resources
            for acl in found.acls
        )
    return sorted(rows)


def plan_addition(cluster: Cluster, bindings: Sequence[Binding]) -> Steps[list[AclChange]]:
    """The ACLs to add. The status of one that exists already says so."""
    rows = sorted({_row(binding) for binding in bindings})
    patterns = dict.fromkeys(binding[:3] for binding in bindings)
    existing = yield from list_acls(cluster, [Filter(kind, pattern, name) for kind, pattern, name in patterns])
    known = set(existing)
    return [AclChange(**asdict(row), status=EXISTS) if row in known else AclChange(**asdict(row)) for row in rows]


def add_acls(cluster: Cluster, plan: Sequence[AclChange]) -> Steps[list[AclChange]]:
    """Add the ACLs of the plan that do not exist. A row for each, with its error if the cluster refuses it."""

    def batch(node: Node, rows: Sequence[AclChange]) -> Batch[str]:
        keys = [_about(row) for row in rows]

        def read(answer: CreateAclsResponse) -> Found:
            return {
                key: _refusal(key, result.error_code, result.error_message, CreateAclsRequest)
                for key, result in zip(keys, answer.results, strict=False)
            }

        request = CreateAclsRequest(creations=[_creation(row) for row in rows])
        return Batch(Ask(node.endpoint, request, CreateAclsResponse), keys, read)

    return (yield from _apply(cluster, plan, batch))


def plan_removal(cluster: Cluster, filters: Iterable[Filter]) -> Steps[list[AclChange]]:
    """The ACLs that any of the filters selects."""
    rows = yield from list_acls(cluster, filters)
    return [AclChange(**asdict(row)) for row in rows]


def remove_acls(cluster: Cluster, plan: Sequence[AclChange]) -> Steps[list[AclChange]]:
    """Remove exactly the ACLs of the plan. A row for each, with its error if the cluster refuses it."""

    def batch(node: Node, rows: Sequence[AclChange]) -> Batch[str]:
        keys = [_about(row) for row in rows]

        def read(answer: DeleteAclsResponse) -> Found:
            return {key: _failure(key, result) for key, result in zip(keys, answer.filter_results, strict=False)}

        request = DeleteAclsRequest(filters=[_exactly(row) for row in rows])
        return Batch(Ask(node.endpoint, request, DeleteAclsResponse), keys, read)

    return (yield from _apply(cluster, plan, batch))


def _apply(
    cluster: Cluster, plan: Sequence[AclChange], batch: Callable[[Node, Sequence[AclChange]], Batch[str]]
) -> Steps[list[AclChange]]:
    planned = {_about(row): row for row in plan if row.status == PLANNED}

    def make(node: Node, keys: list[str]) -> list[Batch[str]]:
        return [batch(node, [planned[key] for key in some]) for some in chunks(keys, ACLS_PER_REQUEST)]

    found = yield from cluster.at_controller(planned, make)
    return [_outcome(row, found[_about(row)]) if row.status == PLANNED else row for row in plan]


def _outcome(row: AclChange, error: KgctlError | None) -> AclChange:
    return replace(row, status=FAILED, error=error.as_row()) if error else replace(row, status=DONE)


def _failure(about: str, result: DeleteAclsResponse.FilterResult) -> BrokerError | None:
    """An ACL that is gone matches nothing, and that is no error."""
    codes = [
        (result.error_code, result.error_message),
        *((acl.error_code, acl.error_message) for acl in result.matching_acls),
    ]
    return _refusal(about, *next((failed for failed in codes if failed[0]), codes[0]), DeleteAclsRequest)


def _refusal(about: str, code: int, message: str | None, request: type[Message]) -> BrokerError | None:
    if not code:
        return None
    reason = NO_AUTHORIZER if code == ErrorCode.SECURITY_DISABLED else message
    return BrokerError(code, about, reason, asked=Asked(request))


# -- rows and messages


def _about(row: AclRow) -> str:
    pattern = "" if row.pattern_type == PatternType.LITERAL.name else f" {row.pattern_type}"
    host = "" if row.host == WILDCARD else f" from {row.host}"
    return f"ACL {row.permission} {row.operation} on {row.resource_type}{pattern} {row.resource!r} for {row.principal}{host}"


def _row(binding: Binding) -> AclRow:
    return AclRow(
        binding.kind.name,
        binding.name,
        binding.pattern.name,
        binding.principal,
        binding.permission.name,
        binding.operation.name,
        binding.host,
    )


def _creation(row: AclRow) -> CreateAclsRequest.Creation:
    return CreateAclsRequest.Creation(
        resource_type=_number(ResourceType, row.resource_type),
        resource_name=row.resource,
        resource_pattern_type=_number(PatternType, row.pattern_type),
        principal=row.principal,
        host=row.host,
        operation=_number(Operation, row.operation),
        permission_type=_number(Permission, row.permission),
    )


def _exactly(row: AclRow) -> DeleteAclsRequest.Filter:
    return DeleteAclsRequest.Filter(
        resource_type_filter=_number(ResourceType, row.resource_type),
        resource_name_filter=row.resource,
        pattern_type_filter=_number(PatternType, row.pattern_type),
        principal_filter=row.principal,
        host_filter=row.host,
        operation=_number(Operation, row.operation),
        permission_type=_number(Permission, row.permission),
    )


def _name(kind: type[IntEnum], number: int) -> str:
    """Kafka's name of a number; the number itself if a newer Kafka sent it."""
    return kind(number).name if number in kind._value2member_map_ else str(number)


def _number(kind: type[IntEnum], name: str) -> int:
    return kind[name].value if name in kind.__members__ else int(name)
