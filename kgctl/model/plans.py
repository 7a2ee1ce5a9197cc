"""Documents about changes: a plan that can be applied later, the state of groups before a change, an entry of the journal.

Fields without a value are None. Times are milliseconds since 1970.
"""

from __future__ import annotations

from broker.light_dataclasses import dataclass, replace
from kgctl.model.failure import RowError
from kgctl.model.groups import EMPTY_STATES
from kgctl.model.items import Item
from kgctl.model.topic_partition import TopicPartition

# What happens to a group.
OFFSETS, DELETION, REMOVAL, REBALANCE = "offsets", "deletion", "removal", "rebalance"
ACTIONS = (OFFSETS, DELETION, REMOVAL, REBALANCE)
PLAN, SNAPSHOT, ENTRY = "kgctl-plan", "kgctl-snapshot", "kgctl-journal-entry"
VERSION = 1


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """A committed offset; where its log began and ended, and when the record at the offset was written, if known."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None = None
    metadata: str | None = None
    log_start: int | None = None
    log_end: int | None = None
    timestamp: int | None = None

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class StoredMember:
    member_id: str
    group_instance_id: str | None = None
    host: str | None = None
    client_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A group with all its committed offsets; without a state, it does not exist."""

    group: str
    state: str | None
    type: str | None = None
    members: tuple[StoredMember, ...] = ()
    offsets: tuple[StoredOffset, ...] = ()

    @property
    def has_members(self) -> bool:
        return self.state not in (None, *EMPTY_STATES)

    def committed(self) -> dict[TopicPartition, StoredOffset]:
        return {one.key: one for one in self.offsets}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Groups of one cluster, as `kgctl groups snapshot` writes them to a file."""

    kind: str
    version: int
    cluster_id: str
    taken_ms: int
    groups: tuple[StoredGroup, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """A committed offset to change. Without a new offset it is deleted, without an old one there is none yet."""

    topic: str
    partition: int
    old_offset: int | None
    new_offset: int | None
    leader_epoch: int | None = None
    metadata: str | None = None
    note: str | None = None

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What happens to one group, and what it was like when the plan was made.

    `moves` are the offsets that change or, of a deletion, that go with the group. `leaving` are the members to remove.
    """

    group: str
    action: str
    state: str | None
    type: str | None = None
    members: tuple[StoredMember, ...] = ()
    moves: tuple[Move, ...] = ()
    leaving: tuple[StoredMember, ...] = ()
    evict: bool = False

    @property
    def has_members(self) -> bool:
        return self.state not in (None, *EMPTY_STATES)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan of one command for groups of one cluster, as --plan writes it to a file."""

    kind: str
    version: int
    verb: str
    cluster_id: str
    created_ms: int
    groups: tuple[GroupPlan, ...]
    reason: str | None = None

    def with_groups(self, groups: tuple[GroupPlan, ...]) -> Plan:
        return replace(self, groups=groups)


@dataclass(frozen=True, slots=True)
class Entry:
    """What the journal keeps of a change: its plan, its groups before it, and what else changes, with the old values."""

    kind: str
    version: int
    id: str
    plan: Plan
    before: Snapshot
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One step of a plan, or its outcome: a committed offset, a member, or a group as a whole."""

    group: str
    action: str
    topic: str | None = None
    partition: int | None = None
    member: str | None = None
    old_offset: int | None = None
    new_offset: int | None = None
    delta: int | None = None
    note: str | None = None
    status: str = "planned"
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class JournalRow:
    """A change that was made, or begun, with one of kgctl's commands.

    `outcome` is done, partly failed, failed, unknown (an answer was lost), interrupted, running, or unfinished: the command
    ended without saying more. `items` is what changed besides groups.
    """

    id: str
    time_ms: int
    verb: str
    groups: tuple[str, ...]
    outcome: str
    user: str
    host: str
    cluster_id: str
    address: str
    context: str | None
    command: str
    undoes: str | None = None
    undone_by: str | None = None
    message: str | None = None
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A committed offset of a snapshot, or a group without any."""

    group: str
    state: str | None = None
    type: str | None = None
    members: int | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    leader_epoch: int | None = None
    metadata: str | None = None
    log_start: int | None = None
    log_end: int | None = None
    timestamp: int | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One difference between two snapshots. `what` is group, type, offset or metadata; a missing value is None."""

    group: str
    what: str
    topic: str | None = None
    partition: int | None = None
    old: str | None = None
    new: str | None = None
    delta: int | None = None
