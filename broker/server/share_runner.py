"""ShareRunner: what share groups need around their pure parts: the store, the timers of locks, and the partitions in use.

A broker without share groups does not load it. Its share coordinator is the interface of `cores/share/state.py`: changes are rows of
`__share_group_state` that wait for the next flush, as answers do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from broker.cores.durations import parse_duration
from broker.cores.share.acknowledgement import Acknowledgement, acknowledge, expire, release
from broker.cores.share.acquisition import AbortedFrom, Acquired, FetchedBatch, Wanted, acquire
from broker.cores.share.coordinator import Change, ShareCoordinator, ShareStateRecord
from broker.cores.share.partition import Limits, Refusal, SharePartition
from broker.cores.share.sessions import SessionKey, ShareSessions
from broker.cores.share.state import NO_START_OFFSET, PartitionState, StateSummary
from broker.cores.share.state_batches import StateBatch
from broker.protocol.errors import ErrorCode
from broker.protocol.share_state import (
    SharePartitionKey,
    ShareSnapshotValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    partition_for,
)
from broker.server.runner import LATE_MS
from broker.storage import LEADER_EPOCH, SHARE_STATE_TOPIC, TopicRow
from broker.timers import Timers

if TYPE_CHECKING:
    import asyncio

    from broker.config.config import BrokerConfig
    from broker.server.fetch_waiters import FetchWaiters, PartitionKey
    from broker.server.flush import Flusher
    from broker.storage import Log, PartitionLog

T = TypeVar("T")

_EARLIEST, _BY_DURATION = "earliest", "by_duration:"
_NS_PER_MS = 1_000_000
_UNKNOWN = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")

logger = logging.getLogger("broker.server")


class ShareRunner:
    """Runs the share coordinator and the share partitions over the log.

    `group_configs` has the configs that were set for a group.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log: Log,
        flusher: Flusher,
        waiters: FetchWaiters,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
        group_configs: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._config = config
        self._log = log
        self._flusher = flusher
        self._waiters = waiters
        self._loop = loop
        self._wall_ms = wall_ms
        self._group_configs = group_configs
        self._limits = Limits(config.group_share_partition_max_record_locks, config.group_share_delivery_count_limit)
        self.coordinator = ShareCoordinator(config.share_coordinator_snapshot_update_records_per_snapshot)
        self.sessions = ShareSessions(config.group_share_max_share_sessions)
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        self._timers = Timers()
        self._timer: asyncio.TimerHandle | None = None
        self._postponed = False
        self._stopped = False
        self._recover()

    def _recover(self) -> None:
        """Load what is stored, without the partitions of topics that were deleted while nothing was loaded."""
        for row in self._log.share_state_rows():
            record = _record(row)
            if record is not None:
                self.coordinator.apply(record)
        self._flusher.schedule_if_dirty()
        for topic_id in self.coordinator.topic_ids():
            if self._log.topic_by_id(topic_id) is None:
                self.topic_deleted(topic_id)

    def stop(self) -> None:
        """Release nothing from now on: the next start finds what was acquired available."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- the share coordinator (cores/share/state.py)

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int = NO_START_OFFSET) -> ErrorCode:
        change = self.coordinator.initialize(key, state_epoch, start_offset, self._wall_ms())
        if not change.error:
            self._fence(key)
        return self._changed(change)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> PartitionState | ErrorCode:
        state, record = self.coordinator.read(key, leader_epoch, self._wall_ms())
        if record is not None:
            self._append([record])
        return state

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        batches: Collection[StateBatch],
    ) -> ErrorCode:
        return self._changed(
            self.coordinator.write(key, state_epoch, leader_epoch, start_offset, batches, self._wall_ms())
        )

    def delete(self, key: SharePartitionKey) -> ErrorCode:
        self._fence(key)
        return self._changed(self.coordinator.delete(key))

    def summary(self, key: SharePartitionKey) -> StateSummary:
        return self.coordinator.summary(key)

    def topic_deleted(self, topic_id: bytes) -> None:
        """Forget the state of a deleted topic, in all groups."""
        for key in [key for key in self._partitions if key.topic_id == topic_id]:
            self._fence(key)
        self._append(self.coordinator.topic_deleted(topic_id))

    def _changed(self, change: Change) -> ErrorCode:
        if change.record is not None:
            self._append([change.record])
        return change.error

    def _append(self, records: Sequence[ShareStateRecord]) -> None:
        if not records:
            return
        count = self._log.topics[SHARE_STATE_TOPIC].partition_count
        rows = [_row(record, count, self._wall_ms()) for record in records]
        self._log.append_rows(SHARE_STATE_TOPIC, rows)
        for row in rows:
            self._waiters.moved(SHARE_STATE_TOPIC, row.partition)
        self._flusher.schedule()

    # -- share partitions

    def partition(self, group_id: str, topic_id: bytes, index: int, log: PartitionLog) -> SharePartition | Refusal:
        """The share partition, which is loaded if it is not in use."""
        key = SharePartitionKey(group_id, topic_id, index)
        found = self._partitions.get(key)
        if found is None:
            found = SharePartition(key, self, LEADER_EPOCH, self._limits)
            refusal = found.load(lambda: self._initial_offset(group_id, log))
            if refusal is not None:
                return refusal
            self._partitions[key] = found
        return found

    def _initial_offset(self, group_id: str, log: PartitionLog) -> int:
        """Where a group begins that has no start offset: share.auto.offset.reset of the group."""
        reset = self._group_configs(group_id).get("share.auto.offset.reset", "latest")
        if reset == _EARLIEST:
            return log.log_start_offset
        if reset.startswith(_BY_DURATION):
            duration = parse_duration(reset.removeprefix(_BY_DURATION))
            found = log.offset_for_timestamp(self._wall_ms() - (duration or 0) // _NS_PER_MS)
            return found[0] if found is not None else log.high_watermark
        return log.high_watermark

    def lock_duration_ms(self, group_id: str) -> int:
        """share.record.lock.duration.ms of the group, by default that of the broker."""
        own = self._group_configs(group_id).get("share.record.lock.duration.ms")
        return int(own) if own is not None else self._config.group_share_record_lock_duration_ms

    def is_read_committed(self, group_id: str) -> bool:
        return self._group_configs(group_id).get("share.isolation.level") == "read_committed"

    @property
    def now_ms(self) -> int:
        """The clock of locks."""
        return int(self._loop.time() * 1000)

    def acquire(
        self,
        partition: SharePartition,
        wanted: Wanted,
        fetch_offset: int,
        batches: Sequence[FetchedBatch],
        aborted: Collection[AbortedFrom],
    ) -> list[Acquired]:
        """Acquire records, and watch their locks."""
        acquired = self._step(acquire, partition, wanted, fetch_offset, batches, aborted)
        self._watch(partition)
        return acquired

    def acknowledge(
        self, key: SharePartitionKey, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> Refusal | None:
        partition = self._partitions.get(key)
        if partition is None:
            return _UNKNOWN
        return self._ended(partition, self._step(acknowledge, partition, member_id, acknowledgements))

    def close_session(self, session_key: SessionKey) -> None:
        """End a session, and release what its member has acquired of the partitions that it reads."""
        session = self.sessions.remove(session_key)
        if session is None:
            return
        for topic_id, index in session.partitions:
            partition = self._partitions.get(SharePartitionKey(session_key.group_id, topic_id, index))
            if partition is not None:
                self._ended(partition, self._step(release, partition, session_key.member_id))

    def disconnected(self, owner: object, group_id: str) -> None:
        """The client has disconnected: all its sessions end; the group is that of the last one that it opened.

        If they were the last ones of their groups, these keep no partitions in memory.
        """
        if self._stopped or self._flusher.failure is not None:
            return
        groups = {group_id}
        for session_key in self.sessions.of_owner(owner):
            self.close_session(session_key)
            groups.add(session_key.group_id)
        for key in list(self._partitions):
            if key.group_id in groups and not self.sessions.has_members(key.group_id):
                self._fence(key)

    def disabled(self) -> None:
        """An administrator has disabled share groups: all sessions end. What was acquired is available if they are enabled again."""
        self.sessions.clear()
        for key in list(self._partitions):
            self._fence(key)

    def _step(self, run: Callable[..., T], *arguments: object) -> T:
        """Run what changes a share partition. A failure is final: the memory may have changed without the log."""
        try:
            return run(*arguments)
        except Exception as error:
            self._flusher.fail(error)
            raise

    def _ended(self, partition: SharePartition, refusal: Refusal | None) -> Refusal | None:
        """Records may be available: attempt the fetches that wait for them. A fenced partition is loaded again when it is needed."""
        if refusal is not None and refusal.code in _FENCES:
            self._fence(partition.key)
        self._wake(partition.key)
        return refusal

    def _fence(self, key: SharePartitionKey) -> None:
        partition = self._partitions.pop(key, None)
        if partition is not None:
            partition.is_fenced = True
            self._timers.cancel(_timer_key(key))
            self._wake(key)

    def wait_key(self, key: SharePartitionKey) -> PartitionKey:
        """What a waiting ShareFetch watches besides the partition of the log."""
        return f"\0{key.group_id}\0{key.topic_id.hex()}", key.partition

    def _wake(self, key: SharePartitionKey) -> None:
        self._waiters.moved(*self.wait_key(key))
        self._flusher.schedule()

    # -- locks

    def _watch(self, partition: SharePartition) -> None:
        wake_at_ms = partition.wake_at_ms
        if wake_at_ms is not None:
            self._timers.set(_timer_key(partition.key), wake_at_ms)
            self._arm()

    def _arm(self) -> None:
        wake_at_ms = self._timers.wake_at()
        if wake_at_ms is None or self._stopped:
            return
        # One millisecond more, or rounding down could wake it before the deadline.
        at = (wake_at_ms + 1) / 1000
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._advance)

    def _advance(self) -> None:
        self._timer = None
        if self._flusher.failure is not None:
            return
        now_ms, due_ms = self.now_ms, self._timers.wake_at()
        was_postponed, self._postponed = self._postponed, False
        if due_ms is not None and now_ms - due_ms > LATE_MS and not was_postponed:
            # The process was stopped: read what clients have sent meanwhile before any lock expires.
            self._postponed = True
            self._timer = self._loop.call_later(0, self._advance)
            return
        while (name := self._timers.pop_due(now_ms)) is not None:
            self._step(self._expire, name, now_ms)
        self._arm()

    def _expire(self, name: tuple[str, ...], now_ms: int) -> None:
        partition = self._partitions.get(SharePartitionKey(name[0], bytes.fromhex(name[1]), int(name[2])))
        if partition is None:
            return
        if expire(partition, now_ms):
            self._wake(partition.key)
        self._watch(partition)


# A partition that is refused so is loaded again: the state is another one than that in memory.
_FENCES = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _timer_key(key: SharePartitionKey) -> tuple[str, ...]:
    return key.group_id, key.topic_id.hex(), str(key.partition)


def _row(record: ShareStateRecord, partitions: int, wall_ms: int) -> TopicRow:
    kind = ShareSnapshotValue if record.value is None else type(record.value)
    value = None if record.value is None else encode_value(record.value)
    return TopicRow(partition_for(record.key, partitions), encode_key(record.key, kind), value, wall_ms)


def _record(row: TopicRow) -> ShareStateRecord | None:
    found = decode_key(row.key)
    if found is None:
        return None
    key, kind = found
    return ShareStateRecord(key, None if row.value is None else decode_value(kind, row.value))
