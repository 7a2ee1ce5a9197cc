"""A rebalance from its cause to the next generation: prepare, wait until the members have joined, complete.

`prepare` starts the join phase, and `complete` ends it: when all members have joined, or when the join timer expires. The sync
phase that follows is in `sync`.
"""

from __future__ import annotations

from broker.cores.groups.classic.group import JOIN, SYNC, ClassicGroup, InitialDelay, of_timer
from broker.cores.groups.classic.replies import joined, members_for_leader, sync_refused
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.events import Cause, EventType
from broker.cores.groups.records import GenerationFloor
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode

# The shortest wait between two checks for absent static members, however short their rebalance timeout is.
SHORTEST_REPEATED_WAIT_MS = 100


def prepare_or_continue(step: Step, group: ClassicGroup) -> None:
    """Start a rebalance or, if one is under way, end its join phase once all members have joined."""
    if group.can_rebalance():
        prepare(step, group)
    else:
        complete_if_all_joined(step, group)


def prepare(step: Step, group: ClassicGroup) -> None:
    """Start a join phase. The next heartbeat or sync of each member is answered with REBALANCE_IN_PROGRESS."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        _refuse_parked_syncs(step, group)
    group.pending_syncs.clear()
    step.timers.cancel((SYNC, group.group_id))
    is_first = group.state is GroupState.EMPTY
    group.transition(GroupState.PREPARING_REBALANCE, step.wall_ms)
    pending = group.pending_event
    pending.prepare_started_ms, pending.complete_started_ms = step.now_ms, None
    step.emit(group, EventType.REBALANCE_STARTED)
    if is_first:
        _delay_first_generation(step, group)
    elif group.all_joined():
        complete(step, group)
    else:
        step.timers.set((JOIN, group.group_id), step.now_ms + group.rebalance_timeout_ms())


def complete_if_all_joined(step: Step, group: ClassicGroup) -> None:
    """End the join phase once all members have joined. The initial delay before a first generation always runs its course."""
    if group.state is not GroupState.PREPARING_REBALANCE or group.previous_state is GroupState.EMPTY:
        return
    if group.all_joined():
        complete(step, group)


def on_join_timeout(step: Step, group_id: str) -> None:
    """End the join phase after the rebalance timeout, or extend or end the initial delay."""
    group = of_timer(step.groups, group_id)
    delay = group.initial_delay
    if delay is not None and group.new_member_added and delay.remaining_ms > 0:
        group.new_member_added = False
        longest_ms = step.coordinator.settings.group_initial_rebalance_delay_ms
        next_delay_ms = min(longest_ms, delay.remaining_ms)
        group.initial_delay = InitialDelay(next_delay_ms, max(delay.remaining_ms - delay.delay_ms, 0))
        step.timers.set((JOIN, group.group_id), step.now_ms + next_delay_ms)
        return
    if delay is None and group.members:
        _note_absent(group)
    complete(step, group)


def complete(step: Step, group: ClassicGroup) -> None:
    """End the join phase: remove the dynamic members that have not joined, and start the next generation with the others."""
    step.timers.cancel((JOIN, group.group_id))
    _remove_absent_dynamic_members(step, group)
    if group.members and not group.elect_joined_leader():
        # Only static members are left and none of them has joined. The group waits for them until their sessions expire.
        wait_ms = max(group.rebalance_timeout_ms(), SHORTEST_REPEATED_WAIT_MS)
        step.timers.set((JOIN, group.group_id), step.now_ms + wait_ms)
        return
    group.initial_delay = None
    group.new_member_added = False
    group.generation = step.next_generation(group)
    if group.members:
        _start_generation(step, group)
    else:
        _become_empty(step, group)


def _delay_first_generation(step: Step, group: ClassicGroup) -> None:
    delay_ms = step.coordinator.settings.group_initial_rebalance_delay_ms
    group.new_member_added = False
    group.initial_delay = InitialDelay(delay_ms, max(group.rebalance_timeout_ms() - delay_ms, 0))
    step.timers.set((JOIN, group.group_id), step.now_ms + delay_ms)


def _refuse_parked_syncs(step: Step, group: ClassicGroup) -> None:
    for member in group.members.values():
        member.assignment = b""
        if member.parked_sync is not None:
            parked, member.parked_sync = member.parked_sync, None
            step.answer(parked, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
            group.restart_session(step, member)


def _note_absent(group: ClassicGroup) -> None:
    """Note for the event which ids missed the rebalance timeout, also those of static members and pending members."""
    absent = [member.member_id for member in group.members.values() if member.parked_join is None]
    group.pending_event.absent.update(dict.fromkeys([*absent, *group.pending_joins]))


def _remove_absent_dynamic_members(step: Step, group: ClassicGroup) -> None:
    if group.parked_joins == len(group.members):
        return
    absent = [
        member.member_id
        for member in group.members.values()
        if member.parked_join is None and member.group_instance_id is None
    ]
    for member_id in absent:
        group.remove(member_id)
        group.end_session(step, member_id)
    if absent:
        group.note_change(Cause.REBALANCE_TIMED_OUT, left=absent)


def _start_generation(step: Step, group: ClassicGroup) -> None:
    """Answer the parked joins; the leader also learns the members and their metadata."""
    group.protocol = group.select_protocol()
    group.note_subscriptions()
    group.transition(GroupState.COMPLETING_REBALANCE, step.wall_ms)
    group.pending_event.complete_started_ms = step.now_ms
    # A generation that a member has learned must not be given out again after a crash.
    step.persist(GenerationFloor(group.group_id, group.generation))
    for member in group.members.values():
        parked = group.take_join(member)
        if parked is not None:
            is_leader = member.member_id == group.leader
            step.answer(parked, joined(group, member, members_for_leader(group) if is_leader else []))
        member.is_new = False
        group.restart_session(step, member)
    group.pending_syncs = dict.fromkeys(group.members)
    step.timers.set((SYNC, group.group_id), step.now_ms + group.rebalance_timeout_ms())


def _become_empty(step: Step, group: ClassicGroup) -> None:
    # No member learns this generation, but it counts; and the protocol type stays, as in Kafka.
    group.protocol = None
    group.note_subscriptions()
    group.pending_syncs.clear()
    group.transition(GroupState.EMPTY, step.wall_ms)
    step.persist(group.to_record(step.wall_ms))
    pending = group.pending_event
    if pending.left.last is not None:
        pending.set_cause(*pending.left.last)
    step.emit(group, EventType.EMPTY)
