"""A stateful machine: members join, sync, leave, fall silent and return, and the broker restarts; invariants always hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from broker.cores.groups.classic.group import JOIN, SESSION, SYNC, ClassicGroup
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.expiry import EXPIRY
from broker.cores.groups.hard_state import HardState
from broker.cores.groups.settings import GroupSettings
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.join_group import JoinGroupResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from tests.broker.cores.groups.world import (
    World,
    commit,
    commit_in_transaction,
    fetch_all,
    fetched,
    heartbeat,
    join,
    leave,
    sync,
)

GROUPS = st.sampled_from(["g", "g", "g", "h"])
INSTANCES = st.sampled_from([None, None, None, "i1", "i2"])
PROTOCOLS = st.sampled_from([{"range": b"one"}, {"range": b"two"}, {"range": b"one", "sticky": b"x"}, {"sticky": b"x"}])
PRODUCERS = st.sampled_from([7, 8])
TIMEOUTS = st.sampled_from([6_000, 10_000, 30_000])
REBALANCES = st.sampled_from([0, 500, 5_000, 60_000])


class CoordinatorMachine(RuleBasedStateMachine):
    members = Bundle("members")  # (group, member id, instance id), present or past

    @initialize(delay=st.sampled_from([0, 3_000]), max_size=st.sampled_from([2, 1_000]))
    def start(self, delay: int, max_size: int) -> None:
        retention = {"offsets_retention_check_interval_ms": 60_000, "offsets_retention_minutes": 2}
        self.world = World(GroupSettings(group_initial_rebalance_delay_ms=delay, group_max_size=max_size, **retention))
        self.requests: dict[int, Any] = {}
        self.excused: set[int] = set()  # tickets that will never be answered
        self.may_be_lost: set[int] = set()  # tickets that the present rule may leave without an answer
        self.generations: dict[str, int] = {}  # the highest that a member has learned, by group that exists
        self.assigned: dict[tuple[str, int], dict[str, bytes]] = {}  # by group and generation: the leader's assignment
        self.commits = 0
        self.committed: dict[
            tuple[str, int], int
        ] = {}  # the number of the latest regular commit, by group and partition
        self.pending: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}  # there by producer: number and offset
        self.seen_answers: set[int] = set()
        self.judged = 0

    # ---- clients and time ------------------------------------------------------------------------------------------------

    @rule(
        target=members,
        group=GROUPS,
        instance=INSTANCES,
        protocols=PROTOCOLS,
        session=TIMEOUTS,
        rebalance=REBALANCES,
        version=st.sampled_from([0, 3, 5, 9]),
    )
    def join_new(
        self, group: str, instance: str | None, protocols: dict[str, bytes], session: int, rebalance: int, version: int
    ) -> Any:
        static = instance if version >= 5 else None
        request = join(
            "",
            group,
            protocols=protocols,
            session_timeout_ms=session,
            rebalance_timeout_ms=rebalance,
            group_instance_id=static,
        )
        before = self._members(group)
        ticket = self._ask(request, version)
        answer = self.world.answers.get(ticket)
        given = {answer.member_id} if answer is not None and answer.member_id else self._members(group) - before
        return multiple(*((group, member_id, static) for member_id in sorted(given)))

    @rule(
        member=members, protocols=PROTOCOLS, session=TIMEOUTS, rebalance=REBALANCES, version=st.sampled_from([0, 6, 9])
    )
    def join_again(self, member: Any, protocols: dict[str, bytes], session: int, rebalance: int, version: int) -> None:
        group, member_id, instance = member
        self._may_lose_parked(group, member_id, "parked_join")
        static = instance if version >= 5 else None
        self._ask(
            join(
                member_id,
                group,
                protocols=protocols,
                session_timeout_ms=session,
                rebalance_timeout_ms=rebalance,
                group_instance_id=static,
            ),
            version,
        )

    @rule(group=GROUPS, share=st.text("ab", max_size=2), leader_first=st.booleans(), until=st.integers(0, 9))
    def settle(self, group: str, share: str, leader_first: bool, until: int) -> None:
        """What well-behaved members do: all join again, all sync. Without it groups would hardly become Stable."""
        self.world.let_pass(3_000)
        found = self.world.core.group(group)
        for member in list(found.members.values()) if found is not None else []:
            if member.parked_join is None and found is not None and found.state is GroupState.PREPARING_REBALANCE:
                request = join(
                    member.member_id,
                    group,
                    protocols=dict(member.protocols),
                    session_timeout_ms=member.session_timeout_ms,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                )
                self._ask(request, 9)
        found = self.world.core.group(group)
        members = list(found.members) if found is not None else []
        for member_id in (members if leader_first else members[::-1])[:until]:
            self._sync(group, member_id, self.world.group(group).generation, share)

    @rule(member=members, off=st.sampled_from([0, 0, 0, -1, 1]), share=st.text("ab", max_size=2))
    def sync_one(self, member: Any, off: int, share: str) -> None:
        group, member_id, _ = member
        found = self.world.core.group(group)
        self._sync(group, member_id, (found.generation if found is not None else 0) + off, share)

    @rule(member=members, off=st.sampled_from([0, 0, 0, -1]))
    def beat(self, member: Any, off: int) -> None:
        group, member_id, instance = member
        found = self.world.core.group(group)
        generation = (found.generation if found is not None else 0) + off
        may = found is not None and off == 0 and found.fence(member_id, instance) is ErrorCode.NONE
        error = self._answer(heartbeat(member_id, generation, group, group_instance_id=instance), 4).error_code
        assert (error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)) == may

    @rule(member=members)
    def leave(self, member: Any) -> None:
        group, member_id, instance = member
        self._may_lose_parked(group, member_id, "parked_sync")
        answer = self._answer(leave(member_id, group_id=group, group_instance_id=instance), 5)
        if answer.members[0].error_code == ErrorCode.NONE:
            assert member_id not in self._members(group)

    @rule(group=GROUPS, instance=st.sampled_from(["i1", "i2"]))
    def admin_removes(self, group: str, instance: str) -> None:
        found = self.world.core.group(group)
        if found is not None and instance in found.static_members:
            self._may_lose_parked(group, found.static_members[instance], "parked_sync")
        self._ask(
            LeaveGroupRequest(
                group_id=group, members=[LeaveGroupRequest.Member(member_id="", group_instance_id=instance)]
            ),
            3,
        )

    @rule(member=members, off=st.sampled_from([0, 0, -1]), partition=st.integers(0, 4), offset=st.integers(0, 99))
    def commit_as_member(self, member: Any, off: int, partition: int, offset: int) -> None:
        group, member_id, instance = member
        found = self.world.core.group(group)
        generation = (found.generation if found is not None else 0) + off
        may = (
            found is not None
            and found.fence(member_id, instance) is ErrorCode.NONE
            and off == 0
            and found.state is not GroupState.COMPLETING_REBALANCE
            and partition < 3
        )
        simple = generation < 0 and partition < 3 and (found is None or found.state is GroupState.EMPTY)
        request = commit({("orders", partition): offset}, member_id, generation, group, group_instance_id=instance)
        error = self._answer(request, 8).topics[0].partitions[0].error_code
        assert (error == ErrorCode.NONE) == (may or simple)
        if may or simple:
            self._committed(group, partition)

    @rule(group=GROUPS, partition=st.integers(0, 2), offset=st.integers(0, 99))
    def commit_as_simple_consumer(self, group: str, partition: int, offset: int) -> None:
        found = self.world.core.group(group)
        may = found is None or found.state is GroupState.EMPTY
        error = (
            self._answer(commit({("orders", partition): offset}, group_id=group), 8).topics[0].partitions[0].error_code
        )
        assert (error == ErrorCode.NONE) == may
        if may:
            self._committed(group, partition)
            assert fetched(self._answer(fetch_all(group), 7))["orders", partition] == offset

    @rule(group=GROUPS)
    def fetch(self, group: str) -> None:
        stored = {(r.topic, r.partition): r.offset for r in self.world.stored()[1].get(group, [])}  # type: ignore[union-attr]
        assert fetched(self._answer(fetch_all(group), 7)) == stored

    @rule(
        member=members,
        off=st.sampled_from([0, 0, 0, -1]),
        producer=PRODUCERS,
        partition=st.integers(0, 3),
        offset=st.integers(0, 99),
    )
    def commit_in_transaction_as_member(
        self, member: Any, off: int, producer: int, partition: int, offset: int
    ) -> None:
        group, member_id, instance = member
        found = self.world.core.group(group)
        generation = (found.generation if found is not None else 0) + off
        is_member = found is not None and found.fence(member_id, instance) is ErrorCode.NONE
        simple = generation < 0 and (found is None or found.state is GroupState.EMPTY)
        self._commit_in_transaction(
            (simple or (is_member and off == 0)) and partition < 3,
            commit_in_transaction(
                {("orders", partition): offset},
                producer,
                group,
                member_id=member_id,
                generation_id=generation,
                group_instance_id=instance,
            ),
        )

    @rule(group=GROUPS, producer=PRODUCERS, partition=st.integers(0, 2), offset=st.integers(0, 99))
    def commit_in_transaction_without_member(self, group: str, producer: int, partition: int, offset: int) -> None:
        self._commit_in_transaction(True, commit_in_transaction({("orders", partition): offset}, producer, group))

    @rule(producer=PRODUCERS, is_commit=st.booleans(), limit=st.integers(1, 3))
    def end_transaction(self, producer: int, is_commit: bool, limit: int) -> None:
        expected = self._stored_offsets()
        while self.world.end_transaction(producer, is_commit=is_commit, limit=limit):
            pass
        for place, pending in self.pending.items():
            number, offset = pending.pop(producer, (-1, 0))
            if is_commit and number > self.committed.get(place, -1):
                expected[place] = offset
                self.committed[place] = number
        assert self._stored_offsets() == expected

    @rule(group=GROUPS)
    def fetch_stable(self, group: str) -> None:
        unstable = {place[1] for place, pending in self.pending.items() if pending and place[0] == group}
        topic = OffsetFetchRequest.Topic(name="orders", partition_indexes=[0, 1, 2])
        request = OffsetFetchRequest(group_id=group, topics=[topic], require_stable=True)
        stored = self._stored_offsets()
        for row in self._answer(request, 7).topics[0].partitions:
            index = row.partition_index
            assert row.error_code == (ErrorCode.UNSTABLE_OFFSET_COMMIT if index in unstable else ErrorCode.NONE)
            assert row.committed_offset == (-1 if index in unstable else stored.get((group, index), -1))

    @rule(group=GROUPS)
    def delete(self, group: str) -> None:
        found = self.world.core.group(group)
        may = found is not None and found.state is GroupState.EMPTY
        error = self._answer(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code
        assert (error == ErrorCode.NONE) == may
        if may:
            self.pending = {place: pending for place, pending in self.pending.items() if place[0] != group}

    @rule(group=GROUPS, ms=st.sampled_from([700, 5_000, 8_000]))
    def one_member_rejoins_alone(self, group: str, ms: int) -> None:
        """A leader's join starts a rebalance, whose end the others may miss."""
        found = self.world.core.group(group)
        if found is not None and found.leader is not None:
            leader = found.members[found.leader]
            self._may_lose_parked(group, leader.member_id, "parked_join")
            request = join(
                leader.member_id,
                group,
                protocols=dict(leader.protocols),
                session_timeout_ms=30_000,
                rebalance_timeout_ms=leader.rebalance_timeout_ms,
            )
            self._ask(request, 3)
            self.world.let_pass(ms)

    @rule(ms=st.sampled_from([0, 100, 1_000, 3_000, 7_000, 40_000, 400_000]))
    def time_passes(self, ms: int) -> None:
        self.world.let_pass(ms)

    @rule()
    def restart(self) -> None:
        self.excused |= self._unanswered()
        self.world.start()

    # ---- offsets ----------------------------------------------------------------------------------------------------

    def _committed(self, group: str, partition: int) -> None:
        self.commits += 1
        self.committed[group, partition] = self.commits

    def _commit_in_transaction(self, may: bool, request: Any) -> None:
        error = self._answer(request, 3).topics[0].partitions[0].error_code
        assert (error == ErrorCode.NONE) == may
        if may:
            self.commits += 1
            row = request.topics[0].partitions[0]
            place = request.group_id, row.partition_index
            self.pending.setdefault(place, {})[request.producer_id] = self.commits, row.committed_offset

    def _stored_offsets(self) -> dict[tuple[str, int], int]:
        records = [record for stored in self.world.stored()[1].values() for record in stored]
        return {(r.group_id, r.partition): r.offset for r in records}  # type: ignore[union-attr]

    # ---- bookkeeping -------------------------------------------------------------------------------------------------

    def _ask(self, request: Any, version: int) -> int:
        ticket = self.world.ask(request, version)
        self.requests[ticket] = request
        return ticket

    def _answer(self, request: Any, version: int) -> Any:
        return self.world.answers[self._ask(request, version)]

    def _sync(self, group: str, member_id: str, generation: int, share: str) -> None:
        self._may_lose_parked(group, member_id, "parked_sync")
        found = self.world.core.group(group)
        shares = {other: f"{share}{other}" for other in found.members} if found is not None else {}
        is_awaited = found is not None and found.state is GroupState.COMPLETING_REBALANCE
        if found is not None and is_awaited and (member_id, generation) == (found.leader, found.generation):
            self.assigned[group, generation] = {other: text.encode() for other, text in shares.items()}
        self._ask(sync(member_id, generation, shares, group), 3)

    def _members(self, group: str) -> set[str]:
        found = self.world.core.group(group)
        return set(found.members) if found is not None else set()

    def _may_lose_parked(self, group: str, member_id: str, what: str) -> None:
        """The member's next request replaces its parked one, or the member is removed: Kafka never answers the parked one."""
        found = self.world.core.group(group)
        member = found.members.get(member_id) if found is not None else None
        parked = getattr(member, what) if member is not None else None
        if parked is not None:
            self.may_be_lost.add(parked.ticket)

    def _unanswered(self) -> set[int]:
        return self.requests.keys() - self.world.answers.keys() - self.excused

    # ---- invariants --------------------------------------------------------------------------------------------------

    def _groups(self) -> list[ClassicGroup]:
        return list(self.world.core.hard_state().groups.values())

    @invariant()
    def timers_match_the_groups(self) -> None:
        needed: set[tuple[str, ...]] = {(EXPIRY,)}
        for group in self._groups():
            if group.state is GroupState.PREPARING_REBALANCE:
                needed.add((JOIN, group.group_id))
            if group.pending_syncs:
                needed.add((SYNC, group.group_id))
            needed.update((SESSION, group.group_id, member_id) for member_id in (*group.members, *group.pending_joins))
        deadlines = self.world.core.deadlines()
        assert deadlines.keys() == needed
        assert self.world.wake_at is not None
        assert self.world.wake_at <= min(deadlines.values())
        assert min(deadlines.values()) >= self.world.now_ms

    @invariant()
    def groups_are_consistent(self) -> None:
        for group in self._groups():
            members = group.members
            assert (group.state is GroupState.EMPTY) <= (not members)
            assert group.leader in members if members else group.leader is None
            assert group.parked_joins == sum(member.parked_join is not None for member in members.values())
            assert group.static_members == {
                m.group_instance_id: m.member_id for m in members.values() if m.group_instance_id
            }
            assert not members.keys() & group.pending_joins.keys()
            assert group.pending_syncs.keys() <= members.keys()
            assert not group.pending_syncs or group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
            for member in members.values():
                assert member.parked_join is None or group.state is GroupState.PREPARING_REBALANCE
                assert member.parked_sync is None or group.state is GroupState.COMPLETING_REBALANCE
            if members:
                assert group.select_protocol()
            if group.state is GroupState.STABLE:
                stored = group.metadata
                assert stored is not None
                assert group.to_record(stored.timestamp_ms).members == stored.members
                assert (group.generation, group.leader, group.protocol) == (
                    stored.generation,
                    stored.leader,
                    stored.protocol,
                )

    @invariant()
    def each_request_is_answered_once_or_parked(self) -> None:
        waiting = set()
        for group in self._groups():
            for member in group.members.values():
                waiting |= {parked.ticket for parked in (member.parked_join, member.parked_sync) if parked is not None}
        lost = self._unanswered() - waiting
        assert lost <= self.may_be_lost
        assert waiting <= self._unanswered()
        self.excused |= lost
        self.may_be_lost.clear()

    @invariant()
    def no_generation_repeats(self) -> None:
        for record in self.world.records[self.judged :]:
            if type(record).__name__ == "GenerationFloor":
                generation = record.generation  # type: ignore[union-attr]
                if generation is None:
                    self.generations.pop(record.group_id, None)
                else:
                    assert generation > self.generations.get(record.group_id, 0)
                    self.generations[record.group_id] = generation
        self.judged = len(self.world.records)
        for group in self._groups():
            highest = self.generations.get(group.group_id, 0)
            if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
                assert group.generation <= highest
                assert self.world.floors[group.group_id] == highest

    @invariant()
    def replayed_records_equal_the_hard_state(self) -> None:
        live = self.world.core.hard_state()
        replayed = HardState()
        groups, offsets = self.world.stored()
        for record in (*groups, *(record for records in offsets.values() for record in records)):
            replayed.apply(record)
        for group_id, group in live.groups.items():
            other = replayed.groups.get(group_id)
            assert group.metadata == (other.metadata if other is not None else None)
            if group.offsets_loaded:
                assert group.offsets == (other.offsets if other is not None else {})
        assert replayed.groups.keys() <= live.groups.keys()
        assert live.floors == self.world.floors

    @invariant()
    def pending_offsets_are_those_of_open_transactions(self) -> None:
        live = self.world.core.hard_state()
        found = {
            (group, partition): {producer: record.offset for producer, record in of_partition.items()}
            for group in ("g", "h")
            for partition in range(3)
            if (of_partition := live.pending.of_partition(group, "orders", partition))
        }
        pending = {place: dict(of_place) for place, of_place in self.pending.items() if of_place}
        assert found == {
            place: {producer: offset for producer, (_, offset) in of_place.items()}
            for place, of_place in pending.items()
        }
        assert {place[0] for place in found} <= live.groups.keys()
        stored = {(key[1], key[3], key[0]): record for key, record in self.world.pending.items()}
        assert stored == {
            (*place, producer): record
            for place in found
            for producer, record in live.pending.of_partition(place[0], "orders", place[1]).items()
        }

    @invariant()
    def assignments_reach_members_unchanged(self) -> None:
        for ticket in self.world.answers.keys() - self.seen_answers:
            self.seen_answers.add(ticket)
            request, answer = self.requests.get(ticket), self.world.answers[ticket]
            if isinstance(request, SyncGroupRequest) and answer.error_code == ErrorCode.NONE:
                assigned = self.assigned[request.group_id, request.generation_id]
                own = assigned.get(request.member_id)
                # The new member of a static instance receives what its old member was assigned.
                assert answer.assignment == own if own is not None else answer.assignment in assigned.values()
            if isinstance(answer, JoinGroupResponse) and answer.members:
                assert answer.error_code == ErrorCode.NONE
                assert answer.leader == answer.member_id


TestCoordinatorMachine = CoordinatorMachine.TestCase
TestCoordinatorMachine.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
class TestCoordinatorMachineForLonger(TestCoordinatorMachine):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=500, stateful_step_count=100, deadline=None)
