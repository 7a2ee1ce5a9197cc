"""What `kgctl consume` needs beyond a Consumer: ends to stop at, commits of printed records only, notices, and limits of patience."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from broker.light_dataclasses import replace
from broker.protocol.errors import ErrorCode
from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetcher import is_missing
from kgctl.client.consumer.group.errors import CommitFailed, RebalanceInProgress
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.consumer.settings import ConsumerSettings
from kgctl.client.consumer.start_offsets import Reset, given_offsets, log_ends, partition_counts
from kgctl.client.net.connector import Connector
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable, missing_partition
from kgctl.model.topic_partition import TopicPartition

CLOSE_SECONDS = 5.0
_COMMIT_SECONDS = 1.0
_LEAST_SECONDS = 0.1
# A signal and a closed pipe are noticed between two polls.
_POLL_SECONDS = 0.1
_OUTAGE_SECONDS = 60.0
_MISSING_SECONDS = 5.0

Offsets = dict[TopicPartition, OffsetAndMetadata]


class TopicReader(RebalanceListener):
    """Call `assign` or `subscribe`, then `poll` repeatedly, and `mark_used` for printed records, which are committed.

    `until_end`: stop at the log ends that are found when a partition is first assigned. `notice` gets sentences for people.
    """

    def __init__(
        self, connector: Connector, settings: ConsumerSettings, until_end: bool, notice: Callable[[str], None]
    ) -> None:
        self._connector, self._settings, self._until_end, self._notice = connector, settings, until_end, notice
        self._consumer = Consumer.connect(connector.settings, replace(settings, note=notice))
        self._topics: dict[str, int] = {}
        self._takes_new_partitions = False
        self._limits: dict[TopicPartition, int] = {}
        self._used: Offsets = {}
        self._sent: Offsets = {}  # their commit is not known to have succeeded
        self._fresh: set[TopicPartition] = set()  # the next owner must start there, too, even without a record
        self._commit_at = 0.0
        self._has_partitions = False
        self._failing_since: float | None = None

    # --- what to read ---

    def assign(
        self, topics: Sequence[str], timeout: float, numbers: Sequence[int] | None = None, offset: int | None = None
    ) -> None:
        """Read the topics, or only their partitions with these numbers, without a group.

        Starts at `offset`, which may count back from the end, else where auto.offset.reset says.
        """
        self._topics = self._connector.run(partition_counts(self._connector.cluster, topics), timeout)
        self._takes_new_partitions = numbers is None
        partitions = []
        for name, count in self._topics.items():
            for index in range(count) if numbers is None else sorted(set(numbers)):
                if index >= count:
                    raise missing_partition(name, index, count)
                partitions.append(TopicPartition(name, index))
        positions = {}
        if offset is not None:
            given = dict.fromkeys(partitions, offset)
            positions = self._connector.run(given_offsets(self._connector.cluster, given), timeout)
        self._limit(partitions, timeout)
        self._consumer.assign(partitions)
        for one, position in positions.items():
            self._consumer.seek(one, position)
        self._has_partitions = True

    def subscribe(self, topics: Sequence[str], timeout: float) -> None:
        """Read the topics as a member of the group. The first `poll` joins it."""
        self._topics = self._connector.run(partition_counts(self._connector.cluster, topics), timeout)
        self._consumer.subscribe(topics, listener=self)

    @property
    def at_end(self) -> bool:
        """With `until_end`: whether `poll` has returned everything before the log ends."""
        return self._until_end and self._has_partitions and all(map(self._is_at_end, self._consumer.assignment()))

    def _is_at_end(self, one: TopicPartition) -> bool:
        limit, state = self._limits.get(one), self._consumer.state_of(one)
        if limit is None or state is None or state.position is None:
            return False
        position = state.position.offset
        end = state.end_offset(committed_only=self._settings.fetch.committed_only)
        # Compaction may have removed the records before the limit.
        return position >= limit or (state.nothing_at == position and end is not None and end >= limit)

    def _limit(self, partitions: Collection[TopicPartition], timeout: float) -> None:
        if self._until_end:
            unseen = [one for one in partitions if one not in self._limits]
            committed_only = self._settings.fetch.committed_only
            steps = log_ends(self._connector.cluster, unseen, Reset.LATEST, committed_only=committed_only)
            self._limits |= self._connector.run(steps, timeout)

    # --- records ---

    def poll(self, timeout: float, check: Callable[[], None]) -> list[Fetched]:
        """What arrives within `timeout` seconds. Calls `check` while it waits; it may raise. Raises what lasts too long."""
        deadline = time.monotonic() + timeout
        while True:
            check()
            left = deadline - time.monotonic()
            arrived = self._consumer.poll_batches(max(0.0, min(_POLL_SECONDS, left)))
            self._note_starts(arrived)
            self.commit_if_due()
            self._take_new_partitions()
            if arrived:
                self._failing_since = None
                return [replace(one, limit=self._limits.get(one.partition)) for one in arrived]
            self._check_outage()
            if left <= 0 or self.at_end:
                return []

    def _take_new_partitions(self) -> None:
        """A topic may get more partitions: read them from their start; a group assigns them itself."""
        if not self._takes_new_partitions or self._settings.group is not None:
            return
        for topic, known in self._topics.items():
            count = self._consumer.known_partition_count(topic) or 0
            if count > known:
                self._topics[topic] = count
                added = [TopicPartition(topic, number) for number in range(known, count)]
                self._consumer.assign([*self._consumer.assignment(), *added])
                for one in added:
                    self._consumer.seek(one, 0)
                return

    def _check_outage(self) -> None:
        error = self._consumer.obstacle()
        now = time.monotonic()
        if error is None:
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = now
            if _is_unstable(error):
                self._notice(f"{error}; waiting for its end")
            elif not is_missing(error):
                self._notice(f"{error}; trying again")
        elif not _is_unstable(error):
            patience = _MISSING_SECONDS if is_missing(error) else _OUTAGE_SECONDS
            if now - self._failing_since > patience:
                raise error

    # --- commits ---

    def mark_used(self, partition: TopicPartition, next_offset: int) -> None:
        """Allow the commit of `next_offset`: all earlier records of the partition are printed."""
        if self._settings.group is not None and partition in self._consumer.assignment():
            self._used[partition] = OffsetAndMetadata(next_offset)
            self._fresh.discard(partition)

    def commit_if_due(self) -> None:
        """Commit what was printed, once a second. For callers that block between two polls, too."""
        now = time.monotonic()
        if self._used and now >= self._commit_at:
            self._commit_at = now + _COMMIT_SECONDS
            self._sent |= self._used
            used, self._used = self._used, {}
            self._consumer.commit_async(used, self._committed)

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Commit printed records, leave the group, close the connections. Raises the first error once all of it is done."""
        deadline = time.monotonic() + timeout
        error: KgctlError | None = None
        try:
            self._commit(self._sent | self._used, timeout)
        except KgctlError as raised:
            error = raised
        try:
            self._consumer.close(max(_LEAST_SECONDS, deadline - time.monotonic()))
        except KgctlError as raised:
            error = error or raised
        if error is not None:
            raise error

    def _commit(self, offsets: Offsets, timeout: float) -> None:
        if offsets:
            try:
                self._consumer.commit(offsets, timeout)
            except (CommitFailed, RebalanceInProgress) as error:
                self._notice(f"{error}; the records will be read again")
                raise

    def _committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KgctlError | None) -> None:
        is_unsent = isinstance(error, Unreachable | TimedOut | RebalanceInProgress) or (error and error.retriable)
        for one, offset in offsets.items():
            if self._sent.get(one) != offset:
                continue  # a later commit is under way
            del self._sent[one]
            if is_unsent and one in self._consumer.assignment():
                self._used.setdefault(one, offset)
        if error is not None and not is_unsent:
            self._notice(f"{error}; the records will be read again")

    # --- the group ---

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._limit(partitions, CLOSE_SECONDS)
        self._fresh |= set(partitions)
        self._has_partitions = True

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        going = {one: offset for one, offset in (self._sent | self._used).items() if one in partitions}
        for one in partitions:
            self._sent.pop(one, None)
            self._used.pop(one, None)
        self._fresh -= set(partitions)
        with contextlib.suppress(KgctlError):  # whoever gets the partitions reads the records again
            self._commit(going, CLOSE_SECONDS)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        for one in partitions:
            self._sent.pop(one, None)
            self._used.pop(one, None)
            self._fresh.discard(one)

    def _note_starts(self, arrived: Sequence[Fetched]) -> None:
        if not self._fresh:
            return
        starts = {one.partition: one.offset for one in reversed(arrived)}
        for one in list(self._fresh):
            state = self._consumer.state_of(one)
            position = None if state is None else state.valid_position
            start = starts.get(one, None if position is None else position.offset)
            if start is not None:
                self._used.setdefault(one, OffsetAndMetadata(start))
            if state is None or start is not None:
                self._fresh.discard(one)


def _is_unstable(error: KgctlError) -> bool:
    """Whether an open transaction has offsets of the group."""
    return isinstance(error, BrokerError) and error.code == ErrorCode.UNSTABLE_OFFSET_COMMIT
