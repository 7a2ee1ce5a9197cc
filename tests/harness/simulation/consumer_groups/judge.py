"""The judge of consumer groups: owners of partitions, epochs that members learn, timeouts, and the state that the log restores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.cores.core import Effects
from broker.cores.groups.consumer.group import REBALANCE, SESSION, ConsumerGroup
from broker.cores.groups.consumer.member import MemberState
from broker.cores.groups.hard_state import HardState
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from tests.harness.simulation.chronicle import Chronicle
from tests.harness.simulation.consumer import TOPIC
from tests.harness.simulation.consumer_groups.chronicle import ConsumerGroupsChronicle, is_consumer_group
from tests.harness.simulation.consumer_groups.member import COMMIT_VERSION, GroupMember, Partitions
from tests.harness.simulation.judge import Asked, Judge
from tests.harness.simulation.terms import Life, ensure

if TYPE_CHECKING:
    from broker.cores.groups.consumer.member import ConsumerMember
    from broker.server.exchange import Exchange
    from tests.harness.simulation.consumer_groups.world import ConsumerGroupsWorld

NONE = ErrorCode.NONE


class ConsumerGroupsJudge(Judge):
    chronicle_type: type[Chronicle] = ConsumerGroupsChronicle
    _chronicle: ConsumerGroupsChronicle
    _world: ConsumerGroupsWorld

    def __init__(self, world: ConsumerGroupsWorld) -> None:
        self._learned: dict[tuple[Life, str], int] = {}  # the highest epoch in any answer sent to a member
        self._epochs: dict[tuple[Life, int], None] = {}  # those that any member has learned
        self._targets: dict[tuple[Life, int, str], Any] = {}  # what a member knows to be its target of an epoch
        # Members that the coordinator removed because of time, and what was written before; they may not know it yet.
        self._expired: dict[tuple[str, str], int] = {}
        self.evictions = 0
        super().__init__(world)

    # ---- the lives of brokers ----------------------------------------------------------------------------------------

    def restarted(self) -> None:
        super().restarted()
        synced = self._world.disk.synced
        self._expired = {key: written for key, written in self._expired.items() if written < synced}
        self._answers: dict[Exchange, tuple[Life, str, int, str, Any]] = {}
        self._beats_ms: dict[tuple[str, str], int] = {}
        self._unrevoked_ms: dict[tuple[str, str], tuple[int, int]] = {}
        self._before: dict[tuple[str, str], ConsumerMember] = {}

    def recovered(self) -> None:
        self._started_ms = self._world.broker.now_ms
        super().recovered()
        for group_id, group in self._consumer_groups().items():
            for member_id, member in group.members.items():
                if member.current.state == MemberState.UNREVOKED_PARTITIONS:
                    self._unrevoked_ms[group_id, member_id] = member.current.member_epoch, self._started_ms
        for (life, member_id), epoch in self._learned.items():
            if life == self._life(life.group_id):
                self._check_recovered(life, member_id, epoch)

    def _check_recovered(self, life: Life, member_id: str, epoch: int) -> None:
        """The group is at least in the epoch that the member knows."""
        group = self._world.broker.core.group(life.group_id)
        ensure(group is not None, f"{life} has ended without a tombstone")
        assert group is not None
        ensure(group.generation >= epoch, f"{life} is in epoch {group.generation}, but {member_id} knows {epoch}")
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is not None and member.current.member_epoch >= 0:
            found = member.current.member_epoch
            ensure(found >= epoch, f"{member_id} of {life} is in epoch {found}, but knows {epoch}")

    # ---- requests and responses --------------------------------------------------------------------------------------

    def answered(self, exchange: Exchange, response: Any) -> None:
        super().answered(exchange, response)
        request = self._asked[exchange].request
        if not isinstance(request, ConsumerGroupHeartbeatRequest) or response.error_code:
            return
        group_id, member_id = request.group_id, response.member_id
        if request.member_epoch == 0:
            self._expired.pop((group_id, member_id), None)
        if response.member_epoch <= 0:
            return
        group = self._consumer_groups()[group_id]
        member = group.members[member_id]
        ensure(
            member.current.member_epoch == response.member_epoch,
            f"{member_id} learns epoch {response.member_epoch}, but is in {member.current.member_epoch}",
        )
        is_current = response.member_epoch == group.assignment_epoch
        target = _places(group.targets.get(member_id, {})) if is_current else None
        ensure(request.member_epoch <= response.member_epoch, f"{member_id} is heard in epoch {request.member_epoch}")
        owner = member.subscription.instance_id or member_id
        self._answers[exchange] = self._life(group_id), member_id, response.member_epoch, owner, target

    def released(self, exchange: Exchange) -> None:
        super().released(exchange)
        answer = self._answers.pop(exchange, None)
        if answer is None:
            return
        life, member_id, epoch, owner, target = answer
        before = self._learned.get((life, member_id), 0)
        ensure(epoch >= before, f"{member_id} of {life} learns epoch {epoch} after {before}")
        self._learned[life, member_id] = epoch
        self.generations += (life, epoch) not in self._epochs
        self._epochs[life, epoch] = None
        ensure(
            self._chronicle.epochs.get(life.group_id, 0) >= epoch or life != self._life(life.group_id),
            f"{member_id} learns epoch {epoch} of {life}, which is not durable",
        )
        if target is not None:
            first = self._targets.setdefault((life, epoch, owner), target)
            ensure(first == target, f"{owner} has the targets {first} and {target} in epoch {epoch} of {life}")

    def _may_commit(self, request: OffsetCommitRequest) -> bool:
        group = self._consumer_groups().get(request.group_id)
        if group is None:
            return super()._may_commit(request)
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and not group.members:
            return True
        member = group.members.get(request.member_id)
        return member is not None and epoch == member.current.member_epoch

    def _judge_commit(self, asked: Asked, request: OffsetCommitRequest, response: Any) -> None:
        if asked.version < COMMIT_VERSION and request.group_id in self._consumer_groups():
            asked.may_commit &= request.generation_id_or_member_epoch < 0
        super()._judge_commit(asked, request, response)
        topic_id = self._world.catalog.topic_id(TOPIC)
        if request.generation_id_or_member_epoch < 0 or not asked.may_commit or self._world.reorders:
            return
        for partition in request.topics[0].partitions:
            for other in self._rivals(request.group_id, request.member_id):
                ensure(
                    (topic_id, partition.partition_index) not in other.owned,
                    f"{request.member_id} commits partition {partition.partition_index}, which {other.name} owns",
                )

    # ---- the core's effects ------------------------------------------------------------------------------------------

    def after(self, request: Any, effects: Effects) -> None:
        super().after(request, effects)
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            # Before it, an upgrade refuses the parked requests of classic members.
            self._note_beat(request, effects.replies[-1].response)

    def _note_beat(self, request: ConsumerGroupHeartbeatRequest, response: Any) -> None:
        """Note when the member was heard, and since when it has to give up partitions."""
        key = request.group_id, response.member_id
        group = self._consumer_groups().get(request.group_id)
        member = None if group is None else group.members.get(response.member_id)
        if response.error_code or member is None or request.member_epoch < 0:
            return
        now_ms, epoch = self._world.broker.now_ms, member.current.member_epoch
        self._beats_ms[key] = now_ms
        if member.current.state != MemberState.UNREVOKED_PARTITIONS:
            self._unrevoked_ms.pop(key, None)
        elif self._unrevoked_ms.get(key, (0, 0))[0] != epoch:
            self._unrevoked_ms[key] = epoch, now_ms

    def _with_causes(self, effects: Effects) -> Effects:
        """The causes in the events of consumer groups follow other rules."""
        classic = [event for event in effects.events if not is_consumer_group(event.group_id)]
        return Effects(effects.state_records, effects.replies, effects.wake_at_ms, classic)

    def due(self) -> None:
        super().due()
        core, now_ms = self._world.broker.core, self._world.broker.now_ms
        self._due = {key for key, deadline_ms in core.deadlines().items() if deadline_ms <= now_ms}
        groups = self._consumer_groups() if self._due else {}
        self._before = {
            (group_id, member_id): member
            for group_id, group in groups.items()
            for member_id, member in group.members.items()
        }

    def evicted(self, before: dict[str, dict[str, int]]) -> None:
        super().evicted(before)
        broker = self._world.broker
        for (group_id, member_id), member in self._before.items():
            group: Any = broker.core.group(group_id)
            if group is not None and member_id in group.members:
                continue
            self.evictions += 1
            self._expired[group_id, member_id] = self._world.disk.written
            session_ms = self._session_ms(member)
            silent_ms = broker.now_ms - self._beats_ms.get((group_id, member_id), broker.now_ms - session_ms)
            ensure(
                silent_ms >= session_ms or self._is_stuck(group_id, member),
                f"{member_id} is removed {silent_ms} ms after its last heartbeat",
            )

    def _session_ms(self, member: ConsumerMember) -> int:
        return self._world.broker.settings.group_consumer_session_timeout_ms

    def _is_stuck(self, group_id: str, member: ConsumerMember) -> bool:
        """Whether it has had its rebalance timeout to give up partitions."""
        key = group_id, member.member_id
        if member.current.state != MemberState.UNREVOKED_PARTITIONS or (REBALANCE, *key) not in self._due:
            return False
        _, since_ms = self._unrevoked_ms.get(key, (0, self._started_ms))
        return self._world.broker.now_ms - since_ms >= member.subscription.rebalance_timeout_ms

    # ---- everything --------------------------------------------------------------------------------------------------

    def audit(self) -> None:
        super().audit()
        deadlines = self._world.broker.core.deadlines()
        for group_id, group in self._consumer_groups().items():
            self._audit(group_id, group, deadlines)

    def _audit(self, group_id: str, group: ConsumerGroup, deadlines: dict[tuple[str, ...], int]) -> None:
        owners: dict[tuple[bytes, int], str] = {}
        aims: dict[tuple[bytes, int], str] = {}
        ensure(group.assignment_epoch <= group.generation, f"{group_id} has a target of a later epoch")
        for member_id, member in group.members.items():
            current = member.current
            for part in (current.assigned, current.pending_revocation):
                for place in _places(part):
                    holder = owners.setdefault(place, member_id)
                    ensure(holder == member_id, f"{holder} and {member_id} own {place} of {group_id}")
                    known = group.owner_epoch(*place)
                    ensure(known == current.member_epoch, f"{place} of {group_id} is owned in epoch {known}")
            for place in _places(group.targets.get(member_id, {})):
                holder = aims.setdefault(place, member_id)
                ensure(holder == member_id, f"{holder} and {member_id} shall own {place} of {group_id}")
            ensure(current.member_epoch <= group.assignment_epoch, f"{member_id} is ahead of {group_id}")
            ensure((SESSION, group_id, member_id) in deadlines, f"{member_id} of {group_id} has no session")
            is_asked = current.state == MemberState.UNREVOKED_PARTITIONS and member.subscription.classic is None
            if is_asked and current.member_epoch >= 0:
                ensure((REBALANCE, group_id, member_id) in deadlines, f"{member_id} may keep what it is to give up")
            if current.state == MemberState.STABLE and current.member_epoch == group.assignment_epoch:
                target = group.targets.get(member_id, {})
                ensure(
                    _places(target) == _places(current.assigned), f"{member_id} of {group_id} is Stable off its target"
                )
        ensure(group.regexes.keys() <= group.expressions.keys(), f"{group_id} has regular expressions of no member")
        ensure(group.targets.keys() <= group.members.keys(), f"{group_id} has targets of members that have left")
        known = {(topic_id, number) for topic_id, epochs in group.owners.items() for number in epochs}
        ensure(known == owners.keys(), f"{group_id}: {known ^ owners.keys()} have no owner, or an unknown one")

    def check_hard_state(self) -> None:
        super().check_hard_state()
        live = _consumer_groups(self._world.broker.core.hard_state())
        for replayed in map(_consumer_groups, self._world.disk.replayed()):
            ensure(live.keys() == replayed.keys(), f"the log has the groups {[*replayed]}, not {[*live]}")
            for group_id, group in live.items():
                for name in STORED:
                    found, stored = getattr(group, name), getattr(replayed[group_id], name)
                    ensure(found == stored, f"{name} of {group_id} is {found}, but {stored} from the log")

    # ---- clients -----------------------------------------------------------------------------------------------------

    def gains(self, member: GroupMember, added: Partitions) -> None:
        """A member takes over partitions, which no other one may have then. One that slept longer than its session does not know yet."""
        if self._world.reorders or (member.profile.group_id, member.member_id) in self._expired:
            return
        for other in self._rivals(member.profile.group_id, member.member_id):
            both = added & other.claimed
            ensure(not both, f"{member.name} takes over {sorted(both)}, which {other.name} has not given up")

    def _rivals(self, group_id: str, member_id: str) -> list[GroupMember]:
        """Other members that nothing has fenced, as far as they know or time tells."""
        return [
            other
            for other in self._world.members
            if other.profile.group_id == group_id
            and other.member_id != member_id
            and (group_id, other.member_id) not in self._expired
        ]

    # ---- views -------------------------------------------------------------------------------------------------------

    def _consumer_groups(self) -> dict[str, ConsumerGroup]:
        return _consumer_groups(self._world.broker.core.hard_state())


# What the log restores, with what follows from it.
STORED = (
    "generation",
    "assignment_epoch",
    "metadata_hash",
    "members",
    "targets",
    "regexes",
    "static_members",
    "named",
    "matched",
    "expressions",
    "assignors",
    "owners",
    "state_name",
)


def _consumer_groups(state: HardState) -> dict[str, ConsumerGroup]:
    return {group_id: group for group_id, group in state.groups.items() if isinstance(group, ConsumerGroup)}


def _places(owned: Any) -> frozenset[tuple[bytes, int]]:
    return frozenset((topic_id, partition) for topic_id, partitions in owned.items() for partition in partitions)
