"""What must always hold, checked when requests arrive, at the core's effects, at responses, on the disk and at the clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.cores.core import Effects, RequestContext
from broker.cores.groups.classic.group import SESSION, ClassicGroup
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.expiry import EXPIRY
from broker.cores.groups.hard_state import HardState
from broker.cores.groups.records import GenerationFloor, GroupRemoval, OffsetTombstone
from broker.protocol.codec import decode
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from tests.harness.simulation.causes import Causes
from tests.harness.simulation.chronicle import Chronicle
from tests.harness.simulation.terms import Life, Plan, ensure, parse_share, share

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from tests.harness.simulation.consumer import Consumer
    from tests.harness.simulation.world import World

NONE = ErrorCode.NONE
ENDLESS = 2**31 - 1
LATE_MS = 1_000


class Asked:
    """A request at the broker, what was true when it ran, and what its response depends on."""

    __slots__ = ("events", "indexes", "life", "may_commit", "overtaken_by", "request", "version", "written")

    def __init__(self, request: Any, version: int) -> None:
        self.request = request
        self.version = version
        self.may_commit = False
        self.overtaken_by = 0
        self.life: Life | None = None
        self.written = self.events = 0
        self.indexes: dict[tuple[str, str, int], int] = {}


class Judge:
    """Tracks the classic groups of one world over all its brokers and raises a Violation when a promise is broken."""

    chronicle_type: type[Chronicle] = Chronicle

    def __init__(self, world: World) -> None:
        self._world = world
        self._asked: dict[Exchange, Asked] = {}
        self._plans: dict[str, Plan] = {}
        self._plan_of: dict[tuple[Life, int], str] = {}
        self._owners: dict[tuple[Life, int, int], str] = {}
        self._sent: dict[Life, int] = {}  # the highest generation in any response sent
        self._assigned: dict[Life, int] = {}  # the highest generation with an assignment in any response sent
        self._formed: dict[tuple[Life, int], int] = {}  # the broker that formed the generation
        self._members_sent: dict[tuple[Life, int], list[str]] = {}  # the members that the leader learned
        self._issued: dict[str, int] = {}  # member ids, numbered in the order in which they became members
        self._offsets: dict[
            tuple[str, str, int], list[int | None]
        ] = {}  # every offset ever committed (or None: deleted), in order
        self._acknowledged: dict[tuple[str, str, int], int] = {}  # the last of these that clients know to be committed
        self._restored: dict[str, int] = {}
        self._chronicle, self._causes = self.chronicle_type(), Causes()
        self._acknowledged_events = 0
        self.generations = self.commits = self.acknowledged = 0
        self.restarted()

    # ---- the lives of brokers ----------------------------------------------------------------------------------------

    def restarted(self) -> None:
        """A broker is about to start. Requests that the previous one had not answered need no response."""
        self._asked.clear()
        self._chronicle.restarted(self._world.disk, self._acknowledged_events)
        self._causes.restarted()
        self._open: dict[int, None] = {}
        self._may_be_lost: dict[int, None] = {}
        self._floors: dict[str, int] = {}
        self._sent_here: dict[Life, int] = {}  # like _sent, for the present broker
        self._heard_ms: dict[tuple[str, str], int] = {}
        self._sessions_due: dict[tuple[str, ...], int] = {}

    def recovered(self) -> None:
        """A broker has recovered: everything that was acknowledged is there, and it continues where the log ends."""
        disk = self._world.disk
        durable = disk.offsets()
        for key, history in self._offsets.items():
            value, acknowledged = durable.get(key), self._acknowledged.get(key, 0)
            found = [at for at in range(acknowledged, len(history)) if history[at] == value]
            ensure(
                bool(found),
                f"after a crash the offset of {key} is {value}, but {history[acknowledged]} was acknowledged",
            )
            del history[found[-1] + 1 :]
        for key in durable:
            ensure(key in self._offsets, f"the offset of {key} was never committed")
        self._restored = {group.group_id: group.generation for group in self._groups()}
        self._causes.recovered(self._groups())
        if not disk.dirty:
            self.check_hard_state()

    # ---- requests and responses --------------------------------------------------------------------------------------

    def arrived(self, exchange: Exchange, request: Any) -> None:
        asked = self._asked[exchange] = Asked(request, exchange.version)
        if isinstance(request, OffsetCommitRequest):
            asked.may_commit = self._may_commit(request)
            life = self._life(request.group_id)
            # A generation that had no assignment before a crash is void; the one before it continues.
            asked.overtaken_by = max(self._sent_here.get(life, 0), self._assigned.get(life, 0))

    def answered(self, exchange: Exchange, response: Any) -> None:
        """The broker has answered, but the response was not sent yet."""
        asked = self._asked[exchange]
        request = asked.request
        asked.written, asked.events = self._world.disk.written, len(self._chronicle.emitted)
        if isinstance(request, OffsetCommitRequest):
            self._judge_commit(asked, request, response)
        elif isinstance(request, JoinGroupRequest) and response.error_code == NONE:
            asked.life = self._life(request.group_id)
            self._issued.setdefault(response.member_id, len(self._issued))
            self._judge_join(asked.life, response)
        elif isinstance(request, SyncGroupRequest) and response.error_code == NONE:
            asked.life = self._life(request.group_id)
            self._judge_sync(request, response)
        elif isinstance(request, OffsetFetchRequest):
            self._judge_fetch(request, response)

    def released(self, exchange: Exchange) -> None:
        """The broker sends a response."""
        asked, disk = self._asked.pop(exchange), self._world.disk
        ensure(not disk.failed, "a response is sent after the disk has failed")
        name = type(asked.request).__name__
        ensure(disk.synced >= asked.written, f"the response to {name} is sent before its state is durable")
        ensure(
            len(disk.durable.events) >= asked.events, f"the response to {name} is sent before its events are durable"
        )
        self._acknowledged_events = max(self._acknowledged_events, asked.events)
        self._chronicle.read(disk.journal)
        if isinstance(asked.request, JoinGroupRequest) and asked.life is not None:
            response, body = exchange.parts[0]  # type: ignore[misc]
            joined = decode(response, body, exchange.version)
            for sent in (self._sent, self._sent_here):
                sent[asked.life] = max(sent.get(asked.life, 0), joined.generation_id)
        elif isinstance(asked.request, SyncGroupRequest) and asked.life is not None:
            self._assigned[asked.life] = max(self._assigned.get(asked.life, 0), asked.request.generation_id)
        for key, index in asked.indexes.items():
            self._acknowledged[key] = max(self._acknowledged.get(key, 0), index)
            self.acknowledged += 1

    def _may_commit(self, request: OffsetCommitRequest) -> bool:
        """Whether the sender is a member of the present generation, or the group is Empty and the commit names no generation."""
        group, generation = self._group(request.group_id), request.generation_id_or_member_epoch
        if group is None or group.state is GroupState.EMPTY:
            return generation < 0
        instance_id, member_id = request.group_instance_id, request.member_id
        is_member = member_id in group.members and (
            instance_id is None or group.static_members.get(instance_id) == member_id
        )
        return is_member and generation == group.generation and group.state is not GroupState.COMPLETING_REBALANCE

    def _judge_commit(self, asked: Asked, request: OffsetCommitRequest, response: Any) -> None:
        generation = request.generation_id_or_member_epoch
        errors = {
            (topic.name, row.partition_index): row.error_code for topic in response.topics for row in topic.partitions
        }
        for topic in request.topics:
            count = self._world.catalog.partition_count(topic.name) or 0
            for partition in topic.partitions:
                error = errors.pop((topic.name, partition.partition_index))
                may_commit = asked.may_commit and partition.partition_index < count
                accepted = error == NONE
                sender = f"{request.member_id or 'no member'} in generation {generation} of {request.group_id}"
                ensure(accepted <= may_commit, f"a commit of {sender} succeeds")
                ensure(accepted >= may_commit, f"a commit of {sender} is refused: {error}")
                if accepted:
                    overtaken = 0 <= generation < asked.overtaken_by
                    ensure(not overtaken, f"{sender} commits, but generation {asked.overtaken_by} was sent already")
                    key = request.group_id, topic.name, partition.partition_index
                    history = self._offsets.setdefault(key, [None])
                    history.append(partition.committed_offset)
                    asked.indexes[key] = len(history) - 1
                    self.commits += 1
        ensure(not errors, f"partitions are answered that were not committed: {errors}")
        group = self._group(request.group_id)
        if asked.may_commit and group is not None and generation >= 0:
            self._heard_ms[request.group_id, request.member_id] = self._world.broker.now_ms

    def _judge_join(self, life: Life, response: Any) -> None:
        generation, number = response.generation_id, self._world.broker.number
        formed_by = self._formed.get((life, generation))
        if formed_by != number and self._restored.get(life.group_id) != generation:
            ensure(generation > self._sent.get(life, 0), f"generation {generation} of {life} repeats")
            self._formed[life, generation] = number
            self._members_sent.pop((life, generation), None)
            self.generations += 1
        members_sent = [member.member_id for member in response.members]
        instances = [member.group_instance_id or member.member_id for member in response.members]
        ensure(
            len({*members_sent}) == len(members_sent) and len({*instances}) == len(instances),
            f"a member is listed twice: {members_sent}",
        )
        if members_sent and not response.skip_assignment:
            ensure(
                response.leader == response.member_id,
                f"{response.member_id} receives the members but is not the leader",
            )
            before = self._members_sent.setdefault((life, generation), members_sent)
            ensure(
                before == members_sent, f"generation {generation} of {life} has the members {before} and {members_sent}"
            )

    def _judge_sync(self, request: SyncGroupRequest, response: Any) -> None:
        life, generation, member_id = self._life(request.group_id), request.generation_id, request.member_id
        group = self._group(request.group_id)
        assert group is not None
        ensure(generation == group.generation, f"{member_id} syncs generation {generation} of {group.generation}")
        ensure(member_id in group.members, f"{member_id} syncs but is not a member in {life}")
        plan_id, owner, partitions = parse_share(response.assignment)
        plan = self._plans[plan_id]
        ensure((plan.life.group_id, plan.generation) == (life.group_id, generation), f"{member_id} receives {plan}")
        first = self._plan_of.setdefault((life, generation), plan_id)
        ensure(first == plan_id, f"generation {generation} of {life} has two assignments")
        ensure(response.assignment == plan.shares[owner], f"the share of {owner} has changed")
        owner_now = group.members[member_id].group_instance_id or member_id
        # The new member of a static instance receives the share of its old member.
        ensure(owner == member_id or owner.startswith(f"{owner_now}-"), f"{member_id} receives the share of {owner}")
        for partition in partitions:
            holder = self._owners.setdefault((life, generation, partition), owner_now)
            ensure(
                holder == owner_now,
                f"{holder} and {owner_now} own partition {partition} in generation {generation} of {life}",
            )

    def _judge_fetch(self, request: OffsetFetchRequest, response: Any) -> None:
        found = [(request.group_id, response.topics)]
        found += [(group.group_id, group.topics) for group in response.groups if not group.error_code]
        for group_id, topics in found:
            for topic in topics:
                for partition in topic.partitions:
                    history = self._offsets.get((group_id, topic.name, partition.partition_index), [None])
                    expected = -1 if history[-1] is None else history[-1]
                    ensure(
                        partition.committed_offset == expected,
                        f"{group_id}: the offset of {topic.name}-{partition.partition_index} is "
                        f"{partition.committed_offset}, not {expected}",
                    )

    # ---- the core's effects ------------------------------------------------------------------------------------------

    def before(self, request: Any, context: RequestContext) -> None:
        """Note whose parked request the next request may replace."""
        group = self._group(getattr(request, "group_id", ""))
        self._open[context.ticket] = None
        self._causes.before([group] if group is not None else [])
        if group is None:
            return
        if isinstance(request, LeaveGroupRequest):
            for leaving in request.members or [LeaveGroupRequest.Member(member_id=request.member_id)]:
                instance_id = leaving.group_instance_id or ""
                self._may_lose(group, leaving.member_id or group.static_members.get(instance_id, ""), "parked_sync")
        elif isinstance(request, JoinGroupRequest):
            self._may_lose(group, request.member_id, "parked_join")
        elif isinstance(request, SyncGroupRequest):
            self._may_lose(group, request.member_id, "parked_sync")

    def _may_lose(self, group: ClassicGroup, member_id: str, what: str) -> None:
        parked = getattr(group.members.get(member_id), what, None)
        if parked is not None:
            self._may_be_lost[parked.ticket] = None

    def after(self, request: Any, effects: Effects) -> None:
        """Check the effects of a step; `request` is None for a step by timer."""
        self._chronicle.step(effects.events)
        self._causes.after(request, self._with_causes(effects), classic_groups(self._world.broker.core.hard_state()))
        for reply in effects.replies:
            ensure(reply.ticket in self._open, f"ticket {reply.ticket} is answered twice or was never issued")
            del self._open[reply.ticket]
        for record in effects.state_records:
            if isinstance(record, GenerationFloor):
                self._judge_floor(record)
            elif isinstance(record, OffsetTombstone):
                self._judge_tombstone(request, record)
            elif isinstance(record, GroupRemoval):
                for key, history in self._offsets.items():
                    if key[0] == record.group_id:
                        history.append(None)
        if isinstance(request, HeartbeatRequest) and effects.replies[0].response.error_code in (  # type: ignore[attr-defined]
            NONE,
            ErrorCode.REBALANCE_IN_PROGRESS,
        ):
            self._heard_ms[request.group_id, request.member_id] = self._world.broker.now_ms

    def _with_causes(self, effects: Effects) -> Effects:
        """The effects with those events whose causes are checked."""
        return effects

    def _judge_floor(self, record: GenerationFloor) -> None:
        if record.generation is None:
            self._floors.pop(record.group_id, None)
            return
        highest = max(self._sent.get(self._life(record.group_id), 0), self._floors.get(record.group_id, 0))
        ensure(record.generation > highest, f"{record.group_id} forms generation {record.generation} after {highest}")
        self._floors[record.group_id] = record.generation

    def _judge_tombstone(self, request: Any, record: OffsetTombstone) -> None:
        key = record.group_id, record.topic, record.partition
        self._offsets.setdefault(key, [None]).append(None)
        if not isinstance(request, OffsetDeleteRequest | DeleteGroupsRequest):
            ensure(self._world.may_expire(), f"the offset of {key} expires too early")

    def synced_members(self) -> dict[str, dict[str, int]]:
        """The members of Stable groups with their session timeouts, except those that have not synced yet."""
        return {
            group.group_id: {m.member_id: m.session_timeout_ms for m in group.members.values()}
            for group in self._groups()
            if group.state is GroupState.STABLE and not group.pending_syncs
        }

    def due(self) -> None:
        """Timers are about to run."""
        broker = self._world.broker
        due = {key: deadline_ms for key, deadline_ms in broker.core.deadlines().items() if deadline_ms <= broker.now_ms}
        self._sessions_due = {key[1:]: deadline_ms for key, deadline_ms in due.items() if key[0] == SESSION}
        self._causes.before(self._groups() if due else [], list(due))

    def evicted(self, before: dict[str, dict[str, int]]) -> None:
        """Timers have run: a member whose session has not expired must still be there."""
        now_ms = self._world.broker.now_ms
        unread = [
            decode(HeartbeatRequest, body, version)
            for _, version, key, body in self._world.broker.loop.unread()
            if key == HeartbeatRequest.API_KEY
        ]
        waiting = {(beat.group_id, beat.member_id): None for beat in unread}
        for group_id, members in before.items():
            group = self._group(group_id)
            for member_id, session_timeout_ms in members.items():
                if group is None or member_id not in group.members:
                    heard_ms = self._heard_ms.get((group_id, member_id), now_ms - session_timeout_ms)
                    silent_ms = now_ms - heard_ms
                    ensure(
                        silent_ms >= session_timeout_ms,
                        f"{member_id} is removed {silent_ms} ms after its last heartbeat",
                    )
                    # A broker that was stopped must read what arrived meanwhile before it expires a session. JoinGroup and
                    # SyncGroup renew sessions, too, so the silence says nothing about how late the broker is.
                    late_ms = now_ms - self._sessions_due.get((group_id, member_id), now_ms)
                    ignored = (group_id, member_id) in waiting and late_ms > LATE_MS
                    ensure(not ignored, f"{member_id} is removed while its heartbeat waits to be read")

    # ---- everything --------------------------------------------------------------------------------------------------

    def audit(self) -> None:
        """Check parked requests, deadlines and members between two turns of the broker."""
        waiting: dict[int, None] = {}
        for group in self._groups():
            for member in group.members.values():
                for parked in (member.parked_join, member.parked_sync):
                    if parked is not None:
                        waiting[parked.ticket] = None
            instances = [m.group_instance_id for m in group.members.values() if m.group_instance_id is not None]
            ensure(len(instances) == len({*instances}), f"{group.group_id} has a duplicate instance id: {instances}")
            is_empty = group.state is GroupState.EMPTY
            ensure(not (group.members and is_empty), f"{group.group_id} is Empty and has members")
        for ticket in self._open:
            ensure(ticket in waiting or ticket in self._may_be_lost, f"ticket {ticket} has no parked request")
        for ticket in waiting:
            ensure(ticket in self._open, f"ticket {ticket} is parked but was answered")
        broker = self._world.broker
        deadlines = broker.core.deadlines()
        ensure((EXPIRY,) in deadlines, "no timer checks for expired offsets")
        ensure(min(deadlines.values()) >= broker.now_ms - 2, f"overdue: {min(deadlines, key=deadlines.__getitem__)}")

    def check_hard_state(self) -> None:
        """The core's hard state equals the log, replayed as a whole and replayed after compaction."""
        live = self._world.broker.core.hard_state()
        whole, compacted = self._world.disk.replayed()
        for replayed in (whole, compacted):
            ensure(replayed.floors == live.floors, "the generation floors differ from the log")
            stored_groups = classic_groups(replayed)
            for group_id, group in stored_groups.items():
                # A simple group ends without a tombstone when its last offset is deleted.
                is_nothing = group.metadata is None and not group.offsets
                ensure(group_id in live.groups or is_nothing, f"{group_id} is only in the log")
            for group_id, group in classic_groups(live).items():
                other = stored_groups.get(group_id)
                stored = other.metadata if other is not None else None
                ensure(group.metadata == stored, f"{group_id} differs from the log")
        # A tombstone in the whole log does not say whether a group that gets another type has kept its offsets.
        for group_id, group in live.groups.items():
            if group.offsets_loaded:
                found = compacted.groups[group_id].offsets if group_id in compacted.groups else {}
                ensure(group.offsets == found, f"the offsets of {group_id} are {group.offsets}, but {found} in the log")
        self._chronicle.read(self._world.disk.journal)
        on_disk = [row.value for row in self._world.disk.durable.events]
        ensure(on_disk == self._chronicle.emitted, "the events on disk are not those that were emitted")
        durable = self._world.disk.offsets()
        for key, history in self._offsets.items():
            ensure(
                durable.get(key) == history[-1],
                f"the log's offset of {key} is {durable.get(key)}, expected {history[-1]}",
            )

    # ---- clients -----------------------------------------------------------------------------------------------------

    def plan(self, leader: Consumer, member_ids: list[str]) -> dict[str, bytes]:
        """What a leader computes: a share for each member, distinct from the shares of any other plan."""
        plan_id = f"{leader.name}/{len(self._plans)}"
        count = self._world.partitions
        shares = {
            member_id: share(plan_id, member_id, range(at, count, len(member_ids)))
            for at, member_id in enumerate(member_ids)
        }
        life = self._life(leader.profile.group_id)
        self._plans[plan_id] = Plan(life, leader.generation, leader.member_id, shares)
        return shares

    def collected(self, consumer: Consumer, assignment: bytes) -> tuple[int, ...]:
        """A member has received its assignment: the partitions that it now owns."""
        plan_id, owner, partitions = parse_share(assignment)
        ensure(
            self._plans[plan_id].shares[owner] == assignment,
            f"{consumer.name} receives an assignment that no leader made",
        )
        return partitions

    def fenced(self, consumer: Consumer) -> None:
        """A member with an assignment learns that another member has its instance id, which must be a later one."""
        group, instance_id = self._group(consumer.profile.group_id), consumer.profile.instance_id
        holder = group.static_members.get(instance_id or "") if group is not None else None
        if holder is not None and consumer.member_id and consumer.collected_as == consumer.member_id:
            is_later = self._issued.get(holder, ENDLESS) > self._issued[consumer.member_id]
            ensure(is_later, f"{consumer.member_id} is fenced by its own predecessor {holder}")

    # ---- views -------------------------------------------------------------------------------------------------------

    def _groups(self) -> list[ClassicGroup]:
        return list(classic_groups(self._world.broker.core.hard_state()).values())

    def _group(self, group_id: str) -> ClassicGroup | None:
        group = self._world.broker.core.group(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def _life(self, group_id: str) -> Life:
        return Life(group_id, self._world.disk.life(group_id))


def classic_groups(state: HardState) -> dict[str, ClassicGroup]:
    return {group_id: group for group_id, group in state.groups.items() if isinstance(group, ClassicGroup)}
