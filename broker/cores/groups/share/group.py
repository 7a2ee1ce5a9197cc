"""A share group: its members, its target assignment, and the partitions whose state the share coordinator has for it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from broker.cores.groups.counts import count
from broker.cores.groups.group import AnyStep, Committer, Group, Handlers
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import Target
from broker.cores.groups.records.share import (
    ShareCurrentRecord,
    ShareEpochRecord,
    ShareMemberRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    StatePartitions,
    StatePartitionsRecord,
)
from broker.cores.groups.share.member import ShareMember
from broker.protocol.errors import ErrorCode

# The kind of a group's timers. A key is (kind, group id, member id).
SESSION = "share session"
NO_TARGET: Target = {}
NO_PARTITIONS = StatePartitions({}, {}, {})


class ShareGroup(Group):
    """One group of the share protocol.

    Everything but the soft state is hard state, or follows from it; only `hard_state` changes it. `generation` is the group epoch:
    it grows when members, subscriptions or topics change, and asks for another target assignment. `assignment_epoch` is the one of
    the present target. A member gets its target at once: no other has to give anything up.
    """

    TYPE = "share"

    __slots__ = (
        "_has_unassigned",
        "_partitions",
        "_targets",
        "assignment_epoch",
        "complete_version",
        "heartbeats_ms",
        "is_rebalancing",
        "members",
        "metadata_hash",
        "most_members",
        "named",
        "owners_reported",
        "seen_version",
        "state_since_ms",
    )

    def __init__(self, group_id: str, *, offsets_loaded: bool) -> None:
        super().__init__(group_id, offsets_loaded=offsets_loaded)
        self.protocol_type = "share"
        # hard
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, ShareMember] = {}
        self._targets: dict[str, Target] = {}
        self._partitions: StatePartitions | None = None
        # derived
        self.named: dict[str, int] = {}  # topic -> how many members name it
        self.most_members = 0  # at a time: Kafka's table of members has room for as many
        self._has_unassigned: bool | None = None
        # soft
        self.seen_version: int | None = None  # of the topics, when the metadata hash was computed
        self.complete_version: int | None = None  # of the topics, if all their subscribed partitions have state
        self.is_rebalancing = False  # an event has reported that a rebalance started, and none that it ended
        self.heartbeats_ms: dict[str, int] = {}  # member id -> when it was last heard, by the clock of timers
        self.state_since_ms = -1  # wall clock; -1 if the group had this state before the start of the broker
        self.owners_reported: dict[tuple[bytes, int], frozenset[str]] | None = None  # in the last event STABLE

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def targets(self) -> Mapping[str, Target]:
        return self._targets

    @property
    def partitions(self) -> StatePartitions:
        return NO_PARTITIONS if self._partitions is None else self._partitions

    @property
    def has_partitions(self) -> bool:
        """Whether a record of the partitions is stored, be it an empty one."""
        return self._partitions is not None

    def is_settled(self) -> bool:
        """Whether all members have the target of the group epoch."""
        return self.generation == self.assignment_epoch and all(
            member.current.member_epoch == self.assignment_epoch for member in self.members.values()
        )

    def has_unassigned_partitions(self) -> bool:
        """Whether the partitions with state are not those in the targets. Each heartbeat asks; the answer is remembered.

        As in Kafka 4.1, this holds for ever if the group has left a topic: its partitions keep their state. Each heartbeat of a
        member then makes another group epoch.
        """
        if self._has_unassigned is None:
            self._has_unassigned = self._partitions is not None and self._assigned() != {
                topic_id: set(named.partitions) for topic_id, named in self._partitions.initialized.items()
            }
        return self._has_unassigned

    def _assigned(self) -> dict[bytes, set[int]]:
        found: dict[bytes, set[int]] = {}
        for target in self._targets.values():
            for topic_id, partitions in target.items():
                found.setdefault(topic_id, set()).update(partitions)
        return found

    def subscriptions_with(self, updated: ShareMember | None, replaced: ShareMember) -> dict[str, int]:
        """How many members name each topic, if `updated` takes the place of `replaced`."""
        named = dict(self.named)
        count(named, replaced.subscription.topic_names, -1)
        if updated is not None:
            count(named, updated.subscription.topic_names, 1)
        return named

    # ---- changes of hard state; called by `hard_state` -------------------------------------------------------------

    def put_member(self, member: ShareMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            count(self.named, before.subscription.topic_names, -1)
        if before is None or before.subscription.topic_names != member.subscription.topic_names:
            self.complete_version = None
        self.members[member.member_id] = member
        self.most_members = max(self.most_members, len(self.members))
        count(self.named, member.subscription.topic_names, 1)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            count(self.named, member.subscription.topic_names, -1)

    def put_target(self, member_id: str, target: Target | None) -> None:
        self._has_unassigned = None
        if target is None:
            self._targets.pop(member_id, None)
        else:
            self._targets[member_id] = target

    def put_partitions(self, partitions: StatePartitions | None) -> None:
        self._has_unassigned = self.complete_version = None
        self._partitions = partitions

    # ---- offsets and deletion ------------------------------------------------------------------------------------

    def classic_handlers(self) -> Handlers:
        handlers: Handlers = import_module("broker.cores.groups.share.tables").CLASSIC
        return handlers

    def check_commit(self, committer: Committer) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def on_commit(self, step: AnyStep, member_id: str) -> None:
        raise AssertionError("a share group has no committed offsets")

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.named

    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        return None

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    def is_abandoned(self) -> bool:
        """As in Kafka, a share group stays until it is deleted."""
        return False

    def release(self, step: AnyStep) -> None:
        import_module("broker.cores.groups.share.partitions").delete_all(step, self)

    def cancel_timers(self, step: AnyStep) -> None:
        for member_id in self.members:
            step.timers.cancel((SESSION, self.group_id, member_id))

    def tombstones(self, wall_ms: int, *, keeps_offsets: bool = False) -> list[StateRecord]:
        """In Kafka's order. The last one removes the group."""
        group_id, members = self.group_id, list(self.members)
        return [
            *(ShareCurrentRecord(group_id, member_id, None, wall_ms) for member_id in members),
            *(ShareTargetRecord(group_id, member_id, None, wall_ms) for member_id in members),
            ShareTargetEpochRecord(group_id, None, wall_ms),
            *(ShareMemberRecord(group_id, member_id, None, wall_ms) for member_id in members),
            StatePartitionsRecord(group_id, None, wall_ms),
            ShareEpochRecord(group_id, None, 0, wall_ms),
        ]
