"""A consumer group: its members, its target assignment, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from broker.cores.groups.consumer.event_notes import EventNotes
from broker.cores.groups.consumer.lookup import Lookup
from broker.cores.groups.consumer.member import ConsumerMember, MemberState
from broker.cores.groups.consumer.roster import Roster
from broker.cores.groups.counts import count
from broker.cores.groups.group import AnyStep, Committer, Group, Handlers
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import (
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    Owned,
    PartitionMetadataTombstone,
    RegexRecord,
    ResolvedRegex,
    Target,
    TargetEpochRecord,
    TargetRecord,
)
from broker.cores.groups.refusals import Refused
from broker.protocol.errors import ErrorCode

# The kinds of a group's timers. A key is (kind, group id, member id), for the look-up of regular expressions (kind, group id).
SESSION, REBALANCE, REGEX = "consumer session", "consumer rebalance", "consumer regex"
# Those of classic members: until they join again, and until they sync.
JOIN, SYNC = "consumer join", "consumer sync"
NO_OWNER = -1
NO_TARGET: Target = {}


class ConsumerGroup(Group):
    """One group of the consumer protocol.

    Everything but the soft state is hard state, or follows from it; only `hard_state` changes it. `generation` is the group epoch:
    it grows when members, subscriptions or topics change, and asks for another target assignment. `assignment_epoch` is the one of
    the present target.
    """

    TYPE = "consumer"

    __slots__ = (
        "_is_homogeneous",
        "_settled",
        "assignment_epoch",
        "assignors",
        "classic_members",
        "expressions",
        "heartbeats_ms",
        "is_rebalancing",
        "lookup",
        "matched",
        "members",
        "metadata_hash",
        "most_members",
        "named",
        "notes",
        "owners",
        "owners_reported",
        "regex_client",
        "regex_version",
        "regexes",
        "revoking",
        "roster",
        "seen",
        "static_members",
        "supported",
        "targets",
        "was_replaced",
    )

    def __init__(self, group_id: str, *, offsets_loaded: bool) -> None:
        super().__init__(group_id, offsets_loaded=offsets_loaded)
        self.protocol_type = "consumer"
        # hard
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Target] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        # derived
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.named: dict[str, int] = {}  # topic -> how many members name it
        self.matched: dict[str, int] = {}  # topic -> how many regular expressions it matches
        self.expressions: dict[str, int] = {}  # regular expression -> how many members have it
        self.assignors: dict[str, int] = {}  # name -> how many members ask for it
        self.owners: dict[bytes, dict[int, int]] = {}  # topic id -> partition -> epoch of the member that owns it
        self.classic_members = 0  # how many members speak the classic protocol
        self.supported: dict[str, int] = {}  # name of a classic protocol -> how many of them support it
        self._is_homogeneous: bool | None = None  # None: as the counts of subscriptions are now
        self._settled: dict[int, int] = {}  # member epoch -> how many members are STABLE in it
        self.roster = Roster()
        # soft
        self.most_members = 0  # at a time: Kafka's table of members has room for as many
        self.seen: tuple[int, int] | None = None  # version of the topics, and metadata hash of those subscribed then
        self.regex_version = -1  # of the topics, when this process last resolved the regular expressions
        self.regex_client: tuple[str, str] | None = None  # principal and host for which they will be resolved
        self.lookup: Lookup | None = None  # what is being resolved
        self.revoking: dict[str, int] = {}  # member id -> the epoch that it must leave within its rebalance timeout
        self.heartbeats_ms: dict[str, int] = {}  # member id -> when it was last heard, on the monotonic clock
        self.is_rebalancing = False  # an event has reported that a rebalance started, and none that it ended
        self.was_replaced = False  # a static member has got another id, which no event has reported
        self.notes = EventNotes()
        self.owners_reported: dict[tuple[bytes, int], str] | None = None  # who owned what in the last event STABLE

    # ---- states --------------------------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.generation > self.assignment_epoch:
            return "Assigning"
        settled = self._settled.get(self.assignment_epoch, 0)
        return "Stable" if settled == len(self.members) else "Reconciling"

    @property
    def member_count(self) -> int:
        return len(self.members)

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that has or had this instance id. As in Kafka, a member that joins again with another instance id keeps both, and
        when it is gone, the former one cannot be used. Raises Refused.
        """
        holder = None if instance_id is None else self.static_members.get(instance_id)
        if holder is None:
            return None
        if holder not in self.members:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {holder} is not a member of group {self.group_id}.")
        return self.members[holder]

    def target_of(self, member: ConsumerMember) -> Target:
        """The present target of a member; a static member that returns has that of its former id."""
        instance_id = member.subscription.instance_id
        holder = member.member_id if instance_id is None else self.static_members.get(instance_id)
        return NO_TARGET if holder is None else self.targets.get(holder, NO_TARGET)

    def owner_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the member that owns the partition or has not confirmed that it gave it up; NO_OWNER if no member does."""
        return self.owners.get(topic_id, {}).get(partition, NO_OWNER)

    def is_waiting(self, member: ConsumerMember) -> bool:
        """Whether another member owns a partition that this one is to get."""
        owned = member.current.assigned
        return any(
            partition not in owned.get(topic_id, ()) and self.owner_epoch(topic_id, partition) != NO_OWNER
            for topic_id, partitions in self.targets.get(member.member_id, NO_TARGET).items()
            for partition in partitions
        )

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a classic member with these protocols may join: it must share one with all other classic members."""
        is_consumer = protocol_type == self.protocol_type
        return is_consumer and any(self.supported.get(name, 0) == self.classic_members for name in names)

    def classic_handlers(self) -> Handlers:
        handlers: Handlers = import_module("broker.cores.groups.consumer.classic_members").HANDLERS
        return handlers

    # ---- subscriptions -------------------------------------------------------------------------------------------

    def subscribed_topics(self) -> Iterable[str]:
        return self.named.keys() | self.matched.keys()

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.named or topic in self.matched

    def topics_with(self, updated: ConsumerMember | None, *replaced: ConsumerMember) -> set[str]:
        """The subscribed topics if `updated` joins and the others leave. Regular expressions that no member keeps do not count."""
        named, matched, _ = self._subscriptions_with(updated, replaced)
        return set(named.keys() | matched.keys())

    def is_homogeneous_with(self, updated: ConsumerMember, replaced: ConsumerMember) -> bool:
        """Whether all members have the same subscription, as Kafka counts them, if `updated` takes the place of `replaced`."""
        is_new = updated.member_id not in self.members and self.static_member(updated.subscription.instance_id) is None
        return _is_homogeneous(*self._subscriptions_with(updated, (replaced,)), len(self.members) + is_new)

    def is_homogeneous(self) -> bool:
        """Whether all members have the same subscription, since a member changed: as in Kafka, a lookup of topics leaves it as it is."""
        if self._is_homogeneous is None:
            self._is_homogeneous = _is_homogeneous(self.named, self.matched, self.expressions, len(self.members))
        return self._is_homogeneous

    def _subscriptions_with(
        self, updated: ConsumerMember | None, replaced: Iterable[ConsumerMember]
    ) -> tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int]]:
        """The counts of named topics, matched topics and regular expressions."""
        named, expressions = dict(self.named), dict(self.expressions)
        for member in replaced:
            count(named, member.subscription.topic_names, -1)
            count(expressions, _expression(member), -1)
        if updated is not None:
            count(named, updated.subscription.topic_names, 1)
            count(expressions, _expression(updated), 1)
        matched = self.matched
        gone = self.regexes.keys() - expressions.keys()
        if gone:
            matched = dict(matched)
            for regex in gone:
                count(matched, self.regexes[regex].topics, -1)
        return named, matched, expressions

    # ---- changes of hard state, and of what follows from it; called by `hard_state` --------------------------------

    def put_member(self, member: ConsumerMember) -> None:
        self._is_homogeneous = None
        before = self.members.get(member.member_id)
        if before is None:
            self.roster.add(member.member_id)
        else:
            self._forget(before)
            if before.subscription != member.subscription:
                self.roster.forget(member.member_id)
        self.members[member.member_id] = member
        self.most_members = max(self.most_members, len(self.members))
        subscription, current = member.subscription, member.current
        count(self.named, subscription.topic_names, 1)
        count(self.expressions, _expression(member), 1)
        count(self.assignors, (subscription.server_assignor,) if subscription.server_assignor else (), 1)
        self._count_classic(member, 1)
        if subscription.instance_id is not None:
            self.static_members[subscription.instance_id] = member.member_id
        if current.state == MemberState.STABLE:
            count(self._settled, (current.member_epoch,), 1)
        self._take(current.assigned, current.member_epoch)
        self._take(current.pending_revocation, current.member_epoch)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self.roster.remove(member_id)
        self._is_homogeneous = None
        self._forget(member)
        instance_id = member.subscription.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]
        self.revoking.pop(member_id, None)
        self.heartbeats_ms.pop(member_id, None)
        self.notes.fenced.discard(member_id)

    def put_target(self, member_id: str, target: Target | None) -> None:
        self.roster.forget(member_id)
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

    def put_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        self._is_homogeneous = self.is_homogeneous()
        self.roster.forget_topics()
        before = self.regexes.pop(regex, None)
        if before is not None:
            count(self.matched, before.topics, -1)
        if resolved is not None:
            self.regexes[regex] = resolved
            count(self.matched, resolved.topics, 1)

    def _forget(self, member: ConsumerMember) -> None:
        subscription, current = member.subscription, member.current
        count(self.named, subscription.topic_names, -1)
        count(self.expressions, _expression(member), -1)
        count(self.assignors, (subscription.server_assignor,) if subscription.server_assignor else (), -1)
        self._count_classic(member, -1)
        if current.state == MemberState.STABLE:
            count(self._settled, (current.member_epoch,), -1)
        self._release(current.assigned, current.member_epoch)
        self._release(current.pending_revocation, current.member_epoch)

    def _count_classic(self, member: ConsumerMember, change: int) -> None:
        classic = member.subscription.classic
        if classic is not None:
            self.classic_members += change
            count(self.supported, (name for name, _ in classic.protocols), change)

    def _take(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, epoch))

    def _release(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            epochs = self.owners.get(topic_id, {})
            for partition in partitions:
                if epochs.get(partition) == epoch:
                    del epochs[partition]
            if not epochs:
                self.owners.pop(topic_id, None)

    # ---- offsets and deletion ------------------------------------------------------------------------------------

    def check_commit(self, committer: Committer) -> ErrorCode:
        member_id, group_instance_id, generation, api_version, is_transactional = committer
        if generation < 0 and not self.members:
            return ErrorCode.NONE
        if is_transactional and generation == -1 and not member_id and group_instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_classic = member.subscription.classic is not None
        if not is_transactional and not is_classic and api_version < 9:
            return ErrorCode.UNSUPPORTED_VERSION
        if generation == member.current.member_epoch:
            return ErrorCode.NONE
        return ErrorCode.ILLEGAL_GENERATION if is_classic or is_transactional else ErrorCode.STALE_MEMBER_EPOCH

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = None if member_id is None else self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member_epoch == member.current.member_epoch:
            return ErrorCode.NONE
        is_classic = member.subscription.classic is not None
        return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH

    def on_commit(self, step: AnyStep, member_id: str) -> None:
        """As in Kafka, only heartbeats renew a session."""

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE

    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    def is_abandoned(self) -> bool:
        return not self.members

    def cancel_timers(self, step: AnyStep) -> None:
        step.timers.cancel((REGEX, self.group_id))
        for member_id in self.members:
            self.cancel_timers_of(step, member_id)

    def cancel_timers_of(self, step: AnyStep, member_id: str) -> None:
        for kind in (SESSION, REBALANCE, JOIN, SYNC):
            step.timers.cancel((kind, self.group_id, member_id))

    def tombstones(
        self, wall_ms: int, *, keeps_offsets: bool = False, member_ids: Iterable[str] | None = None
    ) -> list[StateRecord]:
        """In Kafka's order. The last one removes the group. `member_ids`: of all members, if they are about to change."""
        group_id, members = self.group_id, list(self.members if member_ids is None else member_ids)
        return [
            *(CurrentRecord(group_id, member_id, None, wall_ms) for member_id in members),
            *(TargetRecord(group_id, member_id, None, wall_ms) for member_id in members),
            TargetEpochRecord(group_id, None, wall_ms),
            *(MemberRecord(group_id, member_id, None, wall_ms) for member_id in members),
            *(RegexRecord(group_id, regex, None, wall_ms) for regex in self.regexes),
            PartitionMetadataTombstone(group_id, wall_ms),
            GroupEpochRecord(group_id, None, 0, wall_ms, keeps_offsets),
        ]


def _expression(member: ConsumerMember) -> tuple[str, ...]:
    regex = member.subscription.topic_regex
    return (regex,) if regex else ()


def _is_homogeneous(
    named: Mapping[str, int], matched: Mapping[str, int], expressions: Mapping[str, int], members: int
) -> bool:
    if not expressions:
        # A topic that only a regular expression matches counts as one that no member names.
        return not matched.keys() - named.keys() and all(found == members for found in named.values())
    if next(iter(expressions.values())) != members:
        return False
    return not named and all(found == 1 for found in matched.values())
