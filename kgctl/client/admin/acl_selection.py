"""Which ACLs a user means: resources, principals, hosts and operations, or the roles of a producer and a consumer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from broker.light_dataclasses import dataclass
from broker.protocol.acls import CLUSTER_NAME, OPERATIONS, Operation, PatternType, Permission, ResourceType
from broker.security.acls.bindings import WILDCARD, Binding, Filter
from kgctl.client.net.errors import BadValue

PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.CREATE, Operation.DESCRIBE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}
IDEMPOTENT = {ResourceType.CLUSTER: (Operation.IDEMPOTENT_WRITE,)}


# What a role allows on each type of resource.
Role = Mapping[ResourceType, tuple[Operation, ...]]


@dataclass(frozen=True, slots=True)
class Selection:
    """What the options of a command name. A role fixes the operations; without one they are `operations`."""

    resources: Sequence[tuple[ResourceType, str]] = ()
    pattern: PatternType = PatternType.LITERAL
    allowed: Sequence[str] = ()  # principals
    denied: Sequence[str] = ()
    anyhow: Sequence[str] = ()  # principals of ACLs with either permission; for filters only
    allowed_hosts: Sequence[str] = ()
    denied_hosts: Sequence[str] = ()
    operations: Sequence[Operation] = ()
    roles: Sequence[Role] = ()

    def bindings(self) -> list[Binding]:
        """The ACLs to add. Raises BadValue for an operation that a type of resource does not have."""
        return [
            Binding(kind, pattern, name, principal, host, operation, permission)
            for kind, pattern, name in self._patterns()
            for permission, principals, hosts in (
                (Permission.ALLOW, self.allowed, self.allowed_hosts),
                (Permission.DENY, self.denied, self.denied_hosts),
            )
            for operation, principal, host in product(
                self._operations(kind, Operation.ALL), principals, hosts or (WILDCARD,)
            )
        ]

    def filters(self) -> list[Filter]:
        """What selects existing ACLs. What is not given selects everything. Raises BadValue."""
        subjects = list(self._subjects())
        if not self.resources:
            return [
                Filter(principal=principal, host=host, operation=operation, permission=permission)
                for operation in self.operations or (Operation.ANY,)
                for permission, principal, host in subjects
            ]
        return [
            Filter(kind, pattern, name, principal, host, operation, permission)
            for kind, pattern, name in self._patterns()
            for operation in self._operations(kind, Operation.ANY)
            for permission, principal, host in subjects
        ]

    def _patterns(self) -> list[tuple[ResourceType, PatternType, str]]:
        return [
            # There is one cluster: Kafka's tool, too, has literal patterns only for it.
            (kind, PatternType.LITERAL if kind == ResourceType.CLUSTER else self.pattern, name)
            for kind, name in dict.fromkeys([*self.resources, *self._implied()])
        ]

    def _implied(self) -> list[tuple[ResourceType, str]]:
        return [(ResourceType.CLUSTER, CLUSTER_NAME)] if IDEMPOTENT in self.roles else []

    def _subjects(self) -> Iterator[tuple[Permission, str | None, str | None]]:
        given = [
            (Permission.ALLOW, self.allowed, self.allowed_hosts),
            (Permission.DENY, self.denied, self.denied_hosts),
            (Permission.ANY, self.anyhow, ()),
        ]
        if any(principals or hosts for _, principals, hosts in given):
            for permission, principals, hosts in given:
                if principals or hosts:
                    for principal, host in product(principals or (None,), hosts or (None,)):
                        yield permission, principal, host
        else:
            yield Permission.ALLOW if self.roles else Permission.ANY, None, None

    def _operations(self, kind: ResourceType, default: Operation) -> Sequence[Operation]:
        if self.roles:
            return tuple(dict.fromkeys(operation for role in self.roles for operation in role.get(kind, ())))
        for operation in self.operations:
            if kind in OPERATIONS and operation not in (Operation.ALL, *OPERATIONS[kind]):
                known = ", ".join(spell(found) for found in (*OPERATIONS[kind], Operation.ALL))
                raise BadValue(f"resources of type {kind.name} have no operation {spell(operation)}, only {known}")
        return self.operations or (default,)


def spell(operation: Operation) -> str:
    """The name of an operation as Kafka's tool spells it: DescribeConfigs."""
    return "".join(word.capitalize() for word in operation.name.split("_"))


def parse_operation(text: str) -> Operation:
    """The operation of a name in any spelling: DescribeConfigs, describe_configs. Raises BadValue."""
    known = {operation.name.replace("_", ""): operation for operation in Operation if operation >= Operation.ALL}
    found = known.get(text.strip().upper().replace("_", "").replace("-", ""))
    if found is None:
        raise BadValue(f"{text!r} is not one of {', '.join(map(spell, known.values()))}")
    return found


def check_principal(text: str) -> str:
    """The principal, such as User:alice. Raises BadValue for a name without a type."""
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise BadValue(f"{text!r} is not a principal such as User:{text.strip(':') or 'alice'}")
    return text.strip()


def likely_mistakes(resources: Sequence[tuple[ResourceType, str]], hosts: Sequence[str]) -> list[str]:
    """Sentences about names and hosts that brokers store, but that probably mean something else to the user."""
    found = [
        f"{kind.name.lower()} {name!r}: only a lone * stands for all names; for those that begin with "
        f"{name.rstrip('*')!r} give that with --resource-pattern-type prefixed."
        for kind, name in resources
        if name.endswith("*") and name != WILDCARD
    ]
    return found + [
        f"host {host!r} is not an IP address; Kafka compares the text with the addresses of clients."
        for host in dict.fromkeys(hosts)
        if host != WILDCARD and not _is_address(host)
    ]


def _is_address(text: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(text)
    except ValueError:
        return False
    return True
