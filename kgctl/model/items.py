"""What changes outside of groups touch: topics, configs, quotas, records, users, ACLs, transactions, features."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError

# What an item is.
TOPIC, PARTITIONS, CONFIG, QUOTA, RECORDS, USER, ACL, TRANSACTION, FEATURE = (
    "topic",
    "partitions",
    "config",
    "quota",
    "records",
    "user",
    "acl",
    "transaction",
    "feature",
)
# What happens to it.
CREATE, DELETE, SET, ABORT = "create", "delete", "set", "abort"
ACTIONS = (CREATE, DELETE, SET, ABORT)


@dataclass(frozen=True, slots=True)
class Setting:
    """A config that is set on a topic itself."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic as it is; `configs` are those that are set on it, None if they cannot be read."""

    topic: str
    topic_id: str | None
    partitions: int
    replicas: int
    configs: tuple[Setting, ...] | None = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a command changes, with its value before and after; None is no value.

    `parts` identify it: the topic; the type and name of a resource; user, client id and IP address of a quota; the fields
    of an ACL; topic and partition of records; user and mechanism of a credential. Topics have an id, and what is needed to
    create them again: partitions, replicas, configs. `is_kept` is False for values that are secret or could not be read.
    """

    kind: str
    action: str
    parts: tuple[str | None, ...]
    setting: str | None = None
    old: str | None = None
    new: str | None = None
    is_kept: bool = True
    topic_id: str | None = None
    partitions: int | None = None
    replicas: int | None = None
    configs: tuple[Setting, ...] = ()

    @property
    def key(self) -> tuple[str | None, ...]:
        return (self.kind, *self.parts, self.setting)

    @property
    def names(self) -> tuple[str, ...]:
        """What contexts ask for, to confirm a change of it; ACLs have no names."""
        if self.kind == ACL:
            return ()
        some = self.parts if self.kind == QUOTA else self.parts[1:] if self.kind == CONFIG else self.parts[:1]
        return tuple(part for part in some if part is not None)

    @property
    def subject(self) -> str:
        """What people call it."""
        return subject_of(self.kind, self.parts)


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item of a change, or of the plan that takes the change back."""

    kind: str
    name: str
    action: str
    setting: str | None = None
    old_value: str | None = None
    new_value: str | None = None
    note: str | None = None
    status: str = "planned"
    error: RowError | None = None


def subject_of(kind: str, parts: tuple[str | None, ...]) -> str:
    if kind == CONFIG:
        return f"{parts[0]} {parts[1]}"
    if kind == QUOTA:
        names = zip(("user", "client-id", "ip"), parts, strict=True)
        return ", ".join(f"{name} {part}" for name, part in names if part is not None)
    if kind == RECORDS:
        return f"topic {parts[0]}-{parts[1]}"
    if kind == USER:
        return f"user {parts[0]} {parts[1]}"
    if kind == ACL:
        resource_type, resource, pattern, principal, permission, operation, host = parts
        return f"ACL {permission} {principal} {operation} on {pattern} {resource_type} {resource} from {host}"
    return f"{TOPIC if kind == PARTITIONS else kind} {parts[0]}"
