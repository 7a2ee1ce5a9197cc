"""A classic group: its states, its members, and the rules that hold for every request: fencing, protocols, leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.cores.core import BrokenInvariant, Parked
from broker.cores.groups.classic.member import Member, Offer, Protocols, longest_metadata
from broker.cores.groups.classic.states import PREVIOUS, GroupState
from broker.cores.groups.classic.subscriptions import subscribed_topics
from broker.cores.groups.events import Cause
from broker.cores.groups.group import AnyStep, Committer, Group
from broker.cores.groups.records import GenerationFloor, GroupMetadataRecord, GroupMetadataTombstone, StateRecord
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode

# The protocol type of Kafka's consumers, whose metadata and assignments the broker can read.
CONSUMER = "consumer"
# The largest state record of a group: names and subscriptions of all members, and their assignments. Kafka's limit is the
# message.max.bytes of its offsets topic, a sixteenth of this. Without a limit one group could stop the store.
RECORD_BYTES = 16 << 20

# The kinds of a group's timers. A key is (kind, group id), for sessions (kind, group id, member id).
SESSION, JOIN, SYNC = "session", "join", "sync"

_RENEWS_SESSION = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)


class InitialDelay(NamedTuple):
    """The delay in progress before a group's first generation, and by how much it may still be extended."""

    delay_ms: int
    remaining_ms: int


