"""The group coordinator: requests, timers and records in, effects out. No clock, no chance, no I/O of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from broker.cores.core import BrokenInvariant, RequestContext
from broker.cores.groups.admin import delete_groups, delete_topic_offsets
from broker.cores.groups.classic import rebalance
from broker.cores.groups.classic.join import join_group
from broker.cores.groups.classic.sessions import heartbeat, leave_group, on_session_timeout
from broker.cores.groups.classic.sync import on_sync_timeout, sync_group
from broker.cores.groups.classic.trigger import trigger_rebalance
from broker.cores.groups.describe import describe_group_details, describe_groups, list_groups
from broker.cores.groups.events import Cause
from broker.cores.groups.group import Group
from broker.cores.groups.hard_state import HardState
from broker.cores.groups.offsets import commit_offsets, delete_offsets, expire_offsets, fetch_offsets
from broker.cores.groups.records import StateRecord
from broker.cores.groups.settings import GroupSettings
from broker.cores.groups.step import EXPIRY, JOIN, SESSION, SYNC, CoordinatorState, GroupEffects, Step, TopicCatalog
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

# How many groups one step looks through for expired offsets, and how long it then lets others have their turn.
EXPIRY_SLICE, EXPIRY_REST_MS = 500, 10

HANDLERS: dict[type[Message], Callable[[Step, Any], None]] = {
    JoinGroupRequest: join_group,
    SyncGroupRequest: sync_group,
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: leave_group,
    OffsetCommitRequest: commit_offsets,
    OffsetFetchRequest: fetch_offsets,
    OffsetDeleteRequest: delete_offsets,
    DescribeGroupsRequest: describe_groups,
    DescribeGroupDetailsRequest: describe_group_details,
    ListGroupsRequest: list_groups,
    DeleteGroupsRequest: delete_groups,
    TriggerRebalanceRequest: trigger_rebalance,
}


class Coordinator:
    """All groups of a broker.

    Recovery: `apply` every kept record and `expect_offsets` of every group that has offsets in the store, then `resume`. From
    then on: `handle` requests, having handed over with `load` the offsets of the groups that a request names and `needs_load`
    asks for, and `advance` when the last effects' `wake_at_ms` has come.
    """

    def __init__(self, settings: GroupSettings, new_id: Callable[[], str], topics: TopicCatalog) -> None:
        self._state = CoordinatorState(settings, new_id, topics, HardState(), Timers(), [])

    # ---- recovery ------------------------------------------------------------------------------------------------

    def apply(self, record: StateRecord) -> None:
        """Take a kept record into the hard state; steps do so themselves with the records that they emit."""
        self._state.hard.apply(record)

    def expect_offsets(self, group_ids: Iterable[str]) -> None:
        """The store holds offsets of these groups; so they exist, and are to be loaded at first need."""
        for group_id in group_ids:
            self._state.hard.expect_offsets(group_id)

    def resume(self, now_ms: int, wall_ms: int) -> GroupEffects:
        """After the last kept record: give every member a fresh session, and go on where the records end."""
        step = Step(self._state, now_ms, wall_ms)
        self._state.hard.recovering = False
        max_size = self._state.settings.group_max_size
        for group in list(step.groups.values()):
            group.restore()
            for member in group.members.values():
                step.timers.set((SESSION, group.group_id, member.member_id), now_ms + member.session_timeout_ms)
            if len(group.members) > max_size:
                group.note_change(Cause.MEMBER_LEFT, reason="there are more members than group.max.size allows now")
                rebalance.prepare(step, group)
        step.timers.set((EXPIRY,), now_ms + self._state.settings.offsets_retention_check_interval_ms)
        return step.effects()

    # ---- running -------------------------------------------------------------------------------------------------

    def handle(self, request: Message, context: RequestContext, now_ms: int) -> GroupEffects:
        """Answer the request, now or, if it parks, in the effects of a later step."""
        step = Step(self._state, now_ms, context.wall_ms, context)
        HANDLERS[type(request)](step, request)
        return step.effects()

    def advance(self, now_ms: int, wall_ms: int) -> GroupEffects:
        """Do what is due."""
        step = Step(self._state, now_ms, wall_ms)
        while (key := step.timers.pop_due(now_ms)) is not None:
            _TIMERS[key[0]](step, key)
        return step.effects()

    def wake_at(self) -> int | None:
        """The deadline that the last effects told."""
        return self._state.timers.wake_at()

    # ---- offsets in the store ------------------------------------------------------------------------------------

    def needs_load(self, group_id: str) -> bool:
        """Whether the store may hold offsets of the group that are not in memory. Of a group that is not known it holds none."""
        group = self._state.hard.groups.get(group_id)
        return group is not None and not group.offsets_loaded

    def load(self, group_id: str, records: Iterable[StateRecord]) -> None:
        """Take over all offsets of a group that lie in the store."""
        group = self._state.hard.groups.get(group_id)
        if group is not None and group.offsets_loaded:
            raise BrokenInvariant(f"the offsets of group {group_id} were loaded before")
        for record in records:
            self._state.hard.apply(record)
        group = self._state.hard.groups.get(group_id)
        if group is not None:
            group.offsets_loaded = True

    def unloaded_groups(self) -> list[str]:
        """Groups whose offsets lie in the store alone, and so do not expire."""
        return [group.group_id for group in self._state.hard.groups.values() if not group.offsets_loaded]

    def expire_unloaded(self, group_id: str, records: Iterable[StateRecord], now_ms: int, wall_ms: int) -> GroupEffects:
        """Expire the offsets of an unloaded group, which are handed over for this alone and not kept in memory."""
        step = Step(self._state, now_ms, wall_ms)
        self.load(group_id, records)
        group = step.groups.get(group_id)
        if group is not None:
            expire_offsets(step, group)
            if group_id in step.groups:
                self._state.hard.unload(group)
        return step.effects()

    def topic_deleted(self, topic: str, now_ms: int, wall_ms: int) -> GroupEffects:
        """Drop the topic's offsets in all loaded groups."""
        step = Step(self._state, now_ms, wall_ms)
        delete_topic_offsets(step, topic)
        return step.effects()

    # ---- what tests and the native face read -----------------------------------------------------------------------

    def deadlines(self) -> dict[tuple[str, ...], int]:
        """Every timer, (kind, group id[, member id]), with its deadline."""
        return self._state.timers.deadlines()

    def hard_state(self) -> HardState:
        """All groups and floors, to be looked at and not to be changed."""
        return self._state.hard

    def group(self, group_id: str) -> Group | None:
        """The group, to be looked at and not to be changed."""
        return self._state.hard.groups.get(group_id)


