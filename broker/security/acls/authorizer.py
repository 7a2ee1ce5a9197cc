"""The rules of Kafka's StandardAuthorizer: who may do what, by the ACLs in force.

A check costs a few lookups, however many ACLs there are: by name, by each length of a prefix that occurs, and by
principal and host.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache

from broker.protocol.acls import Operation, PatternType, Permission, ResourceType
from broker.security.acls.bindings import WILDCARD, WILDCARD_PRINCIPAL, Binding, Filter

# A principal at a host; either may be a wildcard.
Subject = tuple[str, str]
# The operations that the ACLs of one pattern allow and deny a subject, as bits.
Rights = tuple[int, int]

_NOTHING: Rights = (0, 0)
_IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in set(operations))


# By operation: which ACLs allow it, and which deny it. Only what allows implies more.
_ALLOWING = {operation: _bits(operation, Operation.ALL, *_IMPLIED_BY.get(operation, ())) for operation in Operation}
_DENYING = {operation: 1 << operation | 1 << Operation.ALL for operation in Operation}


class StandardAuthorizer:
    """Decides by the ACLs that were added. Super users may do everything. `version` changes with every change.

    With `allow_everyone`, everybody may use the resources to which no ACL applies.
    """

    def __init__(self, super_users: Collection[str] = (), *, allow_everyone: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allow_everyone = allow_everyone
        self.version = 0
        self._resources: dict[ResourceType, _Patterns] = {}

    def __len__(self) -> int:
        return sum(patterns.count for patterns in self._resources.values())

    # -- changes

    def add(self, binding: Binding) -> bool:
        """False if it is in force already."""
        patterns = self._resources.get(binding.kind) or self._resources.setdefault(binding.kind, _Patterns())
        return self._changed(patterns.add(binding))

    def remove(self, binding: Binding) -> bool:
        """False if it is not in force."""
        patterns = self._resources.get(binding.kind)
        return patterns is not None and self._changed(patterns.remove(binding))

    def _changed(self, changed: bool) -> bool:
        self.version += changed
        return changed

    # -- decisions

    def authorize(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether a principal at a host may perform an operation on a resource."""
        if principal in self._super_users:
            return True
        allowed = denied = 0
        found = False
        patterns = self._resources.get(kind)
        if patterns is not None:
            subjects = _subjects(principal, host)
            for rights in patterns.of(name):
                found = True
                for subject in subjects:
                    more_allowed, more_denied = rights.get(subject, _NOTHING)
                    allowed |= more_allowed
                    denied |= more_denied
        if denied & _DENYING[operation]:
            return False
        return allowed & _ALLOWING[operation] != 0 if found else self._allow_everyone

    def authorize_by_resource_type(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether there may be a resource of this type on which the operation is allowed."""
        # As in Kafka, which asks for a resource of this name first.
        if self.authorize(principal, host, operation, kind, "hardcode"):
            return True
        patterns = self._resources.get(kind)
        return patterns is not None and patterns.allow_any(_subjects(principal, host), operation)

    # -- lists

    def matching(self, chosen: Filter) -> list[Binding]:
        """The bindings that a filter selects, those of one resource pattern together."""
        return [binding for binding in self.scan(chosen) if binding is not None]

    def scan(self, chosen: Filter) -> Iterator[Binding | None]:
        """The same bit by bit, with None for what was looked at and not selected. ACLs may change in the meantime."""
        for kind in list(self._resources) if chosen.kind == ResourceType.ANY else [chosen.kind]:
            if kind in self._resources:
                for pattern, name, rights in self._resources[kind].matching(chosen):
                    yield from _bindings(kind, pattern, name, rights, chosen)


class _Patterns:
    """The ACLs of one type of resources."""

    def __init__(self) -> None:
        self.count = 0
        self._rights: dict[PatternType, dict[str, dict[Subject, Rights]]] = {
            PatternType.LITERAL: {},
            PatternType.PREFIXED: {},
        }
        self._lengths: dict[int, int] = {}  # of prefixes: how many names have this length
        # Which patterns have an ACL with this permission for a subject and an operation.
        self._by_subject: dict[tuple[Subject, Operation, Permission], set[tuple[PatternType, str]]] = {}

    def add(self, binding: Binding) -> bool:
        names = self._rights[binding.pattern]
        subject, bit = (binding.principal, binding.host), 1 << binding.operation
        rights = names.get(binding.name)
        if rights is None:
            rights = names[binding.name] = {}
            if binding.pattern == PatternType.PREFIXED:
                length = len(binding.name)
                self._lengths[length] = self._lengths.get(length, 0) + 1
        allowed, denied = rights.get(subject, _NOTHING)
        is_allowed = binding.permission == Permission.ALLOW
        if (allowed if is_allowed else denied) & bit:
            return False
        rights[subject] = (allowed | bit, denied) if is_allowed else (allowed, denied | bit)
        key = (subject, binding.operation, binding.permission)
        self._by_subject.setdefault(key, set()).add((binding.pattern, binding.name))
        self.count += 1
        return True

    def remove(self, binding: Binding) -> bool:
        names = self._rights[binding.pattern]
        subject, bit = (binding.principal, binding.host), 1 << binding.operation
        rights = names.get(binding.name, {})
        allowed, denied = rights.get(subject, _NOTHING)
        is_allowed = binding.permission == Permission.ALLOW
        if not (allowed if is_allowed else denied) & bit:
            return False
        left = (allowed & ~bit, denied) if is_allowed else (allowed, denied & ~bit)
        if left != _NOTHING:
            rights[subject] = left
        else:
            del rights[subject]
        if not rights:
            del names[binding.name]
            if binding.pattern == PatternType.PREFIXED:
                self._drop_length(len(binding.name))
        key = (subject, binding.operation, binding.permission)
        self._by_subject[key].discard((binding.pattern, binding.name))
        if not self._by_subject[key]:
            del self._by_subject[key]
        self.count -= 1
        return True

    def _drop_length(self, length: int) -> None:
        self._lengths[length] -= 1
        if not self._lengths[length]:
            del self._lengths[length]

    def of(self, name: str) -> Iterator[dict[Subject, Rights]]:
        """The rights of each pattern that applies to a name."""
        literal, prefixed = self._rights[PatternType.LITERAL], self._rights[PatternType.PREFIXED]
        if name in literal:
            yield literal[name]
        if WILDCARD in literal and name != WILDCARD:
            yield literal[WILDCARD]
        for prefix in self._prefixes(name):
            yield prefixed[prefix]

    def _prefixes(self, name: str) -> Iterator[str]:
        prefixed = self._rights[PatternType.PREFIXED]
        for length in self._lengths:
            if length <= len(name) and name[:length] in prefixed:
                yield name[:length]

    def allow_any(self, subjects: tuple[Subject, ...], operation: Operation) -> bool:
        """Whether a pattern allows the operation and no other pattern denies it on everything that this one selects."""
        denied = set(self._named(subjects, operation, Permission.DENY))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        lengths = {len(name) for pattern, name in denied if pattern == PatternType.PREFIXED}
        for pattern, name in self._named(subjects, operation, Permission.ALLOW):
            if pattern == PatternType.LITERAL and name == WILDCARD:
                return True
            is_denied = pattern == PatternType.LITERAL and (pattern, name) in denied
            if not is_denied and not any(
                (PatternType.PREFIXED, name[:length]) in denied for length in lengths if length <= len(name)
            ):
                return True
        return False

    def _named(
        self, subjects: tuple[Subject, ...], operation: Operation, permission: Permission
    ) -> Iterator[tuple[PatternType, str]]:
        """The patterns with an ACL of this permission for any of the subjects."""
        for subject in subjects:
            for wanted in (operation, Operation.ALL):
                yield from self._by_subject.get((subject, wanted, permission), ())

    def matching(self, chosen: Filter) -> Iterator[tuple[PatternType, str, dict[Subject, Rights]]]:
        """The patterns that a filter selects."""
        for pattern, names in self._rights.items():
            if chosen.pattern in (PatternType.ANY, PatternType.MATCH, pattern):
                for name in list(names) if chosen.name is None else self._candidates(chosen.name, pattern):
                    if name in names and chosen.selects_pattern(pattern, name):
                        yield pattern, name, names[name]

    def _candidates(self, name: str, pattern: PatternType) -> list[str]:
        more = [WILDCARD] if pattern == PatternType.LITERAL else list(self._prefixes(name))
        return list(dict.fromkeys([name, *more]))


def _subjects(principal: str, host: str) -> tuple[Subject, ...]:
    return (principal, host), (principal, WILDCARD), (WILDCARD_PRINCIPAL, host), (WILDCARD_PRINCIPAL, WILDCARD)


def _bindings(
    kind: ResourceType, pattern: PatternType, name: str, rights: dict[Subject, Rights], chosen: Filter
) -> Iterator[Binding | None]:
    for principal, host in list(rights):
        if not chosen.selects_entry(principal, host):
            yield None
            continue
        masks = rights.get((principal, host), _NOTHING)
        for permission, mask in zip((Permission.ALLOW, Permission.DENY), masks, strict=True):
            if chosen.permission in (Permission.ANY, permission):
                for operation in _operations(mask):
                    if chosen.operation in (Operation.ANY, operation):
                        yield Binding(kind, pattern, name, principal, host, operation, permission)
        yield None


@cache
def _operations(mask: int) -> tuple[Operation, ...]:
    return tuple(operation for operation in Operation if mask >> operation & 1)
