"""A blocking consumer: reads partitions that the caller or a group assigns. Heartbeats are sent between polls."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from broker.light_dataclasses import dataclass, field
from kgctl.client.consumer.fetch_loop import FetchLoop, time_left
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetcher import FetchSettings
from kgctl.client.consumer.group_session import GroupSession
from kgctl.client.consumer.membership import GroupSettings
from kgctl.client.consumer.start_offsets import (
    Reset,
    Unstable,
    committed_offsets,
    given_offsets,
    log_ends,
    partition_counts,
)
from kgctl.client.net.connector import Connector
from kgctl.client.net.errors import KgctlError, missing_partition
from kgctl.model.topic_partition import TopicPartition

CLOSE_SECONDS = 5.0
_TOPICS_AGE_SECONDS = 30.0
_UNSTABLE_WAIT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """`reset` None: an offset that the log does not have is an error.

    `until_end`: stop at the log ends that are found when a partition is first assigned.
    """

    fetch: FetchSettings = field(default_factory=FetchSettings)
    group: GroupSettings | None = None
    reset: Reset | None = Reset.LATEST
    until_end: bool = False
    commit_interval_seconds: float = 1.0


class Consumer:
    """Call `assign` or `subscribe`, then `poll` repeatedly, and `mark_used` for processed records, which are committed.

    `notice` receives sentences for people that need no handling: an offset was reset, a broker went away.
    """

    def __init__(self, connector: Connector, settings: ConsumerSettings, notice: Callable[[str], None]) -> None:
        self._connector, self._settings, self._notice = connector, settings, notice
        self._cluster = connector.cluster
        self._loop = FetchLoop(connector, settings.fetch, notice=notice)
        self._fetcher = self._loop.fetcher
        self._group = (
            GroupSession(connector, settings.group, settings.commit_interval_seconds, notice)
            if settings.group
            else None
        )
        self._topics: dict[str, int] = {}
        self._topics_at = 0.0
        self._limits: dict[TopicPartition, int] = {}
        self._unplaced: list[TopicPartition] = []  # assigned by the group, but an open transaction has their offsets
        self._waits_for_offsets = False

    @property
    def assignment(self) -> list[TopicPartition]:
        return sorted(self._fetcher.positions)

    @property
    def at_end(self) -> bool:
        """With `until_end`: whether `poll` has returned everything before the log ends."""
        waits_for_group = self._group is not None and (self._group.must_join or bool(self._unplaced))
        return self._settings.until_end and not waits_for_group and self._fetcher.all_finished

    def assign(
        self, topics: Sequence[str], timeout: float, numbers: Sequence[int] | None = None, offset: int | None = None
    ) -> None:
        """Read the topics, or only their partitions with these numbers, without a group.

        Starts at `offset`, which may count back from the end, else where `reset` says.
        """
        deadline = time.monotonic() + timeout
        counts = self._look_up_topics(topics, timeout)
        partitions = []
        for name, count in counts.items():
            for index in range(count) if numbers is None else sorted(set(numbers)):
                if index >= count:
                    raise missing_partition(name, index, count)
                partitions.append(TopicPartition(name, index))
        if offset is None:
            self._start(self._reset(partitions, deadline), deadline)
        else:
            given = dict.fromkeys(partitions, offset)
            self._start(self._connector.run(given_offsets(self._cluster, given), time_left(deadline)), deadline)

    def subscribe(self, topics: Sequence[str], timeout: float) -> None:
        """Read the topics as a member of the group. The first `poll` joins it."""
        self._look_up_topics(topics, timeout)

    def poll(self, timeout: float, *, hangup: int | None = None) -> list[Fetched]:
        """What arrives within `timeout` seconds; [] if nothing does, or once the reader of the pipe `hangup` closes it.

        Raises TimedOut if joining the group takes longer.
        """
        deadline = time.monotonic() + timeout
        if self._group is not None:
            if self._group.must_join:
                self._rejoin(deadline)
                return []
            self._group.run_due(deadline)
            if self._group.must_join:
                return []
            if self._unplaced:
                self._place(self._group, deadline)
                return []
        if self._fetcher.out_of_range:
            self._reset_lost_offsets(deadline)
        if time.monotonic() >= self._topics_at + _TOPICS_AGE_SECONDS:
            self._notice_new_partitions(deadline)
        wake_at = math.inf if self._group is None else self._group.wake_at()
        return self._loop.poll(deadline, wake_at=wake_at, hangup=hangup)

    def mark_used(self, partition: TopicPartition, next_offset: int) -> None:
        """Allow the commit of `next_offset`: all earlier records of the partition are processed."""
        if self._group is not None:
            self._group.mark_used(partition, next_offset)

    def heartbeat(self) -> None:
        """Send a heartbeat or a commit that is due. For callers that block between two polls."""
        if self._group is not None:
            self._group.run_due()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Commit used offsets, leave the group, close the connections. Raises the first error once all of it is done."""
        self._loop.close()
        if self._group is not None:
            self._group.close(timeout)

    # --- start offsets ---

    def _look_up_topics(self, topics: Sequence[str], timeout: float) -> dict[str, int]:
        self._topics = self._connector.run(partition_counts(self._cluster, topics), timeout)
        self._topics_at = time.monotonic()
        return self._topics

    def _rejoin(self, deadline: float) -> None:
        assert self._group is not None
        self._fetcher.assign({})
        self._unplaced = self._group.join(list(self._topics), deadline)
        self._place(self._group, deadline)

    def _place(self, group: GroupSession, deadline: float) -> None:
        """Start at the committed offsets, unless a transaction may still replace them: then a later poll tries again."""
        partitions = self._unplaced
        try:
            positions = self._connector.run(
                committed_offsets(self._cluster, group.group_id, partitions), time_left(deadline)
            )
        except Unstable as error:
            if not self._waits_for_offsets:
                self._notice(f"{error}; waiting for its end")
            self._waits_for_offsets = True
            time.sleep(min(_UNSTABLE_WAIT_SECONDS, time_left(deadline)))
            return
        self._unplaced, self._waits_for_offsets = [], False
        fresh = self._reset([partition for partition in partitions if partition not in positions], deadline)
        self._start(positions | fresh, deadline)
        for partition, offset in fresh.items():
            # The next owner must start here too, even if no record has arrived yet.
            group.mark_used(partition, offset)

    def _start(self, positions: Mapping[TopicPartition, int], deadline: float) -> None:
        if self._settings.until_end:
            unseen = [partition for partition in positions if partition not in self._limits]
            self._limits |= self._ends(unseen, Reset.LATEST, deadline)
        self._loop.assign(positions, self._limits)

    def _reset(self, partitions: Sequence[TopicPartition], deadline: float) -> dict[TopicPartition, int]:
        if partitions and self._settings.reset is None:
            raise KgctlError(f"no offset to start at for {', '.join(map(str, partitions))}")
        return self._ends(partitions, self._settings.reset or Reset.LATEST, deadline)

    def _ends(self, partitions: Sequence[TopicPartition], end: Reset, deadline: float) -> dict[TopicPartition, int]:
        steps = log_ends(self._cluster, partitions, end, committed_only=self._settings.fetch.committed_only)
        return self._connector.run(steps, time_left(deadline))

    # --- changes of the logs ---

    def _reset_lost_offsets(self, deadline: float) -> None:
        lost = sorted(self._fetcher.out_of_range)
        if self._settings.reset is None:
            offset = self._fetcher.positions[lost[0]]
            raise KgctlError(f"{lost[0]} no longer has offset {offset}: the records were deleted")
        for partition, offset in self._reset(lost, deadline).items():
            old = self._fetcher.positions[partition]
            self._notice(
                f"{partition} has no offset {old}; continuing at {offset}, the {self._settings.reset.name.lower()}"
            )
            self._fetcher.seek(partition, offset)

    def _notice_new_partitions(self, deadline: float) -> None:
        """A topic may get more partitions: read them from their start, or let the group assign them."""
        self._topics_at = time.monotonic()
        known = self._topics
        try:
            counts = self._connector.run(partition_counts(self._cluster, list(known)), time_left(deadline))
        except KgctlError:
            return  # fetching reports the failure, if it lasts
        self._topics = counts
        if self._group is not None:
            if counts != known and self._group.is_leader:
                self._group.must_join = True
            return
        for topic, count in counts.items():
            if all(TopicPartition(topic, index) in self._fetcher.positions for index in range(known[topic])):
                for index in range(known[topic], count):
                    self._fetcher.add(TopicPartition(topic, index), 0)
