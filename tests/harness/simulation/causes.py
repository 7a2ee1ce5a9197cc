"""The causes that events may name, derived from the request or the deadline of each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.cores.core import Effects
from broker.cores.groups.classic.group import JOIN, SESSION, SYNC
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.events import Cause, EventType, GroupEvent
from broker.cores.groups.records import GroupMetadataRecord
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from tests.harness.simulation.terms import ensure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.cores.groups.classic.group import ClassicGroup


class Before:
    """A group before a step."""

    __slots__ = ("absent", "instances", "members", "pending", "unsynced")

    def __init__(self, group: ClassicGroup) -> None:
        self.members = dict.fromkeys(group.members)
        self.instances = {member_id: instance for instance, member_id in group.static_members.items()}
        self.pending = dict.fromkeys(group.pending_joins)
        self.unsynced = dict.fromkeys(group.pending_syncs)
        self.absent: dict[str, None] = {}
        if group.state is GroupState.PREPARING_REBALANCE and group.initial_delay is None:
            unparked = (member.member_id for member in group.members.values() if member.parked_join is None)
            self.absent = dict.fromkeys([*unparked, *group.pending_joins])


class Causes:
    """Tracks, for one run of the broker, which members have left each group and the causes that are possible."""

    def __init__(self) -> None:
        self.restarted()

    def restarted(self) -> None:
        self._before: dict[str, Before] = {}
        self._due: dict[tuple[str, ...], None] = {}
        self._members_at_event: dict[
            str, set[str]
        ] = {}  # the members at the last event of each group that ended a rebalance
        self._gone: dict[str, dict[str, set[Cause]]] = {}
        self._absent: dict[str, set[str]] = {}
        self._began: dict[str, Cause | None] = {}

    def recovered(self, groups: Iterable[ClassicGroup]) -> None:
        self._members_at_event = {group.group_id: {*group.members} for group in groups}

    def before(self, groups: Iterable[ClassicGroup], due: Iterable[tuple[str, ...]] = ()) -> None:
        """Note the groups that the next step may change. The step runs a request, unless deadlines are due."""
        self._before = {group.group_id: Before(group) for group in groups}
        self._due = dict.fromkeys(due)

    def after(self, request: Any, effects: Effects, groups: dict[str, ClassicGroup]) -> None:
        for group_id, before in self._before.items():
            now = groups[group_id].members if group_id in groups else {}
            for member_id in before.members:
                if member_id not in now:
                    why = self._why_left(request, group_id, member_id)
                    self._gone.setdefault(group_id, {}).setdefault(member_id, set()).update(why)
            if (JOIN, group_id) in self._due:
                self._absent.setdefault(group_id, set()).update(before.absent)
        records = {r.group_id: r for r in effects.state_records if isinstance(r, GroupMetadataRecord)}
        for event in effects.events:
            if event.type is EventType.REBALANCE_STARTED:
                allowed = self._why_started(request, event.group_id)
                ensure(event.cause in allowed, f"{event}: the cause must be one of {allowed}")
                self._began[event.group_id] = event.cause
            else:
                self._check_end(event, records.get(event.group_id))
        # Steps that cannot change members noted no groups before.
        self._before, self._due = {}, {}

    def _why_left(self, request: Any, group_id: str, member_id: str) -> set[Cause]:
        before = self._before[group_id]
        if isinstance(request, LeaveGroupRequest):
            by_instance = [m.group_instance_id for m in request.members if not m.member_id]
            by_admin = before.instances.get(member_id, "") in by_instance
            return {Cause.REQUESTED_BY_ADMIN if by_admin else Cause.MEMBER_LEFT}
        if isinstance(request, JoinGroupRequest):
            is_replaced = request.member_id != member_id and request.group_instance_id is not None
            return {Cause.MEMBER_JOINED if is_replaced else Cause.MEMBER_LEFT}
        return self._timed_out(before, group_id, member_id)

    def _timed_out(self, before: Before, group_id: str, member_id: str) -> set[Cause]:
        allowed = set()
        if (SESSION, group_id, member_id) in self._due:
            allowed.add(Cause.SESSION_TIMED_OUT)
        if (SYNC, group_id) in self._due and member_id in before.unsynced:
            allowed.add(Cause.SYNC_TIMED_OUT)
        if (JOIN, group_id) in self._due and member_id in before.absent and member_id not in before.instances:
            allowed.add(Cause.REBALANCE_TIMED_OUT)
        return allowed

    def _why_started(self, request: Any, group_id: str) -> set[Cause]:
        before = self._before.get(group_id)
        if isinstance(request, JoinGroupRequest):
            is_known = before is not None and request.member_id in before.members
            return {Cause.SUBSCRIPTION_CHANGED if is_known else Cause.MEMBER_JOINED}
        if isinstance(request, TriggerRebalanceRequest):
            return {Cause.REQUESTED_BY_ADMIN}
        if before is None:
            # After a restart a group may have more members than the broker allows now.
            return {Cause.MEMBER_LEFT}
        gone = self._gone.get(group_id, {})
        why_gone = {why for member_id in before.members for why in gone.get(member_id, ())}
        if not why_gone and isinstance(request, LeaveGroupRequest) and _left_pending(request, before):
            return {Cause.MEMBER_LEFT}
        return why_gone

    def _check_end(self, event: GroupEvent, record: GroupMetadataRecord | None) -> None:
        group_id = event.group_id
        gone, absent = self._gone.pop(group_id, {}), self._absent.pop(group_id, set())
        if event.type is EventType.DELETED:
            ensure(event.cause is Cause.GROUP_DELETED, f"{event}: not a deletion")
            self._members_at_event.pop(group_id, None)
            return
        ensure(record is not None, f"{event}: no state record")
        assert record is not None
        members_at_event = {member.member_id for member in record.members}
        ensure(event.members == len(members_at_event), f"{event}: the member count differs from {record}")
        if (event.joined_count, event.left_count) == (len(event.joined), len(event.left)):
            left = {*event.left}
            expected = (self._members_at_event.get(group_id, set()) | {*event.joined}) - left
            ensure(members_at_event == expected, f"{event}: members are {members_at_event}, expected {expected}")
            ensure(left == gone.keys(), f"{event}: the members that left are {gone}")
            ensure(len(event.left) == len(event.left_causes), f"{event}: a member that left has no cause")
            for member_id, why in zip(event.left, event.left_causes, strict=True):
                ensure(why in gone[member_id], f"{event}: {member_id} left because of {gone[member_id]}")
        dropped = {m for m, why in zip(event.left, event.left_causes, strict=True) if why is Cause.REBALANCE_TIMED_OUT}
        ensure(dropped <= {*event.absent} <= absent, f"{event}: absent were {absent}, removed were {dropped}")
        self._check_cause(event)
        self._members_at_event[group_id] = members_at_event

    def _check_cause(self, event: GroupEvent) -> None:
        if event.type is EventType.MEMBER_REPLACED:
            ensure(event.cause is Cause.MEMBER_JOINED, f"{event}: no member joined")
        elif event.type is EventType.EMPTY:
            ensure(event.cause is event.left_causes[-1], f"{event}: not the cause of the last member that left")
        else:
            began = self._began.get(event.group_id)
            ensure(event.cause is began, f"{event}: the rebalance started because of {began}")


def _left_pending(request: LeaveGroupRequest, before: Before) -> bool:
    """Whether clients left that had member ids but had not joined."""
    return any(
        member_id in before.pending for member_id in (request.member_id, *(m.member_id for m in request.members))
    )
