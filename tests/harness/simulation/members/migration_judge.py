"""The judge of groups that migrate: what a member learned in a group of one type holds when it has become one of the other type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.cores.core import Effects, RequestContext
from broker.cores.groups.consumer.group import JOIN, SYNC, ConsumerGroup
from broker.cores.groups.group import Group
from broker.cores.groups.records import (
    GenerationFloor,
    GroupMetadataRecord,
    OffsetsRow,
    from_row,
)
from broker.cores.groups.records.consumer import GroupEpochRecord
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from kgctl.client.consumer.assignors.wire import decode_assignment
from tests.harness.simulation.chronicle import Chronicle, EventRow
from tests.harness.simulation.consumer_groups.chronicle import ConsumerGroupsChronicle
from tests.harness.simulation.judge import Asked, Judge
from tests.harness.simulation.members.epochs import EpochsJudge
from tests.harness.simulation.members.judge import MemberJudge
from tests.harness.simulation.terms import Life, ensure

if TYPE_CHECKING:
    from broker.cores.groups.consumer.member import ConsumerMember
    from broker.server.exchange import Exchange
    from tests.harness.simulation.consumer_groups.member import GroupMember, Partitions
    from tests.harness.simulation.members.migration import MigrationWorld


class MigrationChronicle(ConsumerGroupsChronicle):
    """Reads epochs and generations alike. The events of a group that migrates follow rules that are tested elsewhere."""

    def _take_record(self, change: OffsetsRow | GenerationFloor) -> None:
        if isinstance(change, GenerationFloor):
            self._reached(change.group_id, change.generation)
            return
        record = from_row(change.key, change.value, change.timestamp_ms)
        if isinstance(record, GroupEpochRecord):
            self._reached(record.group_id, record.epoch)
        elif isinstance(record, GroupMetadataRecord):
            self._reached(record.group_id, record.generation)

    def _reached(self, group_id: str, epoch: int | None) -> None:
        if epoch is not None:
            self.epochs[group_id] = epoch

    def _take_event(self, event: dict[str, Any], row: EventRow) -> None:
        ensure((row.key, row.timestamp_ms) == (event["group"].encode(), event["timestamp"]), f"{row} is not {event}")


class MigrationJudge(EpochsJudge, MemberJudge):
    """A migration is no new life of a group that has members: its epochs go up through all of them."""

    chronicle_type: type[Chronicle] = MigrationChronicle
    _world: MigrationWorld  # type: ignore[assignment]

    def __init__(self, world: MigrationWorld) -> None:
        # Of groups with members, with what was written before: those that a crash undoes are forgotten.
        self._migrations: dict[str, list[int]] = {}
        self._downgraded: dict[str, int] = {}
        self._unsettled: dict[tuple[str, str], None] = {}
        self._unled: dict[
            str, int
        ] = {}  # the generation of the last downgrade that need not be followed by a rebalance
        self.upgrades = self.downgrades = 0
        super().__init__(world)

    # ---- the lives of groups -----------------------------------------------------------------------------------------

    def restarted(self) -> None:
        super().restarted()
        synced = self._world.disk.synced
        self._migrations = {
            group_id: [at for at in written if at < synced] for group_id, written in self._migrations.items()
        }
        self._former: dict[str, tuple[Group, int]] = {}
        # As in Kafka, a restart forgets the rebalance that a downgrade has begun.
        self._unled.update(self._downgraded)

    def _life(self, group_id: str) -> Life:
        """The tombstone of a migration does not end it."""
        return Life(group_id, self._world.disk.life(group_id) - len(self._migrations.get(group_id, ())))

    def sees_growth(self, group_id: str) -> bool:
        """Whether a member watches the topics for the group and notices what has no owner. As in Kafka, none does in a consumer group that
        has only classic members, and before a classic group that was one of consumers has formed a generation.
        """
        group = self._world.broker.core.group(group_id)
        if isinstance(group, ConsumerGroup):
            return group.classic_members < len(group.members)
        return group is None or group.generation > self._unled.get(group_id, -1)

    def before(self, request: Any, context: RequestContext) -> None:
        super().before(request, context)
        self._ticket = context.ticket
        self._note_former()

    def due(self) -> None:
        super().due()
        self._note_former()

    def _note_former(self) -> None:
        groups: dict[str, Any] = self._world.broker.core.hard_state().groups
        self._former = {group_id: (group, len(group.members)) for group_id, group in groups.items()}

    def after(self, request: Any, effects: Effects) -> None:
        super().after(request, effects)
        groups: dict[str, Any] = self._world.broker.core.hard_state().groups
        for group_id, (former, members) in self._former.items():
            group = groups.get(group_id)
            if group is None or group is former or not members or not group.members:
                continue
            is_upgrade = isinstance(group, ConsumerGroup)
            ensure(is_upgrade != isinstance(former, ConsumerGroup), f"{group_id} is replaced by one of its type")
            ensure(
                group.generation >= former.generation,
                f"{group_id} goes from {former.generation} to {group.generation}",
            )
            # A member that goes with a downgrade does not make another epoch, so one with its instance id has a target of its own.
            self._targets = {key: target for key, target in self._targets.items() if key[0].group_id != group_id}
            self._note_unsettled(group_id, former, group)
            self.upgrades += is_upgrade
            self.downgrades += not is_upgrade
            if not is_upgrade:
                life = self._life(group_id)
                self._formed[life, group.generation] = self._world.broker.number
                self._assigned[life] = self._sent[life] = group.generation
                if isinstance(request, JoinGroupRequest):
                    self._unled[group_id] = group.generation
            self._migrations.setdefault(group_id, []).append(self._world.disk.written)
        self._former = {}
        self._note_classic_beat(request, effects)

    def _note_classic_beat(self, request: Any, effects: Effects) -> None:
        if not isinstance(request, HeartbeatRequest | JoinGroupRequest | SyncGroupRequest):
            return
        for ticket, response in ((reply.ticket, reply.response) for reply in effects.replies):
            error = response.error_code  # type: ignore[attr-defined]
            is_heard = isinstance(request, HeartbeatRequest) and error == ErrorCode.REBALANCE_IN_PROGRESS
            if ticket == self._ticket and (is_heard or not error):
                member_id = getattr(response, "member_id", request.member_id)
                self._beats_ms[request.group_id, member_id] = self._world.broker.now_ms

    def _note_unsettled(self, group_id: str, former: Any, group: Any) -> None:
        """A downgrade assigns targets. If it is followed by an upgrade rather than a rebalance, as in Kafka nothing is known of what
        classic members still own beside them.
        """
        if isinstance(former, ConsumerGroup):
            self._downgraded[group_id] = group.generation
        elif self._downgraded.get(group_id) == former.generation:
            self._unsettled.update(dict.fromkeys((group_id, member_id) for member_id in former.members))

    def _with_causes(self, effects: Effects) -> Effects:
        return Effects(effects.state_records, effects.replies, effects.wake_at_ms, [])

    def _check_recovered(self, life: Life, member_id: str, epoch: int) -> None:
        state = self._world.broker.core.hard_state()
        if state.floors.get(life.group_id, 0) < epoch or isinstance(state.groups.get(life.group_id), ConsumerGroup):
            super()._check_recovered(life, member_id, epoch)

    # ---- requests and responses --------------------------------------------------------------------------------------

    def answered(self, exchange: Exchange, response: Any) -> None:
        super().answered(exchange, response)
        asked = self._asked[exchange]
        request = asked.request
        if isinstance(request, JoinGroupRequest) and response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED:
            # As in Kafka, a member that does not join again in time for a full group is removed, and does not give up what it owns.
            self._unsettled[request.group_id, request.member_id] = None
        group = self._world.broker.core.group(getattr(request, "group_id", ""))
        if asked.life is None or not isinstance(group, ConsumerGroup):
            return
        # What the judge of classic groups expects of one generation does not hold for the epochs of single members.
        asked.life = None
        if isinstance(request, JoinGroupRequest):
            member = group.members[response.member_id]
            ensure(member.current.member_epoch == response.generation_id, f"{member} learns {response.generation_id}")
            owner = member.subscription.instance_id or member.member_id
            self._answers[exchange] = self._life(group.group_id), member.member_id, response.generation_id, owner, None

    def _judge_join(self, life: Life, response: Any) -> None:
        if not isinstance(self._world.broker.core.group(life.group_id), ConsumerGroup):
            super()._judge_join(life, response)

    def _judge_sync(self, request: SyncGroupRequest, response: Any) -> None:
        group = self._world.broker.core.group(request.group_id)
        if not isinstance(group, ConsumerGroup):
            super()._judge_sync(request, response)
            return
        member, topic_id = group.members[request.member_id], self._world.catalog.topic_id
        share = {(topic_id(one.topic), one.partition) for one in decode_assignment(response.assignment).partitions}
        known = {
            (found, partition)
            for found, partitions in member.current.assigned.items()
            for partition in partitions
            if self._world.catalog.topic_name(found) is not None
        }
        ensure(share == known, f"{member.member_id} is assigned {share}, but has {known}")

    def _may_commit(self, request: OffsetCommitRequest) -> bool:
        group = self._consumer_groups().get(request.group_id)
        return super()._may_commit(request) if group is not None else Judge._may_commit(self, request)

    def _judge_commit(self, asked: Asked, request: OffsetCommitRequest, response: Any) -> None:
        if request.group_id in self._consumer_groups():
            asked.overtaken_by = 0
        super()._judge_commit(asked, request, response)

    def _judge_floor(self, record: GenerationFloor) -> None:
        super()._judge_floor(record)
        life, generation = self._life(record.group_id), record.generation
        if generation is not None:
            for (known, member_id), epoch in self._learned.items():
                ensure(known != life or generation > epoch, f"{life} forms {generation}, but {member_id} knows {epoch}")

    # ---- members that are removed ------------------------------------------------------------------------------------

    def _session_ms(self, member: ConsumerMember) -> int:
        """A restart gives classic members the session of the others, as in Kafka."""
        session_ms, classic = super()._session_ms(member), member.subscription.classic
        return session_ms if classic is None else min(session_ms, classic.session_timeout_ms)

    def _is_stuck(self, group_id: str, member: ConsumerMember) -> bool:
        if super()._is_stuck(group_id, member):
            return True
        is_classic = member.subscription.classic is not None
        return is_classic and any((kind, group_id, member.member_id) in self._due for kind in (JOIN, SYNC))

    # ---- clients -----------------------------------------------------------------------------------------------------

    def _rivals(self, group_id: str, member_id: str) -> list[GroupMember]:
        """Members that the coordinator has not removed; those that it has may not know it yet. Nor does a static member of a classic
        group that has not joined in time: as in Kafka, the group continues without its answer (KIP-345).
        """
        group: Any = self._world.broker.core.group(group_id)
        known = group.members if group is not None else {}
        return [
            other
            for other in super()._rivals(group_id, member_id)
            if other.member_id in known
            and (group_id, other.member_id) not in self._unsettled
            and (isinstance(group, ConsumerGroup) or other.generation == group.generation)  # type: ignore[attr-defined]
        ]

    def gains(self, member: GroupMember, added: Partitions) -> None:
        group: Any = self._world.broker.core.group(member.profile.group_id)
        if group is not None and member.member_id in group.members:
            super().gains(member, added)
