"""`--add` and `--remove`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from broker.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kgctl.compat.acls.entries import Entry, Resource, additions, entries
from kgctl.compat.java_errors import JavaError, of_code
from kgctl.compat.options import Arguments
from kgctl.compat.tool import Session

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
        asked = session.admin.cluster.ask_any(CreateAclsRequest(creations=creations), CreateAclsResponse)
        _raise_first((row.error_code, row.error_message) for row in session.run(asked, "createAcls").results)


def run_remove(session: Session, found: Arguments) -> None:
    for resource, some in entries(found).items():
        if not found.has("force"):
            session.out(_question(resource, some, BLANK[session.host.dialect]))
            if not _is_confirmed(session):
                continue
        session.host.may_change([])
        request = DeleteAclsRequest(filters=[_filter(resource, entry) for entry in some] or [_filter(resource)])
        asked = session.admin.cluster.ask_any(request, DeleteAclsResponse)
        for result in session.run(asked, "deleteAcls").filter_results:
            _raise_first(
                [
                    (result.error_code, result.error_message),
                    *((row.error_code, row.error_message) for row in result.matching_acls),
                ]
            )


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
