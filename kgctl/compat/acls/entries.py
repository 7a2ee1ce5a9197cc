"""What the options of kafka-acls mean: resources, and the ACLs on each of them."""

from __future__ import annotations

from collections.abc import Iterable

from broker.light_named_tuples import NamedTuple
from broker.protocol.acls import CLUSTER_NAME, OPERATIONS, Operation, PatternType, Permission, ResourceType
from broker.security.acls.bindings import WILDCARD, Filter
from kgctl.client.admin.acl_selection import CONSUMER, IDEMPOTENT, PRODUCER, Role, spell
from kgctl.compat.acls.options import RESOURCES
from kgctl.compat.java_errors import JavaError, illegal_argument
from kgctl.compat.options import Arguments, UsageError


class Resource(NamedTuple):
    """A resource of an ACL, or what selects such resources."""

    kind: ResourceType
    pattern: PatternType
    name: str

    def __str__(self) -> str:
        kind, pattern = self.kind.name, self.pattern.name
        return f"ResourcePattern(resourceType={kind}, name={self.name}, patternType={pattern})"


class Entry(NamedTuple):
    """What an ACL allows or denies."""

    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        return shown(self.principal, self.host, self.operation.name, self.permission.name)


CLUSTER = Resource(ResourceType.CLUSTER, PatternType.LITERAL, CLUSTER_NAME)


def shown(principal: str, host: str, operation: str, permission: str) -> str:
    return f"(principal={principal}, host={host}, operation={operation}, permissionType={permission})"


def pattern_type(found: Arguments) -> PatternType:
    """Raises JavaError."""
    for given in found.values("resource-pattern-type"):
        if PatternType.__members__.get(given.upper(), PatternType.UNKNOWN) == PatternType.UNKNOWN:
            about = f"Cannot parse argument '{given}' of option resource-pattern-type"
            raise JavaError("joptsimple.OptionArgumentConversionException", about, "BAD_VALUE")
    return PatternType[(found.value("resource-pattern-type") or "").upper()]


def resources(found: Arguments) -> list[Resource]:
    """What the options name, sorted. Raises JavaError."""
    pattern = pattern_type(found)
    chosen = {
        Resource(kind, pattern, name if kind == ResourceType.TRANSACTIONAL_ID else name.strip())
        for option, kind in RESOURCES.items()
        for name in found.values(option)
    }
    if pattern == PatternType.LITERAL and found.has("cluster", "idempotent"):
        chosen.add(CLUSTER)
    return sorted(chosen)


def filters(found: Arguments) -> list[Filter]:
    """What `--list` asks for. Raises JavaError."""
    return [Filter(*resource) for resource in resources(found)] or [Filter()]


def principals(found: Arguments, option: str) -> list[str]:
    """Raises JavaError."""
    names = [name.strip() for name in found.values(option)]
    for name in names:
        if ":" not in name:
            raise illegal_argument(f"expected a string in format principalType:principalName but got {name}")
    return list(dict.fromkeys(names))


def additions(found: Arguments) -> dict[Resource, list[Entry]]:
    """The ACLs to add. Raises JavaError, UsageError."""
    pattern = pattern_type(found)
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise UsageError(f"A '--resource-pattern-type' value of '{pattern.name}' is not valid when adding acls.")
    chosen = entries(found)
    if not all(chosen.values()):
        raise UsageError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    return chosen


def entries(found: Arguments) -> dict[Resource, list[Entry]]:
    """The ACLs of each resource; none where the options name no principal. Raises JavaError, UsageError."""
    named = resources(found)
    if not named:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    chosen: dict[Resource, set[Entry]] = {}
    if not found.has("producer", "consumer"):
        operations = [_operation(text) for text in found.values("operation")]
        chosen = {resource: _entries(found, operations) for resource in named}
    for option, role in (("producer", PRODUCER), ("consumer", CONSUMER), ("idempotent", IDEMPOTENT)):
        if found.has(option):
            _add_role(chosen, found, role, [*named, CLUSTER] if role is IDEMPOTENT else named)
    for resource, some in chosen.items():
        _check(resource, some)
    return {resource: sorted(some) for resource, some in chosen.items()}


def _add_role(chosen: dict[Resource, set[Entry]], found: Arguments, role: Role, named: Iterable[Resource]) -> None:
    for resource in named:
        if resource.kind in role:
            chosen.setdefault(resource, set()).update(_entries(found, role[resource.kind]))


def _entries(found: Arguments, operations: Iterable[Operation]) -> set[Entry]:
    chosen: set[Entry] = set()
    for permission, word in ((Permission.ALLOW, "allow"), (Permission.DENY, "deny")):
        hosts = [host.strip() for host in found.values(f"{word}-host")] or [WILDCARD]
        for principal in principals(found, f"{word}-principal"):
            for operation in operations:
                if operation == Operation.ANY:
                    raise illegal_argument("operation must not be ANY")
                chosen.update(Entry(principal, host, operation, permission) for host in hosts)
    return chosen


def _check(resource: Resource, some: Iterable[Entry]) -> None:
    known = (Operation.ALL, *OPERATIONS[resource.kind])
    if any(entry.operation not in known for entry in some):
        raise UsageError(f"ResourceType {resource.kind.name} only supports operations {', '.join(map(spell, known))}")


def _operation(text: str) -> Operation:
    """The operation of a name as the tool spells it, `DescribeConfigs`, in any case."""
    known = {spell(operation).lower(): operation for operation in Operation}
    return known.get(text.strip().lower(), Operation.UNKNOWN)
