"""A group, its members, its states and the rules that hold whatever the request: fencing, candidates, succession."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from broker.cores.core import BrokenInvariant, Parked
from broker.cores.groups.classic.subscriptions import subscribed_topics
from broker.cores.groups.events import Cause, PendingEvent
from broker.cores.groups.records import GroupMetadataRecord, MemberMetadata, OffsetCommitRecord
from broker.protocol.errors import ErrorCode

CONSUMER = "consumer"
# How much a group's record may hold: the names and subscriptions of all members, and then their assignments as well. Kafka's
# bound is the message.max.bytes of its offsets topic, a sixteenth of this; without any, a group could stop the store.
RECORD_BYTES = 16 << 20

Protocols: TypeAlias = "tuple[tuple[str, bytes], ...]"  # (name, metadata) in the member's order of preference


class GroupState(Enum):
    """A state, spelled as Kafka spells it to users."""

    # A member's join or an offset commit makes the group; it is here again when the last member has gone.
    EMPTY = "Empty"
    # Members are awaited: joins park; syncs and heartbeats are told to join again.
    PREPARING_REBALANCE = "PreparingRebalance"
    # The generation is known and its leader works out the assignment: syncs park.
    COMPLETING_REBALANCE = "CompletingRebalance"
    # Each member has, or can collect, its assignment.
    STABLE = "Stable"
    # No such group.
    DEAD = "Dead"


_BEFORE: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
}


class Offer(NamedTuple):
    """What a member brings along in its JoinGroup."""

    protocol_type: str
    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int


class InitialDelay(NamedTuple):
    """The delay under way before a group's first generation, and how much longer it may become."""

    delay_ms: int
    remaining_ms: int


