"""Access: what a principal may do.

Decisions are remembered until the ACLs change: an OffsetCommit of a thousand topics asks the authorizer a thousand times once, and
then no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.protocol.acls import CLUSTER_NAME, OPERATIONS, Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Mapping

# How many decisions are remembered for one principal and host, and for names of up to which length.
MOST_DECISIONS = 20_000
LONGEST_NAME = 256


class Authorizer(Protocol):
    """Decides by ACLs; `version` changes with them. A principal is "User:alice", a host "127.0.0.1"."""

    version: int

    def authorize(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the principal may do this to the named resource."""
        ...

    def authorize_by_resource_type(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether there is any resource of this type to which the principal may do this."""
        ...


class Access:
    """What one principal may do from one host. Its sessions share it."""

    __slots__ = ("__weakref__", "_authorizer", "_decisions", "_remembered", "_version", "host", "principal")

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self._authorizer = authorizer
        self._version = authorizer.version
        self._decisions: dict[int, _Decisions] = {}
        self._remembered = 0
        self.principal = principal
        self.host = host

    def of(self, operation: Operation, kind: ResourceType) -> Mapping[str, bool]:
        """Whether the operation is allowed, by the name of the resource. Only indexing works."""
        if self._version != self._authorizer.version:
            self._version = self._authorizer.version
            self._forget()
        key = operation << 4 | kind
        found = self._decisions.get(key)
        if found is None:
            found = self._decisions[key] = _Decisions(self, operation, kind)
        return found

    def decide(self, decisions: dict[str, bool], operation: Operation, kind: ResourceType, name: str) -> bool:
        """Ask the authorizer, and remember its answer, unless that would take much memory."""
        allowed = self._authorizer.authorize(self.principal, self.host, operation, kind, name)
        if len(name) <= LONGEST_NAME:
            if self._remembered >= MOST_DECISIONS:
                self._forget()
            self._remembered += 1
            decisions[name] = allowed
        return allowed

    def _forget(self) -> None:
        self._remembered = 0
        for decisions in self._decisions.values():
            decisions.clear()

    def allows(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self.of(operation, kind)[name]

    def allows_on_cluster(self, operation: Operation) -> bool:
        return self.of(operation, ResourceType.CLUSTER)[CLUSTER_NAME]

    def allows_any_of_type(self, operation: Operation, kind: ResourceType) -> bool:
        """Whether there is any resource of this type to which the principal may do this."""
        return self._authorizer.authorize_by_resource_type(self.principal, self.host, operation, kind)

    def operations_of(self, kind: ResourceType, name: str) -> int:
        """All operations that are allowed on a resource, as the bit field of KIP-430."""
        return sum(1 << operation for operation in OPERATIONS[kind] if self.of(operation, kind)[name])


class Unrestricted(Access):
    """Everything is allowed: there is no authorizer."""

    __slots__ = ()

    def __init__(self) -> None:
        self.principal = self.host = ""

    def of(self, operation: Operation, kind: ResourceType) -> Mapping[str, bool]:
        return _EVERYTHING

    def allows_any_of_type(self, operation: Operation, kind: ResourceType) -> bool:
        return True

    def operations_of(self, kind: ResourceType, name: str) -> int:
        return _ALL_OPERATIONS[kind]


class _Decisions(dict[str, bool]):
    """The decisions about one operation on resources of one type, by name; a missing one is made when it is looked up."""

    __slots__ = ("_access", "_kind", "_operation")

    def __init__(self, access: Access, operation: Operation, kind: ResourceType) -> None:
        self._access, self._operation, self._kind = access, operation, kind

    def __missing__(self, name: str) -> bool:
        return self._access.decide(self, self._operation, self._kind, name)


class _Everything(dict[str, bool]):
    def __missing__(self, name: str) -> bool:
        return True


_EVERYTHING = _Everything()
_ALL_OPERATIONS = {kind: sum(1 << operation for operation in operations) for kind, operations in OPERATIONS.items()}
UNRESTRICTED = Unrestricted()
