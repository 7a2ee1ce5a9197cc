"""The group coordinator: dispatches requests and timers to their handlers, and loads offsets when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from broker.cores.core import BrokenInvariant, RequestContext
from broker.cores.groups import expiry
from broker.cores.groups.admin import delete_groups, list_groups
from broker.cores.groups.classic import rebalance, sessions, sync
from broker.cores.groups.classic.describe import describe_group_details, describe_groups
from broker.cores.groups.classic.group import JOIN, SESSION, SYNC, ClassicGroup
from broker.cores.groups.classic.join import join_group
from broker.cores.groups.classic.recovery import resume_group
from broker.cores.groups.classic.trigger import trigger_rebalance
from broker.cores.groups.group import Group
from broker.cores.groups.hard_state import HardState
from broker.cores.groups.offsets import commit_offsets, delete_offsets, fetch_offsets
from broker.cores.groups.records import OffsetCommitRecord, StateRecord, TopicRemoval
from broker.cores.groups.settings import GroupConfigs, GroupSettings, no_configs
from broker.cores.groups.step import CoordinatorState, ExpiryCheck, GroupEffects, Step
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from broker.protocol.wire_types import Message
from broker.timers import Timers

if TYPE_CHECKING:
    from broker.cores.groups.topics import TopicCatalog
    from broker.cores.share.state import ShareState

# Every request that the coordinator handles.
HANDLERS: dict[type[Message], Callable[[Step, Any], None]] = {
    # groups of any type
    OffsetCommitRequest: commit_offsets,
    OffsetFetchRequest: fetch_offsets,
    OffsetDeleteRequest: delete_offsets,
    ListGroupsRequest: list_groups,
    DeleteGroupsRequest: delete_groups,
    # classic groups
    JoinGroupRequest: join_group,
    SyncGroupRequest: sync.sync_group,
    HeartbeatRequest: sessions.heartbeat,
    LeaveGroupRequest: sessions.leave_group,
    DescribeGroupsRequest: describe_groups,
    DescribeGroupDetailsRequest: describe_group_details,
    TriggerRebalanceRequest: trigger_rebalance,
}
# The requests of the classic protocol, which members of groups of other types may send, too.
CLASSIC_PROTOCOL = frozenset({JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest})
# What runs when a timer expires, by its kind; the rest of its key is passed as arguments.
TIMERS: dict[str, Callable[..., None]] = {
    expiry.EXPIRY: expiry.check_loaded_groups,
    SESSION: sessions.on_session_timeout,
    JOIN: rebalance.on_join_timeout,
    SYNC: sync.on_sync_timeout,
}
# How a group of each type starts running after recovery.
RESUME: dict[type[Group], Callable[[Step, Any], None]] = {ClassicGroup: resume_group}


def _transactional() -> ModuleType:
    """Loaded at its first use: most brokers serve no transaction."""
    return import_module("broker.cores.groups.transactional_offsets")


def _consumer_groups() -> ModuleType:
    """The tables of consumer groups, loaded when there is one."""
    return import_module("broker.cores.groups.consumer.tables")


@cache
def _tables_of(name: str) -> ModuleType:
    """Where a request, a timer or a type of groups is looked up that brokers without groups of newer protocols do not have."""
    if "share" in name.lower():
        return import_module("broker.cores.groups.share.tables")
    return _consumer_groups() if name.lower().startswith("consumer") else _transactional()


def _no_share_state() -> ShareState:
    raise BrokenInvariant("there is no share coordinator")


class Coordinator:
    """All groups of a broker; a `Core`.

    Offsets stay in the store until they are needed. Recovery: `apply` every stored record of groups and floors, `expect_offsets` of
    the groups that have offsets in the store, then `resume`. Before `handle`, call `load` for each group whose offsets the request
    needs and for which `needs_load` is true.
    """

    def __init__(
        self,
        settings: GroupSettings,
        new_id: Callable[[], str],
        topics: TopicCatalog,
        configs: GroupConfigs = no_configs,
        share_state: Callable[[], ShareState] = _no_share_state,
    ) -> None:
        """`share_state` is called when a share group first needs it."""
        self._state = CoordinatorState(
            settings, new_id, topics, HardState(), Timers(), ExpiryCheck(), configs, share_state
        )

    # ---- recovery ------------------------------------------------------------------------------------------------

    def apply(self, state_record: StateRecord, /) -> None:
        self._state.hard.apply(state_record)

    def expect_offsets(self, group_ids: Iterable[str]) -> None:
        """The store has offsets of these groups; the groups exist, and their offsets are loaded at first need."""
        for group_id in group_ids:
            self._state.hard.expect_offsets(group_id)

    def resume(self, now_ms: int, wall_ms: int) -> GroupEffects:
        """Give every member a fresh session and continue where the stored records end."""
        step = Step(self._state, now_ms, wall_ms)
        self._state.hard.recovering = False
        self._state.started_ms = wall_ms
        for group in list(step.groups.values()):
            resume = RESUME.get(type(group)) or _tables_of(group.TYPE).resume_group
            resume(step, group)
        expiry.schedule_check(step)
        return step.effects()

    # ---- running -------------------------------------------------------------------------------------------------

    def handle(self, request: Message, context: RequestContext, now_ms: int) -> GroupEffects:
        step = Step(self._state, now_ms, context.wall_ms, context)
        kind = type(request)
        handler = HANDLERS.get(kind)
        if handler is None:
            handler = _tables_of(kind.__name__).HANDLERS[kind]
        elif kind in CLASSIC_PROTOCOL:
            group = step.groups.get(request.group_id)  # type: ignore[attr-defined]
            if group is not None:
                handler = group.classic_handlers().get(kind, handler)
        handler(step, request)
        return step.effects()

    def advance(self, now_ms: int, wall_ms: int) -> GroupEffects:
        step = Step(self._state, now_ms, wall_ms)
        while (key := step.timers.pop_due(now_ms)) is not None:
            kind, *arguments = key
            timer = TIMERS.get(kind) or _tables_of(kind).TIMERS[kind]
            timer(step, *arguments)
        return step.effects()

    def wake_at(self) -> int | None:
        """The deadline that the last effects named."""
        return self._state.timers.wake_at()

    def topic_deleted(self, topic: str, now_ms: int, wall_ms: int) -> GroupEffects:
        """Drop the topic's offsets in all groups, also those in the store."""
        step = Step(self._state, now_ms, wall_ms)
        for removal in self._state.hard.pending.removals_of_topic(topic):
            step.persist(removal)
        step.persist(TopicRemoval(topic))
        if any(group.TYPE == "share" for group in step.groups.values()):
            _tables_of("share").topic_deleted(step, topic)
        return step.effects()

    def pending_epoch(self, producer_id: int, is_asked: Callable[[str], bool]) -> int:
        """The newest epoch with which the producer has pending offsets in these groups; -1 if it has none."""
        pending = self._state.hard.pending
        groups = [group_id for group_id in pending.groups_of(producer_id) if is_asked(group_id)]
        return max((pending.epoch_of(producer_id, group_id) for group_id in groups), default=-1)

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        has_ended: Callable[[str], bool],
        limit: int,
        now_ms: int,
        wall_ms: int,
        *,
        is_commit: bool,
    ) -> tuple[GroupEffects, bool]:
        """Commit or drop at most `limit` pending offsets of a producer, in the groups for which its transaction has ended.

        True: there are more. Groups whose offsets are in the store only are not loaded for this.
        """
        step = Step(self._state, now_ms, wall_ms)
        if not self._state.hard.pending.groups_of(producer_id):
            return step.effects(), False
        end = _transactional().end_transaction
        more = end(step, producer_id, producer_epoch, has_ended, limit, is_commit=is_commit)
        return step.effects(), more

    # ---- offsets in the store ------------------------------------------------------------------------------------

    def needs_load(self, group_id: str) -> bool:
        """Whether the store may have offsets of the group that are not in memory. Unknown groups have none."""
        group = self._state.hard.groups.get(group_id)
        return group is not None and not group.offsets_loaded

    def load(self, group_id: str, records: Iterable[StateRecord]) -> None:
        """Take all offsets of a group from the store."""
        self._state.hard.begin_load(group_id)
        self._state.hard.add_loaded(group_id, records)
        self._state.hard.end_load(group_id)

    def begin_load(self, group_id: str) -> None:
        """Take the offsets of a group from the store in parts, by `add_loaded`, until `end_load`. Other steps may come between."""
        self._state.hard.begin_load(group_id)

    def add_loaded(self, group_id: str, records: Iterable[StateRecord]) -> bool:
        """False: the group was deleted meanwhile, and nothing is left to load."""
        return self._state.hard.add_loaded(group_id, records)

    def end_load(self, group_id: str) -> None:
        self._state.hard.end_load(group_id)

    def free(self) -> bool:
        """Free some memory of removed offsets. True: there is more."""
        return self._state.hard.free()

    def unloaded_groups(self) -> list[str]:
        """Groups whose offsets are only in the store, where the coordinator's own check does not expire them."""
        return [group.group_id for group in self._state.hard.groups.values() if not group.offsets_loaded]

    def can_expire_unloaded(self, group_id: str) -> bool:
        """Whether the offsets of the group are in the store only, and no load and no transaction is about to change that."""
        hard = self._state.hard
        return self.needs_load(group_id) and group_id not in hard.loading and hard.pending.of_group(group_id) is None

    def expire_unloaded(
        self, group_id: str, records: Sequence[OffsetCommitRecord], now_ms: int, wall_ms: int
    ) -> GroupEffects:
        """Expire some of the stored offsets of a group that is not loaded; they do not stay in memory."""
        step = Step(self._state, now_ms, wall_ms)
        expiry.drop_expired(step, step.groups[group_id], records)
        return step.effects()

    def expire_emptied(self, group_id: str, now_ms: int, wall_ms: int) -> GroupEffects:
        """The store has no offset of the group left: delete it if it is Empty."""
        step = Step(self._state, now_ms, wall_ms)
        self.load(group_id, ())
        expiry.delete_if_abandoned(step, step.groups[group_id])
        return step.effects()

    # ---- read-only views -----------------------------------------------------------------------------------------

    def deadlines(self) -> dict[tuple[str, ...], int]:
        """Every timer, (kind, group id[, member id]), with its deadline."""
        return self._state.timers.deadlines()

    def hard_state(self) -> HardState:
        return self._state.hard

    def group(self, group_id: str) -> Group | None:
        return self._state.hard.groups.get(group_id)
