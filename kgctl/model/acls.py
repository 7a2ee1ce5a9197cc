"""Rows about ACLs."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.changes import PLANNED
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True, order=True)
class AclRow:
    """One ACL, with Kafka's names of types, patterns, permissions and operations."""

    resource_type: str
    resource: str
    pattern_type: str
    principal: str
    permission: str
    operation: str
    host: str


@dataclass(frozen=True, slots=True)
class AclChange(AclRow):
    """An ACL to add or remove, added or removed. One that is to be added may exist already."""

    status: str = PLANNED
    error: RowError | None = None
