"""A rebalance from its cause to the next generation: prepare, wait for the joins, complete."""

from __future__ import annotations

from broker.cores.groups.classic.replies import joined, members_for_leader, sync_refused
from broker.cores.groups.events import Cause, EventType
from broker.cores.groups.group import Group, GroupState, InitialDelay
from broker.cores.groups.records import GenerationFloor
from broker.cores.groups.step import JOIN, SYNC, Step
from broker.protocol.errors import ErrorCode

# How often the joins of absent static members are looked for at most, whatever rebalance timeout they asked for.
SHORTEST_REPEATED_WAIT_MS = 100
NAMED_IN_STORY = 5


def prepare_or_go_on(step: Step, group: Group) -> None:
    """Begin a rebalance; or, in one, see whether all have joined by now."""
    if group.can_rebalance():
        prepare(step, group)
    else:
        complete_if_all_joined(step, group)


def prepare(step: Step, group: Group) -> None:
    """Call the members together for the next generation."""
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


def complete_if_all_joined(step: Step, group: Group) -> None:
    """End the join phase as soon as nobody is awaited. A group's first generation is not hurried: its delay runs out."""
    if group.state is not GroupState.PREPARING_REBALANCE or group.previous_state is GroupState.EMPTY:
        return
    if group.all_joined():
        complete(step, group)


def on_join_timeout(step: Step, group: Group) -> None:
    """The initial delay, or the rebalance timeout, has run out."""
    delay = group.initial_delay
    if delay is not None and group.new_member_added and delay.remaining_ms > 0:
        group.new_member_added = False
        longest = step.coordinator.settings.group_initial_rebalance_delay_ms
        next_delay = min(longest, delay.remaining_ms)
        group.initial_delay = InitialDelay(next_delay, max(delay.remaining_ms - delay.delay_ms, 0))
        step.timers.set((JOIN, group.group_id), step.now_ms + next_delay)
        return
    if delay is None and group.members:
        _note_absent(group)
    complete(step, group)


def complete(step: Step, group: Group) -> None:
    """End the join phase: drop who did not come, and begin the next generation with the others."""
    step.timers.cancel((JOIN, group.group_id))
    _drop_absent_dynamic_members(step, group)
    if group.members and not group.elect_joined_leader():
        # Only static members are left and none of them has joined: they are awaited until their sessions end.
        wait_ms = max(group.rebalance_timeout_ms(), SHORTEST_REPEATED_WAIT_MS)
        step.timers.set((JOIN, group.group_id), step.now_ms + wait_ms)
        return
    group.initial_delay = None
    group.new_member_added = False
    group.generation = step.next_generation(group)
    if group.members:
        _begin_generation(step, group)
    else:
        _become_empty(step, group)


def _delay_first_generation(step: Step, group: Group) -> None:
    delay_ms = step.coordinator.settings.group_initial_rebalance_delay_ms
    group.new_member_added = False
    group.initial_delay = InitialDelay(delay_ms, max(group.rebalance_timeout_ms() - delay_ms, 0))
    step.timers.set((JOIN, group.group_id), step.now_ms + delay_ms)


def _refuse_parked_syncs(step: Step, group: Group) -> None:
    for member in group.members.values():
        member.assignment = b""
        if member.parked_sync is not None:
            parked, member.parked_sync = member.parked_sync, None
            step.answer(parked, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
            step.restart_session(group, member)


def _note_absent(group: Group) -> None:
    """Who has kept the others waiting for all of the rebalance timeout: also who stays, and ids that nobody has used."""
    pending = group.pending_event
    members = group.members.values()
    absent = [*(member.member_id for member in members if member.parked_join is None), *group.pending_joins]
    late = [member_id for member_id in absent if member_id not in pending.absent]
    pending.absent.update(dict.fromkeys(late))
    kept = [m for m in late if m not in group.members or group.members[m].group_instance_id is not None]
    if kept:
        group.note_change(Cause.REBALANCE_TIMED_OUT, reason=f"not removed: {', '.join(kept[:NAMED_IN_STORY])}")


def _drop_absent_dynamic_members(step: Step, group: Group) -> None:
    if group.awaiting_joins == len(group.members):
        return
    absent = [
        member.member_id
        for member in group.members.values()
        if member.parked_join is None and member.group_instance_id is None
    ]
    for member_id in absent:
        group.remove(member_id)
        step.end_session(group, member_id)
    if absent:
        group.note_change(Cause.REBALANCE_TIMED_OUT, left=absent)


def _begin_generation(step: Step, group: Group) -> None:
    group.protocol = group.select_protocol()
    group.note_subscriptions()
    group.transition(GroupState.COMPLETING_REBALANCE, step.wall_ms)
    group.pending_event.complete_started_ms = step.now_ms
    # A generation that a member has heard of must not come again after a crash.
    step.persist(GenerationFloor(group.group_id, group.generation))
    for member in group.members.values():
        parked = group.take_join(member)
        if parked is not None:
            is_leader = member.member_id == group.leader
            step.answer(parked, joined(group, member, members_for_leader(group) if is_leader else []))
        member.is_new = False
        step.restart_session(group, member)
    group.pending_syncs = dict.fromkeys(group.members)
    step.timers.set((SYNC, group.group_id), step.now_ms + group.rebalance_timeout_ms())


def _become_empty(step: Step, group: Group) -> None:
    # Nobody hears of this generation; it counts all the same, and the protocol type stays.
    group.protocol = None
    group.note_subscriptions()
    group.pending_syncs.clear()
    group.transition(GroupState.EMPTY, step.wall_ms)
    step.persist(group.to_record(step.wall_ms))
    pending = group.pending_event
    if pending.left.last is not None:
        pending.set_cause(*pending.left.last)
    step.emit(group, EventType.EMPTY)
