"""`--add` and `--remove`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.protocol.acls import Operation, PatternType, Permission, ResourceType
from broker.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from broker.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from broker.security.acls.bindings import Binding, Filter
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.compat.acls.entries import Entry, Resource, additions, entries
from kgctl.compat.java_errors import JavaError, of_code
from kgctl.compat.options import Arguments
from kgctl.compat.tool import Session
from kgctl.journal.items import Key, acls_added, acls_removed
from kgctl.journal.results import Outcome
from kgctl.model.acls import AclChange
from kgctl.model.items import ACL, Item

# Kafka 3.9 has blanks around its line ends.
BLANK = {"3.9": " ", "4.1": ""}
_ANY = 1  # any operation, any permission


def run_add(session: Session, found: Arguments) -> None:
    for resource, some in additions(found).items():
        session.host.may_change([])
        session.out(f"Adding ACLs for resource `{resource}`: \n {listed(some)}{BLANK[session.host.dialect]}\n\n")
        creations = [
            CreateAclsRequest.Creation(
                resource_type=resource.kind,
                resource_name=resource.name,
                resource_pattern_type=resource.pattern,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for entry in some
        ]
        for row in _add(session, resource, some, creations).results:
            _raise_first([(row.error_code, row.error_message)])


def run_remove(session: Session, found: Arguments) -> None:
    for resource, some in entries(found).items():
        if not found.has("force"):
            session.out(_question(resource, some, BLANK[session.host.dialect]))
            if not _is_confirmed(session):
                continue
        session.host.may_change([])
        for result in _remove(
            session, [_filter(resource, entry) for entry in some] or [_filter(resource)]
        ).filter_results:
            _raise_first(
                [
                    (result.error_code, result.error_message),
                    *((row.error_code, row.error_message) for row in result.matching_acls),
                ]
            )


def _add(
    session: Session, resource: Resource, some: Sequence[Entry], creations: list[CreateAclsRequest.Creation]
) -> CreateAclsResponse:
    bindings = [Binding(*resource, entry.principal, entry.host, entry.operation, entry.permission) for entry in some]

    def ask() -> CreateAclsResponse:
        request = CreateAclsRequest(creations=creations)
        return session.run(session.admin.cluster.ask_any(request, CreateAclsResponse), "createAcls")

    def outcomes(answer: CreateAclsResponse) -> list[Outcome]:
        rows = zip(bindings, answer.results, strict=False)
        return [Outcome.of(_key(one), _error(row.error_code, row.error_message)) for one, row in rows]

    return session.change("acls add", lambda: acls_added(_planned(session, bindings)), ask, outcomes, "createAcls")


def _planned(session: Session, bindings: Sequence[Binding]) -> list[AclChange]:
    """What does not exist yet. Nothing if the cluster refuses to show ACLs: then it does not add them either."""
    try:
        return session.admin.plan_acl_addition(bindings)
    except BrokerError:
        return []


def _remove(session: Session, filters: list[DeleteAclsRequest.Filter]) -> DeleteAclsResponse:
    chosen = [
        Filter(
            ResourceType(one.resource_type_filter),
            PatternType(one.pattern_type_filter),
            one.resource_name_filter,
            one.principal_filter,
            one.host_filter,
            Operation(one.operation),
            Permission(one.permission_type),
        )
        for one in filters
    ]
    plan: list[AclChange] = []

    def items() -> Sequence[Item]:
        try:
            plan.extend(session.admin.plan_acl_removal(chosen))
        except BrokerError:
            return []
        return acls_removed(plan)

    def ask() -> DeleteAclsResponse:
        request = DeleteAclsRequest(filters=filters)
        return session.run(session.admin.cluster.ask_any(request, DeleteAclsResponse), "deleteAcls")

    def outcomes(answer: DeleteAclsResponse) -> list[Outcome]:
        gone = {_key(_binding(acl)) for row in answer.filter_results for acl in row.matching_acls if not acl.error_code}
        codes = [(row.error_code, row.error_message) for row in answer.filter_results]
        codes += [(acl.error_code, acl.error_message) for row in answer.filter_results for acl in row.matching_acls]
        failure = next((_error(*one) for one in codes if one[0]), None)
        keys = [item.key for item in acls_removed(plan)]
        return [Outcome.of(key, None if key in gone else failure) for key in keys]

    return session.change("acls remove", items, ask, outcomes, "deleteAcls")


def _binding(acl: DeleteAclsResponse.MatchingAcl) -> Binding:
    return Binding(
        ResourceType(acl.resource_type),
        PatternType(acl.pattern_type),
        acl.resource_name,
        acl.principal,
        acl.host,
        Operation(acl.operation),
        Permission(acl.permission_type),
    )


def _key(one: Binding) -> Key:
    names = (
        one.kind.name,
        one.name,
        one.pattern.name,
        one.principal,
        one.permission.name,
        one.operation.name,
        one.host,
    )
    return (ACL, *names, None)


def _error(code: int, message: str | None) -> KgctlError | None:
    return BrokerError(code, "ACLs", message) if code else None


def listed(some: Iterable[object]) -> str:
    return "\n".join(f"\t{entry}" for entry in some)


def _question(resource: Resource, some: Sequence[Entry], blank: str) -> str:
    if not some:
        return f"Are you sure you want to delete all ACLs for resource filter `{resource}`? (y/n)\n"
    return (
        f"Are you sure you want to remove ACLs: \n {listed(some)}{blank}\n from resource filter `{resource}`? (y/n)\n"
    )


def _is_confirmed(session: Session) -> bool:
    answer = session.host.read_line()
    if not answer:
        raise JavaError("java.lang.IllegalStateException", "stdin has no answer; --force removes without a question")
    return answer.rstrip("\r\n").lower() == "y"


def _filter(resource: Resource, entry: Entry | None = None) -> DeleteAclsRequest.Filter:
    return DeleteAclsRequest.Filter(
        resource_type_filter=resource.kind,
        resource_name_filter=resource.name,
        pattern_type_filter=resource.pattern,
        principal_filter=entry.principal if entry else None,
        host_filter=entry.host if entry else None,
        operation=entry.operation if entry else _ANY,
        permission_type=entry.permission if entry else _ANY,
    )


def _raise_first(results: Iterable[tuple[int, str | None]]) -> None:
    for code, message in results:
        if code:
            raise of_code(code, message).within()