def _on_session(step: Step, key: tuple[str, ...]) -> None:
    on_session_timeout(step, _timed(step, key), key[2])


def _on_join(step: Step, key: tuple[str, ...]) -> None:
    rebalance.on_join_timeout(step, _timed(step, key))


def _on_sync(step: Step, key: tuple[str, ...]) -> None:
    on_sync_timeout(step, _timed(step, key))


def _on_expiry(step: Step, key: tuple[str, ...]) -> None:
    expiry_queue = step.coordinator.expiry_queue
    if not expiry_queue:
        expiry_queue.extend(group.group_id for group in step.groups.values() if group.offsets_loaded)
    for group_id in expiry_queue[-EXPIRY_SLICE:]:
        group = step.groups.get(group_id)
        if group is not None and group.offsets_loaded:
            expire_offsets(step, group)
    del expiry_queue[-EXPIRY_SLICE:]
    wait_ms = EXPIRY_REST_MS if expiry_queue else step.coordinator.settings.offsets_retention_check_interval_ms
    step.timers.set(key, step.now_ms + wait_ms)


def _timed(step: Step, key: tuple[str, ...]) -> Group:
    group = step.groups.get(key[1])
    if group is None:
        raise BrokenInvariant(f"the timer {key} has outlived its group")
    return group


_TIMERS: dict[str, Callable[[Step, tuple[str, ...]], None]] = {
    SESSION: _on_session,
    JOIN: _on_join,
    SYNC: _on_sync,
    EXPIRY: _on_expiry,
}