class ClassicGroup(Group):
    """One group of the classic protocol. `GroupState` describes its states.

    `metadata` is hard state, which only `HardState` changes. Everything else is soft state; `restore` derives it from `metadata`.
    """

    TYPE = "classic"

    __slots__ = (
        "_record_size",
        "_subscriptions",
        "_supported",
        "initial_delay",
        "leader",
        "members",
        "metadata",
        "new_member_added",
        "parked_joins",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol",
        "state",
        "state_timestamp_ms",
        "static_members",
    )

    def __init__(self, group_id: str, *, offsets_loaded: bool) -> None:
        super().__init__(group_id, offsets_loaded=offsets_loaded)
        # hard
        self.metadata: GroupMetadataRecord | None = None
        # soft
        self.state, self.previous_state = GroupState.EMPTY, GroupState.DEAD
        self.state_timestamp_ms = -1
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}  # in the order in which they joined
        self.static_members: dict[str, str] = {}  # group instance id -> member id
        self.pending_joins: dict[str, None] = {}  # ids given out (KIP-394) whose clients have not joined with them yet
        self.pending_syncs: dict[str, None] = {}  # members that have not sent the SyncGroup of this generation
        self.parked_joins = 0  # how many members have a parked JoinGroup
        self.new_member_added = False  # during the initial delay, which this extends
        self.initial_delay: InitialDelay | None = None
        self._supported: dict[str, int] = {}  # protocol -> how many members support it
        self._record_size = 0  # of all members, without assignments
        self._subscriptions: tuple[bytes, ...] | frozenset[str] | None = None

    # ---- states --------------------------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    def can_rebalance(self) -> bool:
        """Whether a rebalance may start; during PreparingRebalance one is under way already."""
        return self.state in PREVIOUS[GroupState.PREPARING_REBALANCE]

    def transition(self, state: GroupState, wall_ms: int) -> None:
        if self.state not in PREVIOUS[state]:
            raise BrokenInvariant(f"group {self.group_id} cannot go from {self.state.value} to {state.value}")
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = wall_ms

    def all_joined(self) -> bool:
        return self.parked_joins == len(self.members) and not self.pending_joins

    def rebalance_timeout_ms(self) -> int:
        """The longest of all members; a negative one, which Kafka accepts, counts as 0."""
        return max((0, *(member.rebalance_timeout_ms for member in self.members.values())))

    def note_change(
        self, cause: Cause, *, joined: Iterable[str] = (), left: Iterable[str] = (), reason: str = ""
    ) -> None:
        """Add members to the pending event and, unless a rebalance is under way already, set its cause."""
        pending = self.pending_event
        pending.joined.add(joined)
        if left:
            pending.add_left(cause, reason, left)
        if self.can_rebalance():
            pending.set_cause(cause, reason)

    # ---- sessions ------------------------------------------------------------------------------------------------

    def restart_session(self, step: AnyStep, member: Member) -> None:
        """The member has shown that it is alive, and must do so again within its session timeout."""
        member.session_renewed_ms = step.now_ms
        self.set_session(step, member.member_id, member.session_timeout_ms)

    def set_session(self, step: AnyStep, member_id: str, timeout_ms: int) -> None:
        step.timers.set((SESSION, self.group_id, member_id), step.now_ms + timeout_ms)

    def end_session(self, step: AnyStep, member_id: str) -> None:
        step.timers.cancel((SESSION, self.group_id, member_id))

    # ---- members -------------------------------------------------------------------------------------------------

    @property
    def member_count(self) -> int:
        return len(self.members)

    def fence(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """NONE if the id belongs to a member and, for a static member, to the one that holds the instance id now."""
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
        self._count_support(member.protocols, 1)
        self._record_size += member.size()
        self.parked_joins += member.parked_join is not None
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member, or an id that was given out. The first remaining member succeeds a leader.

        The caller has answered the member's parked JoinGroup.
        """
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.parked_join is None
            self._count_support(member.protocols, -1)
            self._record_size -= member.size()
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)

    def replace(self, member: Member, member_id: str) -> Member:
        """Give a static member a new id (KIP-345). It keeps its assignment and becomes the last in the order of joining.

        The caller has answered what the old id had parked.
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
            session_renewed_ms=member.session_renewed_ms,
        )
        self.members[member_id] = new
        self._record_size += new.size() - member.size()
        if member.member_id in self.pending_syncs:
            del self.pending_syncs[member.member_id]
            self.pending_syncs[member_id] = None
        if self.leader == member.member_id:
            self.leader = member_id
        self.static_members[member.group_instance_id] = member_id
        return new

    def update(self, member: Member, offer: Offer) -> None:
        """Replace the member's protocols and timeouts by those of its new offer."""
        self._count_support(member.protocols, -1)
        self._record_size -= member.size()
        member.protocols = offer.protocols
        self._record_size += member.size()
        self._count_support(offer.protocols, 1)
        member.rebalance_timeout_ms = offer.rebalance_timeout_ms
        member.session_timeout_ms = offer.session_timeout_ms

    def park_join(self, member: Member, parked: Parked) -> None:
        """Park the member's JoinGroup, in place of one that is parked already."""
        self.parked_joins += member.parked_join is None
        member.parked_join = parked

    def take_join(self, member: Member) -> Parked | None:
        """Take out the member's parked JoinGroup; the caller answers it."""
        parked, member.parked_join = member.parked_join, None
        self.parked_joins -= parked is not None
        return parked

    def elect_joined_leader(self) -> bool:
        """Make the first member that has joined the leader if the present one has not; False if no member has joined."""
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
        """The candidate that most members prefer; if votes tie, the first of these in the leader's list."""
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

    def _count_support(self, protocols: Protocols, change: int) -> None:
        supported = self._supported
        for name, _ in protocols:
            count = supported.get(name, 0) + change
            if count:
                supported[name] = count
            else:
                supported.pop(name, None)

    # ---- offsets -------------------------------------------------------------------------------------------------

    def check_commit(self, committer: Committer) -> ErrorCode:
        member_id, group_instance_id, generation, _, is_transactional = committer
        if generation < 0 and self.state is GroupState.EMPTY:
            # A simple consumer or an admin commits without a generation. An Empty group has no members to conflict with.
            return ErrorCode.NONE
        if generation < 0 and not member_id and group_instance_id is None:
            # Old versions of TxnOffsetCommit cannot name a member.
            return ErrorCode.NONE if is_transactional else ErrorCode.UNKNOWN_MEMBER_ID
        error = self.fence(member_id, group_instance_id)
        if error:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if self.state is GroupState.COMPLETING_REBALANCE and not is_transactional:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def on_commit(self, step: AnyStep, member_id: str) -> None:
        if self.state in _RENEWS_SESSION:
            self.restart_session(step, self.members[member_id])

    def check_offset_delete(self) -> ErrorCode:
        if self.state is not GroupState.EMPTY and self.protocol_type != CONSUMER:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        """Offsets of an Empty group age together, from the time it became Empty; all others age from their commit."""
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.state is GroupState.EMPTY:
            return self.state_timestamp_ms if self.state_timestamp_ms >= 0 else commit_timestamp_ms
        if self.state is GroupState.STABLE and self.known_subscriptions() is not None:
            return commit_timestamp_ms
        return None

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NONE if self.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def is_abandoned(self) -> bool:
        return self.state is GroupState.EMPTY and not self.pending_joins

    def cancel_timers(self, step: AnyStep) -> None:
        for member_id in (*self.members, *self.pending_joins):
            self.end_session(step, member_id)
        step.timers.cancel((JOIN, self.group_id))
        step.timers.cancel((SYNC, self.group_id))

    def tombstones(self, wall_ms: int, *, keeps_offsets: bool = False) -> list[StateRecord]:
        return [GroupMetadataTombstone(self.group_id, wall_ms, keeps_offsets), GenerationFloor(self.group_id, None)]

    # ---- subscriptions -------------------------------------------------------------------------------------------

    def note_subscriptions(self) -> None:
        """Keep the metadata of this generation; its topics are read when they are needed."""
        if self.protocol_type != CONSUMER:
            self._subscriptions = None
        else:
            self._subscriptions = tuple(member.metadata(self.protocol) for member in self.members.values())

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member of the last generation subscribes to the topic.

        True for every topic of a consumer group whose metadata cannot be read, or that has had no generation yet.
        """
        topics = self.known_subscriptions()
        return self.protocol_type == CONSUMER if topics is None else topic in topics

    def known_subscriptions(self) -> frozenset[str] | None:
        """The topics of the last generation; None if they are not known."""
        if isinstance(self._subscriptions, tuple):
            self._subscriptions = subscribed_topics(self._subscriptions)
        return self._subscriptions

    # ---- the state record ----------------------------------------------------------------------------------------

    def has_room_for_member(self, offer: Offer, name_characters: int, replaced: Member | None) -> bool:
        """Whether the state record can hold a member with this offer and these names, in place of `replaced`."""
        others = self._record_size - (replaced.size() if replaced is not None else 0)
        return others + name_characters + longest_metadata(offer.protocols) <= RECORD_BYTES

    def has_room_for_assignments(self, assignments: dict[str, bytes]) -> bool:
        """Whether the state record can hold the members with these assignments."""
        assigned = sum(len(assignments.get(member_id, b"")) for member_id in self.members)
        return self._record_size + assigned <= RECORD_BYTES

    def to_record(self, timestamp_ms: int) -> GroupMetadataRecord:
        """The present generation as a state record."""
        return GroupMetadataRecord(
            self.group_id,
            self.protocol_type or "",
            self.generation,
            self.protocol,
            self.leader,
            self.state_timestamp_ms,
            tuple(member.to_metadata(self.protocol) for member in self.members.values()),
            timestamp_ms,
        )

    def restore(self) -> None:
        """Derive the soft state from the stored record: Stable with its members, or Empty."""
        stored = self.metadata
        if stored is None:
            return
        self.state = GroupState.STABLE if stored.members else GroupState.EMPTY
        self.state_timestamp_ms = stored.state_timestamp_ms
        self.generation = stored.generation
        self.protocol_type = stored.protocol_type or None
        self.protocol = stored.protocol
        for member in stored.members:
            self.add(Member.from_metadata(member, stored.protocol), stored.protocol_type)
        self.leader = stored.leader if stored.leader in self.members else next(iter(self.members), None)
        self.note_subscriptions()


def find(groups: Mapping[str, Group], group_id: str) -> ClassicGroup | None:
    """The group if it exists and is a classic one."""
    group = groups.get(group_id)
    return group if isinstance(group, ClassicGroup) else None


def of_timer(groups: Mapping[str, Group], group_id: str) -> ClassicGroup:
    """The group whose timer has expired."""
    group = find(groups, group_id)
    if group is None:
        raise BrokenInvariant(f"a timer of group {group_id} has outlived the group")
    return group
