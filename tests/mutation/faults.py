"""Faults: a name, a file, the correct snippet and the faulty one, and the tests that must catch it."""

from __future__ import annotations

from typing import NamedTuple

CORE = (
    "tests/broker/cores/groups/test_rules.py",
    "tests/broker/cores/groups/test_traces.py",
    "tests/broker/cores/groups/test_records.py",
    "tests/broker/cores/groups/test_group_requests.py",
    "tests/broker/test_timers.py",
    "tests/broker/cores/groups/test_simulation.py",
    "tests/broker/cores/groups/test_oracle.py",
    "tests/broker/cores/groups/test_machine.py",
)
RUNNER = ("tests/broker/cores/groups/test_simulation.py", "tests/broker/server")
LOADING = ("tests/durability/test_many_commits.py",)
STORAGE = ("tests/broker/storage",)
LARGE = ("tests/broker/server/test_long_requests.py", "tests/broker/cores/groups/test_group_requests.py")
# Only simulations: a difference in a trace does not prove that an event is wrong.
EVENTS = ("tests/broker/cores/groups/test_simulation.py",)


class Fault(NamedTuple):
    name: str
    path: str  # below broker/
    right: str
    wrong: str
    tests: tuple[str, ...]  # the tests that must catch it, the fastest first


FAULTS = (
    # ---- generations and fencing
    Fault(
        "the generation of a commit is not checked",
        "cores/groups/classic/group.py",
        "        if generation != self.generation:\n",
        "        if generation > self.generation:\n",
        CORE,
    ),
    Fault(
        "the generation of a heartbeat is not checked",
        "cores/groups/classic/sessions.py",
        "    if request.generation_id != group.generation:\n",
        "    if request.generation_id > group.generation:\n",
        CORE,
    ),
    Fault(
        "the generation of a SyncGroup is not checked",
        "cores/groups/classic/sync.py",
        "    if request.generation_id != group.generation:\n",
        "    if request.generation_id > group.generation:\n",
        CORE,
    ),
    Fault(
        "a generation lost in a crash is used again",
        "cores/groups/step.py",
        "return max(group.generation, self.coordinator.hard.floors.get(group.group_id, 0)) + 1",
        "return group.generation + 1",
        CORE,
    ),
    Fault(
        "a generation is sent before it is durable",
        "cores/groups/classic/rebalance.py",
        "    step.persist(GenerationFloor(group.group_id, group.generation))\n",
        "",
        CORE,
    ),
    Fault(
        "a fenced instance is not refused",
        "cores/groups/classic/group.py",
        "            if holder != member_id:\n                return ErrorCode.FENCED_INSTANCE_ID\n",
        "",
        CORE,
    ),
    Fault(
        "a commit succeeds during CompletingRebalance",
        "cores/groups/classic/group.py",
        "        if self.state is GroupState.COMPLETING_REBALANCE:\n            return ErrorCode.REBALANCE_IN_PROGRESS\n",
        "",
        CORE,
    ),
    Fault(
        "a non-member can commit to a group with members",
        "cores/groups/classic/group.py",
        "        if generation < 0 and self.state is GroupState.EMPTY:\n",
        "        if generation < 0:\n",
        CORE,
    ),
    Fault(
        "the replacement of a static member is not persisted",
        "cores/groups/classic/static_members.py",
        "    step.persist(group.to_record(step.wall_ms))\n",
        "",
        CORE,
    ),
    Fault(
        "a replaced static member keeps the session of its old id",
        "cores/groups/classic/static_members.py",
        "    group.end_session(step, old.member_id)\n",
        "",
        CORE,
    ),
    # ---- timers
    Fault("a deadline is met a millisecond late", "timers.py", "heap[0][0] <= now_ms:", "heap[0][0] < now_ms:", CORE),
    Fault(
        "a deadline is met a millisecond early", "timers.py", "heap[0][0] <= now_ms:", "heap[0][0] <= now_ms + 1:", CORE
    ),
    Fault(
        "a restarted timer keeps its old deadline",
        "timers.py",
        "            if deadline > queued_ms:\n",
        "            if deadline > queued_ms + 60_000:\n",
        CORE,
    ),
    Fault(
        "the sync timer is not cancelled when all members have synced",
        "cores/groups/classic/sync.py",
        "    if not group.pending_syncs:\n        step.timers.cancel((SYNC, group.group_id))\n",
        "",
        CORE,
    ),
    Fault(
        "the join timer is not cancelled when all members have joined",
        "cores/groups/classic/rebalance.py",
        "    step.timers.cancel((JOIN, group.group_id))\n",
        "",
        CORE,
    ),
    Fault(
        "a heartbeat does not extend the session",
        "cores/groups/classic/sessions.py",
        "    group.restart_session(step, group.members[request.member_id])\n",
        "",
        CORE,
    ),
    Fault(
        "a commit does not extend the session",
        "cores/groups/classic/group.py",
        "_RENEWS_SESSION = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)",
        "_RENEWS_SESSION = (GroupState.STABLE,)",
        CORE,
    ),
    Fault(
        "a member with a parked SyncGroup is expired",
        "cores/groups/classic/sessions.py",
        "        if member.is_parked() and not member.is_new:\n",
        "        if member.parked_join is not None and not member.is_new:\n",
        CORE,
    ),
    Fault(
        "members have no session after a restart",
        "cores/groups/classic/recovery.py",
        "        group.set_session(step, member.member_id, member.session_timeout_ms)\n",
        "        pass\n",
        CORE,
    ),
    Fault(
        "a rebalance waits for the shortest timeout",
        "cores/groups/classic/group.py",
        "return max((0, *(member.rebalance_timeout_ms for member in self.members.values())))",
        "return min([member.rebalance_timeout_ms for member in self.members.values()], default=0)",
        CORE,
    ),
    Fault(
        "offsets expire a millisecond late",
        "cores/groups/expiry.py",
        "    return wall_ms - start_ms >= retention_ms\n",
        "    return wall_ms - start_ms > retention_ms\n",
        CORE,
    ),
    # ---- rebalances
    Fault(
        "the SyncGroup of a follower stays parked",
        "cores/groups/classic/sync.py",
        "        if member.parked_sync is not None:\n",
        "        if member.parked_sync is not None and member.member_id == group.leader:\n",
        CORE,
    ),
    Fault(
        "parked SyncGroups are not answered when the next rebalance starts",
        "cores/groups/classic/rebalance.py",
        "        _refuse_parked_syncs(step, group)\n",
        "        pass\n",
        CORE,
    ),
    Fault(
        "the last member that joined succeeds the leader",
        "cores/groups/classic/group.py",
        "            self.leader = next(iter(self.members), None)\n",
        "            self.leader = next(reversed(self.members), None)\n",
        CORE,
    ),
    Fault(
        "all members get the same assignment",
        "cores/groups/classic/sync.py",
        'member.assignment = assignments.get(member.member_id, b"")',
        'member.assignment = next(iter(assignments.values()), b"")',
        CORE,
    ),
    Fault(
        "the assignment is sent but not persisted",
        "cores/groups/classic/sync.py",
        "    step.persist(group.to_record(step.wall_ms))\n",
        "",
        CORE,
    ),
    Fault(
        "a pending member is not awaited",
        "cores/groups/classic/group.py",
        "return self.parked_joins == len(self.members) and not self.pending_joins",
        "return self.parked_joins == len(self.members)",
        CORE,
    ),
    Fault(
        "a member that does not rejoin in time is not removed",
        "cores/groups/classic/rebalance.py",
        "        if member.parked_join is None and member.group_instance_id is None\n",
        "        if member.parked_join is None and member.is_new\n",
        CORE,
    ),
    Fault(
        "a group exceeds its maximum size by one",
        "cores/groups/classic/join.py",
        "return member is not None or len(group.members) < max_size",
        "return member is not None or len(group.members) <= max_size",
        CORE,
    ),
    # ---- offset requests
    Fault(
        "an offset can be committed for the partition after the last",
        "cores/groups/offsets.py",
        "        indexes = range(count or 0)\n",
        "        indexes = range(count + 1 if count else 0)\n",
        CORE,
    ),
    Fault(
        "a commit does not load the offsets of its group",
        "server/handlers/groups.py",
        "_step(OffsetCommitRequest, READ_GROUP, READ_TOPIC, loads=_one)",
        "_step(OffsetCommitRequest, READ_GROUP, READ_TOPIC)",
        LOADING,
    ),
    Fault(
        "the metadata of a deleted group is not removed",
        "cores/groups/hard_state.py",
        "            self.groups.pop(record.group_id, None)\n",
        "            self.groups[record.group_id].metadata = None\n",
        CORE,
    ),
    # ---- the runner and flushing
    Fault(
        "a response is sent before the sync",
        "server/flush.py",
        "        if self._log.dirty:\n            self._held.append(exchange)\n",
        "        if False:\n            self._held.append(exchange)\n",
        RUNNER,
    ),
    Fault(
        "responses are sent after a failed flush",
        "server/flush.py",
        "                self.fail(error)\n                return\n",
        "                del error\n",
        RUNNER,
    ),
    Fault(
        "the broker continues after a failed flush",
        "server/flush.py",
        "            self._failed(cause)",
        "            self.failure = None",
        RUNNER,
    ),
    Fault(
        "one of the commits of a request is dropped",
        "server/group_runner.py",
        "            else:\n                rows.append(to_row(record, self._partitions))\n",
        "            elif len(rows) != 1:\n                rows.append(to_row(record, self._partitions))\n",
        RUNNER,
    ),
    Fault(
        "tombstones are not stored",
        "server/group_runner.py",
        "        if rows:\n            self._log",
        "        rows = [row for row in rows if row.value is not None]\n        if rows:\n            self._log",
        RUNNER,
    ),
    Fault(
        "generation floors are not read at start-up",
        "server/group_runner.py",
        "            apply(GenerationFloor(group_id, generation))\n",
        "            pass\n",
        RUNNER,
    ),
    Fault(
        "an earlier deadline does not move the wake-up",
        "server/runner.py",
        "            if self._timer.when() <= wake_at:\n                return\n",
        "            return\n",
        RUNNER,
    ),
    Fault(
        "members expire because the broker itself was suspended",
        "server/runner.py",
        "now_ms - due_ms > LATE_MS and not was_postponed",
        "now_ms - due_ms > LATE_MS and self._wall_ms() < 0",
        RUNNER,
    ),
    # ---- group events
    Fault(
        "the assignment of a generation is missing in its event",
        "cores/groups/classic/sync.py",
        "    step.emit(group, EventType.STABLE, partitions_moved=partitions_moved(group), assignment=assignment_of(group))\n",
        "",
        EVENTS,
    ),
    Fault(
        "only the first event of a step is stored",
        "server/group_runner.py",
        "            self._append_events(effects.events)\n",
        "            self._append_events(effects.events[:1])\n",
        EVENTS,
    ),
    Fault(
        "events are written after the flush of their records",
        "server/group_runner.py",
        "            self._append_events(effects.events)\n",
        "            self._loop.call_soon(self._append_events, effects.events)\n",
        EVENTS,
    ),
    Fault(
        "the deletion of a group is not stored as an event",
        "cores/groups/classic/rebalance.py",
        "    group.transition(GroupState.EMPTY, step.wall_ms)\n    step.persist(group.to_record(step.wall_ms))\n",
        "    group.transition(GroupState.EMPTY, step.wall_ms)\n",
        EVENTS,
    ),
    Fault(
        "an expired session is reported as a leave",
        "cores/groups/classic/sessions.py",
        "Cause.SESSION_TIMED_OUT",
        "Cause.MEMBER_LEFT",
        EVENTS,
    ),
    Fault(
        "a member that did not rejoin in time is reported as having left",
        "cores/groups/classic/rebalance.py",
        "        group.note_change(Cause.REBALANCE_TIMED_OUT, left=absent)\n",
        "        group.note_change(Cause.MEMBER_LEFT, left=absent)\n",
        EVENTS,
    ),
    Fault(
        "the members that delayed a rebalance are not named",
        "cores/groups/classic/rebalance.py",
        "        _note_absent(group)\n",
        "        pass\n",
        EVENTS,
    ),
    Fault(
        "a change during a rebalance is reported as its cause",
        "cores/groups/classic/group.py",
        "        if self.can_rebalance():\n",
        "        if cause is not Cause.REBALANCE_TIMED_OUT:\n",
        EVENTS,
    ),
    Fault(
        "a group that becomes empty is reported with the cause of its last rebalance",
        "cores/groups/classic/rebalance.py",
        "    if pending.left.last is not None:\n",
        "    if pending.cause is None and pending.left.last is not None:\n",
        EVENTS,
    ),
    Fault(
        "a replaced member is not reported as gone",
        "cores/groups/classic/static_members.py",
        "    pending.add_left(Cause.MEMBER_JOINED, _REASON, [old.member_id])\n",
        "",
        EVENTS,
    ),
    Fault(
        "a flush drops its events",
        "storage/rows/row_topic.py",
        "        if self.pending:\n",
        "        if self.pending and self.next_offsets[0] % 2:\n",
        STORAGE,
    ),
    # ---- large requests
    Fault(
        "the entries of a request are not counted",
        "protocol/specialise/reader.py",
        '        self.line(f"left -= {count}")\n',
        "",
        LARGE,
    ),
    Fault(
        "a large request is not sliced",
        "server/slices.py",
        "self._next + self._slicing.size\n",
        "self._next + self._slicing.size * 1_000\n",
        LARGE,
    ),
    Fault(
        "repeated entries of a request are processed again",
        "server/slices.py",
        "            once.setdefault(slicing.key(asked), asked)\n",
        "            once[len(once)] = asked\n",
        LARGE,
    ),
    Fault(
        "further entries for the same group are not answered",
        "server/handlers/groups.py",
        'slicing=Slicing("groups", "groups", _offsets_of, SLICE)',
        'slicing=Slicing("groups", "groups", _group_id, SLICE)',
        LARGE,
    ),
    Fault(
        "a large request that fails leaves its client waiting",
        "server/connection.py",
        "call_soon(self._guarded, run)",
        "call_soon(run)",
        LARGE,
    ),
    Fault(
        "all slices run in one turn of the event loop",
        "server/slices.py",
        "self.connection.now_s > give_way_at",
        "self.connection.now_s < 0",
        LARGE,
    ),
    Fault(
        "a large request outlives its client",
        "server/slices.py",
        "        self._abandoned = True\n",
        "        pass\n",
        LARGE,
    ),
    Fault(
        "unknown topics are compared with each other",
        "cores/groups/offsets.py",
        "        topic: Any = by_name.get(name)\n",
        "        topic: Any = next((each for each in topics if each.name == name), None)\n",
        LARGE,
    ),
    Fault(
        "a flush has no maximum size",
        "cores/groups/offsets.py",
        "        refused = ErrorCode.INVALID_COMMIT_OFFSET_SIZE\n",
        "        pass\n",
        LARGE,
    ),
    # ---- storage
    Fault(
        "the high watermark is one too low",
        "storage/segments/partition.py",
        "            self.high_watermark = active.end_offset\n",
        "            self.high_watermark = max(0, active.end_offset - 1)\n",
        STORAGE,
    ),
    Fault(
        "the high watermark includes unsynced records",
        "storage/segments/partition.py",
        "        shared.pending.touch(self, file)\n",
        "        shared.pending.touch(self, file)\n        self.advance()\n",
        STORAGE,
    ),
    Fault(
        "a duplicate batch is appended again",
        "storage/segments/producers.py",
        "                    return batch\n",
        "                    return ErrorCode.NONE\n",
        STORAGE,
    ),
    Fault(
        "a producer with an older epoch is not fenced",
        "storage/segments/producers.py",
        "            return ErrorCode.INVALID_PRODUCER_EPOCH\n",
        "            return ErrorCode.NONE\n",
        STORAGE,
    ),
    Fault(
        "a gap in the sequence numbers of a producer is accepted",
        "storage/segments/producers.py",
        "            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER\n        if",
        "            return ErrorCode.NONE\n        if",
        STORAGE,
    ),
    Fault(
        "segments are not synced",
        "storage/segments/pending.py",
        "                file.sync()\n",
        "                pass\n",
        STORAGE,
    ),
    Fault(
        "the database commits without a sync",
        "storage/store/database.py",
        "'FULL' if self._files.durable else 'NORMAL'",
        "'NORMAL'",
        STORAGE,
    ),
    Fault(
        "lost commits are not detected",
        "storage/store/evidence.py",
        "            if marker.commit_seq > self.seq:\n",
        "            if marker.commit_seq > self.seq + 1_000_000:\n",
        STORAGE,
    ),
    Fault(
        "the sequence number of a failed commit is used again",
        "storage/store/evidence.py",
        "        self.seq += 1\n",
        "",
        STORAGE,
    ),
    Fault(
        "the checksum of a row is not verified",
        "storage/rows/topic_row.py",
        "        and row_crc(partition, offset, key, value, timestamp_ms) == crc\n",
        "",
        STORAGE,
    ),
    Fault(
        "the log continues after a failed write",
        "storage/failure.py",
        "        if self.cause is None:\n            self.cause = error\n",
        "        del error\n",
        STORAGE,
    ),
)
