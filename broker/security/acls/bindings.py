"""Bindings, each of which is one ACL; filters that select them; and the form in which the store keeps them."""

from __future__ import annotations

import json

from broker.light_named_tuples import NamedTuple
from broker.protocol.acls import Operation, PatternType, Permission, ResourceType

WILDCARD = "*"  # any name, as a literal pattern; any host
WILDCARD_PRINCIPAL = "User:*"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


class Binding(NamedTuple):
    """One ACL: a principal at a host may, or may not, perform an operation on the resources that a pattern selects."""

    kind: ResourceType
    pattern: PatternType
    name: str
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def encode(self) -> str:
        """JSON that is equal for equal bindings."""
        fields = {name: value if isinstance(value, str) else value.name for name, value in self._asdict().items()}
        return _ENCODER.encode(fields)

    @classmethod
    def decode(cls, text: str) -> Binding:
        """The binding that was encoded. Raises ValueError."""
        try:
            found = json.loads(text)
            return cls(
                ResourceType[found["kind"]],
                PatternType[found["pattern"]],
                found["name"],
                found["principal"],
                found["host"],
                Operation[found["operation"]],
                Permission[found["permission"]],
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an ACL: {text}") from error


class Filter(NamedTuple):
    """Selects bindings. None and ANY select everything; MATCH selects every pattern that applies to the name."""

    kind: ResourceType = ResourceType.ANY
    pattern: PatternType = PatternType.ANY
    name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def selects_entry(self, principal: str, host: str) -> bool:
        """Whether it selects bindings of a principal at a host, operation and permission aside."""
        return self.principal in (None, principal) and self.host in (None, host)

    def selects_pattern(self, pattern: PatternType, name: str) -> bool:
        """Whether it selects a pattern of the right type of resources."""
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, pattern):
            return False
        if self.name is None or self.name == name:
            return True
        if self.pattern != PatternType.MATCH:
            return False
        return self.name.startswith(name) if pattern == PatternType.PREFIXED else name == WILDCARD
