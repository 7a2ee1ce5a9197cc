"""kafka-acls: `--list`."""

from __future__ import annotations

from collections.abc import Sequence

from broker.protocol.acls import PatternType, ResourceType
from broker.security.acls.bindings import Filter
from kgctl.client.admin.acls import list_acls
from kgctl.compat.java_errors import JavaError
from kgctl.compat.options import HELP, Arguments, BadOption, Option, UsageError, exclude, parse
from kgctl.compat.tool import DIALECTS, Ended, Host, Session
from kgctl.model.acls import AclRow

_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
_CHANGES = ("add", "remove")
_ONLY_FOR_CHANGES = ("producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal")
# Kafka 3.9 has blanks around its line ends.
_BLANK = {"3.9": " ", "4.1": ""}
_CLUSTER = "kafka-cluster"
_FAILED = 1


def run(arguments: Sequence[str], host: Host) -> Ended:
    """Raises UsageError."""
    if not arguments or "--help" in arguments:
        raise UsageError("This tool helps to manage acls on kafka.")
    if "--version" in arguments:
        host.out(f"{DIALECTS[host.dialect]}\n")
        return Ended(0, 0)
    try:
        found = _parsed(arguments)
        filters = _filters(found)
        servers, config = found.value("bootstrap-server"), found.value("command-config")
    except BadOption as error:
        raise UsageError(error.message) from error
    try:
        with host.connect(servers, config, None) as admin:
            _list(Session(host, admin), found, filters)
    except JavaError as error:
        host.out(f"Error while executing ACL command: {error.message}\n{error}\n\n")
        return Ended(error.exit_code, _FAILED)
    return Ended(0, 0)


def _parsed(arguments: Sequence[str]) -> Arguments:
    flags = ("list", *_CHANGES, "cluster", "idempotent", "force", "producer", "consumer")
    values = ("bootstrap-server", "command-config", *_RESOURCES, "operation", *_ONLY_FOR_CHANGES[2:])
    options = [
        *map(Option, (*HELP, *flags)),
        *(Option(name, "value") for name in values),
        Option("principal", "optional"),
        Option("resource-pattern-type", "value", "literal"),
    ]
    found = parse(options, arguments)
    if sum(map(found.has, ("list", *_CHANGES))) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    if found.has(*_CHANGES):
        raise UsageError("kgctl only lists here; `kgctl acls add` and `kgctl acls remove` show a plan first")
    exclude(found, "list", _ONLY_FOR_CHANGES)
    return found


def _filters(found: Arguments) -> list[Filter]:
    given = (found.value("resource-pattern-type") or "").upper()
    if given not in ("LITERAL", "PREFIXED", "MATCH", "ANY"):
        raise UsageError(f"Cannot parse argument '{given.lower()}' of option resource-pattern-type")
    pattern = PatternType[given]
    filters = [
        Filter(kind, pattern, name.strip())
        for option, kind in _RESOURCES.items()
        if found.has(option)
        for name in found.values(option)
    ]
    if found.has("cluster") and pattern == PatternType.LITERAL:
        filters.append(Filter(ResourceType.CLUSTER, pattern, _CLUSTER))
    return filters


def _list(session: Session, found: Arguments, filters: Sequence[Filter]) -> None:
    rows = session.run(list_acls(session.admin.cluster, filters or [Filter()]), "describeAcls")
    principals = [name.strip() for name in found.values("principal")] if found.has("principal") else []
    if not principals:
        _show(session, rows)
    for principal in dict.fromkeys(principals):
        session.out(f"ACLs for principal `{principal}`\n")
        _show(session, [row for row in rows if row.principal == principal])


def _show(session: Session, rows: Sequence[AclRow]) -> None:
    by_resource: dict[tuple[str, str, str], list[AclRow]] = {}
    for row in rows:
        by_resource.setdefault((row.resource_type, row.resource, row.pattern_type), []).append(row)
    for (kind, name, pattern), some in by_resource.items():
        resource = f"ResourcePattern(resourceType={kind.upper()}, name={name}, patternType={pattern.upper()})"
        lines = [
            f"\t(principal={row.principal}, host={row.host}, operation={row.operation.upper()}, "
            f"permissionType={row.permission.upper()})"
            for row in some
        ]
        blank = _BLANK[session.host.dialect]
        session.out(f"Current ACLs for resource `{resource}`:{blank}\n{blank}" + "\n".join(lines) + f"{blank}\n\n")