@dataclass(slots=True)
class Member:
    """A member that has joined; `is_new` until its first generation is complete."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    parked_join: Parked | None = None
    parked_sync: Parked | None = None
    is_new: bool = False
    heard_ms: int = -1  # when its session was last renewed; -1 if not since the broker started

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise BrokenInvariant(f"member {self.member_id} does not support the protocol {protocol} of its group")

    def is_parked(self) -> bool:
        return self.parked_join is not None or self.parked_sync is not None


class Group:
    """One group: its hard state, which only `hard_state.apply` changes, and the soft state of the protocol."""

    __slots__ = (
        "_pending_event",
        "_subscriptions",
        "_supported",
        "_weight",
        "awaiting_joins",
        "generation",
        "group_id",
        "initial_delay",
        "leader",
        "members",
        "metadata",
        "new_member_added",
        "offsets",
        "offsets_loaded",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
    )

    def __init__(self, group_id: str, *, offsets_loaded: bool) -> None:
        self.group_id = group_id
        # hard
        self.metadata: GroupMetadataRecord | None = None
        self.offsets: dict[str, dict[int, OffsetCommitRecord]] = {}
        self.offsets_loaded = offsets_loaded
        # soft
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_timestamp_ms = -1
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}  # in order of joining
        self.static_members: dict[str, str] = {}  # group instance id -> member id
        self.pending_joins: dict[str, None] = {}  # ids given out (KIP-394) and not yet used
        self.pending_syncs: dict[str, None] = {}  # members whose SyncGroup of this generation has not come
        self.awaiting_joins = 0
        self.new_member_added = False
        self.initial_delay: InitialDelay | None = None
        self._pending_event: PendingEvent | None = None
        self._supported: dict[str, int] = {}
        self._weight = 0  # of all members
        self._subscriptions: tuple[bytes, ...] | frozenset[str] | None = None

    # ---- events --------------------------------------------------------------------------------------------------

    @property
    def pending_event(self) -> PendingEvent:
        """What the next event of this group will report."""
        if self._pending_event is None:
            self._pending_event = PendingEvent()
        return self._pending_event

    def clear_pending_event(self) -> None:
        self._pending_event = None

    def note_change(
        self, cause: Cause, *, joined: Iterable[str] = (), left: Iterable[str] = (), reason: str = ""
    ) -> None:
        """Add members to the pending event and, unless a rebalance is already under way, set its cause."""
        pending = self.pending_event
        pending.joined.add(joined)
        if left:
            pending.add_left(cause, reason, left)
        if self.can_rebalance():
            pending.set_cause(cause, reason)

    # ---- states --------------------------------------------------------------------------------------------------

    def can_rebalance(self) -> bool:
        return self.state in _BEFORE[GroupState.PREPARING_REBALANCE]

    def transition(self, state: GroupState, wall_ms: int) -> None:
        if self.state not in _BEFORE[state]:
            raise BrokenInvariant(f"group {self.group_id} cannot go from {self.state.value} to {state.value}")
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = wall_ms

    def all_joined(self) -> bool:
        return self.awaiting_joins == len(self.members) and not self.pending_joins

    def rebalance_timeout_ms(self) -> int:
        """The longest of all members; a negative one, which Kafka takes as well, counts as none."""
        return max((0, *(member.rebalance_timeout_ms for member in self.members.values())))

    # ---- members -------------------------------------------------------------------------------------------------

    def fence(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """NONE if the request comes from a member, and from the one that holds the instance id."""
        if group_instance_id is not None:
            holder = self.static_members.get(group_instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def add(self, member: Member, protocol_type: str) -> None:
        if member.group_instance_id is not None:
            if member.group_instance_id in self.static_members:
                raise BrokenInvariant(f"group {self.group_id} has the instance {member.group_instance_id} already")
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self._weight += _weight(member)
        self.awaiting_joins += member.parked_join is not None
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Take the member, or the id that was given out, from the group; the first of those who stay leads after a leader.

        A JoinGroup that the member had parked must have been answered before.
        """
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.parked_join is None
            self._count(member.protocols, -1)
            self._weight -= _weight(member)
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)

    def replace(self, member: Member, member_id: str) -> Member:
        """The static member under a new id, with its assignment, and last in the order of joining (KIP-345).

        What the old member had parked must have been answered before.
        """
        assert member.group_instance_id is not None
        assert not member.is_parked()
        del self.members[member.member_id]
        new = Member(
            member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.protocols,
            member.assignment,
            heard_ms=member.heard_ms,
        )
        self.members[member_id] = new
        self._weight += _weight(new) - _weight(member)
        if member.member_id in self.pending_syncs:
            del self.pending_syncs[member.member_id]
            self.pending_syncs[member_id] = None
        if self.leader == member.member_id:
            self.leader = member_id
        self.static_members[member.group_instance_id] = member_id
        return new

    def update(self, member: Member, offer: Offer) -> None:
        self._count(member.protocols, -1)
        self._weight -= _weight(member)
        member.protocols = offer.protocols
        self._weight += _weight(member)
        self._count(offer.protocols, 1)
        member.rebalance_timeout_ms = offer.rebalance_timeout_ms
        member.session_timeout_ms = offer.session_timeout_ms

    def park_join(self, member: Member, parked: Parked) -> None:
        """Let the request wait. A request of the same member that waits already is never answered, as in Kafka."""
        self.awaiting_joins += member.parked_join is None
        member.parked_join = parked

    def take_join(self, member: Member) -> Parked | None:
        """The member's parked JoinGroup, which is to be answered now."""
        parked, member.parked_join = member.parked_join, None
        self.awaiting_joins -= parked is not None
        return parked

    def elect_joined_leader(self) -> bool:
        """Whether the group has a leader that has joined; the first who has joined takes the place of one who has not."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is not None and leader.parked_join is not None:
            return True
        for member in self.members.values():
            if member.parked_join is not None:
                self.leader = member.member_id
                return True
        return False

    # ---- protocols -----------------------------------------------------------------------------------------------

    def supports(self, offer: Offer) -> bool:
        """Whether a member with this offer may join: it must share a protocol with all members."""
        if self.state is GroupState.EMPTY:
            return bool(offer.protocol_type) and bool(offer.protocols)
        return self.protocol_type == offer.protocol_type and any(
            self._is_candidate(name) for name, _ in offer.protocols
        )

    def select_protocol(self) -> str:
        """The candidate that most members prefer; if votes tie, the one that stands first in the leader's list."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next((name for name, _ in member.protocols if self._is_candidate(name)), None)
            if choice is None:
                raise BrokenInvariant(f"the members of group {self.group_id} share no protocol")
            votes[choice] = votes.get(choice, 0) + 1
        most = max(votes.values())
        leader = self.members[self.leader] if self.leader in self.members else next(iter(self.members.values()))
        return next(name for name, _ in leader.protocols if votes.get(name) == most)

    def _is_candidate(self, name: str) -> bool:
        return self._supported.get(name, 0) == len(self.members)

    def _count(self, protocols: Protocols, change: int) -> None:
        supported = self._supported
        for name, _ in protocols:
            count = supported.get(name, 0) + change
            if count:
                supported[name] = count
            else:
                supported.pop(name, None)

    # ---- what its record can hold ----------------------------------------------------------------------------------

    def has_room_for_names(self, offer: Offer, names: int, replaced: Member | None) -> bool:
        """Whether the record can hold a member with this offer, and so many characters of names, in place of `replaced`."""
        others = self._weight - (_weight(replaced) if replaced is not None else 0)
        return others + names + _longest(offer.protocols) <= RECORD_BYTES

    def has_room_for_assignments(self, assignments: dict[str, bytes]) -> bool:
        given = sum(len(assignments.get(member_id, b"")) for member_id in self.members)
        return self._weight + given <= RECORD_BYTES

    # ---- subscriptions -------------------------------------------------------------------------------------------

    def note_subscriptions(self) -> None:
        """Keep the metadata of this generation; what topics it names is worked out when somebody asks."""
        if self.protocol_type != CONSUMER:
            self._subscriptions = None
        else:
            self._subscriptions = tuple(member.metadata(self.protocol) for member in self.members.values())

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member of the last generation subscribes to the topic; of a consumer group whose metadata cannot be
        read, or that has had no generation yet, every topic counts as subscribed.
        """
        topics = self.known_subscriptions()
        return self.protocol_type == CONSUMER if topics is None else topic in topics

    def known_subscriptions(self) -> frozenset[str] | None:
        """The topics of the last generation; None if they are not known."""
        if isinstance(self._subscriptions, tuple):
            self._subscriptions = subscribed_topics(self._subscriptions)
        return self._subscriptions

    # ---- hard state ----------------------------------------------------------------------------------------------

    def to_record(self, timestamp_ms: int) -> GroupMetadataRecord:
        """The group as it is now, to be kept."""
        return GroupMetadataRecord(
            self.group_id,
            self.protocol_type or "",
            self.generation,
            self.protocol,
            self.leader,
            self.state_timestamp_ms,
            tuple(_kept(member, self.protocol) for member in self.members.values()),
            timestamp_ms,
        )

    def restore(self) -> None:
        """Take the soft state from the kept one: with members the group is Stable, without it is Empty."""
        kept = self.metadata
        if kept is None:
            return
        self.state = GroupState.STABLE if kept.members else GroupState.EMPTY
        self.state_timestamp_ms = kept.state_timestamp_ms
        self.generation = kept.generation
        self.protocol_type = kept.protocol_type or None
        self.protocol = kept.protocol
        for member in kept.members:
            self.add(_restored(member, kept.protocol), kept.protocol_type)
        self.leader = kept.leader if kept.leader in self.members else next(iter(self.members), None)
        self.note_subscriptions()


def _kept(member: Member, protocol: str | None) -> MemberMetadata:
    return MemberMetadata(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        member.metadata(protocol),
        member.assignment,
    )


def _weight(member: Member) -> int:
    """What the member adds to the group's record, without its assignment: bytes, and of names characters."""
    names = len(member.member_id) + len(member.group_instance_id or "") + len(member.client_id)
    return names + _longest(member.protocols)


def _longest(protocols: Protocols) -> int:
    """Which protocol is chosen, and with it the metadata that is kept, shows only when all have joined."""
    return max((len(metadata) for _, metadata in protocols), default=0)


def _restored(kept: MemberMetadata, protocol: str | None) -> Member:
    return Member(
        kept.member_id,
        kept.group_instance_id,
        kept.client_id,
        kept.client_host,
        # Written by a coordinator that knew no rebalance timeouts: the session timeout stands in.
        kept.session_timeout_ms if kept.rebalance_timeout_ms == -1 else kept.rebalance_timeout_ms,
        kept.session_timeout_ms,
        ((protocol or "", kept.subscription),),
        kept.assignment,
    )


def protocols_of(offered: Iterable[tuple[str, bytes]]) -> Protocols:
    """The member's protocols, each name once: one that is named twice would count as two members' support."""
    seen: dict[str, bytes] = {}
    for name, metadata in offered:
        seen.setdefault(name, metadata)
    return tuple(seen.items())
