"""What `kgctl consume` needs beyond a Consumer: ends to stop at, commits, notices, and limits of patience."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from broker.light_dataclasses import replace
from broker.protocol.errors import ErrorCode
from kgctl.client.admin.log_ends import given_offsets, log_ends, partition_counts
from kgctl.client.admin.offsets import LATEST
from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.group.errors import CommitFailed, RebalanceInProgress
from kgctl.client.consumer.outage import Outage
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.consumer.settings import ConsumerSettings
from kgctl.client.net.connector import Connector
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound, is_missing
from kgctl.commands.records.assigned_topics import AssignedTopics, matching_topics
from kgctl.commands.records.offset_commits import CommitPolicy, OffsetCommits
from kgctl.commands.records.rebalance_notices import RebalanceNotices
from kgctl.commands.records.source import Source
from kgctl.model.topic_partition import TopicPartition

CLOSE_SECONDS = 5.0
_LEAST_SECONDS = 0.1
# A signal and a closed pipe are noticed between two polls.
_POLL_SECONDS = 0.1
# A leader that moves is not worth a notice.
_SOON_SECONDS = 1.0
# A member without partitions may get some once others have given them up, which their next heartbeat asks them to do:
# every 5 s by group.consumer.heartbeat.interval.ms.
_WITHOUT_PARTITIONS_SECONDS = 6.0


class TopicReader(RebalanceListener):
    """Call `assign` or `subscribe`, then `poll` repeatedly, and `mark_used` for printed records.

    `until_end`: stop at the log ends that are found when a partition is first assigned. `notice` gets sentences for people.
    """

    def __init__(
        self,
        connector: Connector,
        settings: ConsumerSettings,
        source: Source,
        policy: CommitPolicy,
        *,
        until_end: bool,
        notice: Callable[[str], None],
        has_rebalance_notices: bool = False,
    ) -> None:
        self._connector, self._settings, self._until_end, self._notice = connector, settings, until_end, notice
        self._source = source
        self._consumer = Consumer.connect(connector.settings, replace(settings, note=notice))
        self._is_member = settings.group is not None and source.partitions is None
        self._commits = OffsetCommits(self._consumer, policy, is_member=self._is_member, notice=notice)
        self._rebalances: RebalanceNotices | None = None
        if settings.group is not None and has_rebalance_notices:
            self._rebalances = RebalanceNotices(self._consumer, settings.group.group_id, notice)
        self._topics = AssignedTopics(connector, source, settings.network.metadata_max_age_ms / 1000)
        self._limits: dict[TopicPartition, int] = {}
        self._arrived: dict[TopicPartition, int] = {}  # where the records begin that are not printed yet
        self._fresh: set[TopicPartition] = set()  # the next owner must start there, too, even without a record
        self._assigned_at: float | None = None  # None: not yet, or partitions were taken away and the next are to come
        self._outage = Outage()
        self._is_noticed = False

    # --- what to read ---

    def begin(self, timeout: float, offset: int | None = None) -> None:
        """Read what the source says: as a member of the group, or without sharing.

        Starts at committed offsets, else where auto.offset.reset says; `offset` comes before both, and may count back
        from the end.
        """
        if self._is_member:
            self._subscribe(timeout)
        else:
            self._assign(timeout, offset)

    def _assign(self, timeout: float, offset: int | None) -> None:
        partitions = self._topics.find(timeout)
        if not partitions:
            self._check_match()
        positions = {}
        if offset is not None:
            given = dict.fromkeys(partitions, offset)
            positions = self._connector.run(given_offsets(self._connector.cluster, given), timeout)
        self._limit(partitions, timeout)
        self._consumer.assign(partitions)
        self._consumer.stop_before(self._limits)
        for one, position in positions.items():
            self._consumer.seek(one, position)
        if self._settings.group is not None:
            self._fresh |= set(partitions)
        self._assigned_at = time.monotonic()

    def _subscribe(self, timeout: float) -> None:
        """The first `poll` joins the group."""
        source = self._source
        if source.pattern is None:
            self._connector.run(partition_counts(self._connector.cluster, list(source.topics)), timeout)
        elif not matching_topics(self._connector, source, timeout):
            self._check_match()
        self._consumer.subscribe(source.topics, pattern=source.pattern, listener=self)

    def _check_match(self) -> None:
        """No topic matches the pattern yet."""
        assert self._source.pattern is not None
        sentence = f"No topic matches {self._source.pattern.pattern!r}"
        if self._until_end:
            raise NotFound(f"{sentence}.")
        self._notice(f"{sentence} yet; waiting for one.")

    @property
    def at_end(self) -> bool:
        """With `until_end`: whether `poll` has returned everything before the log ends; a member may have no partitions."""
        if not self._until_end or self._assigned_at is None:
            return False
        assigned = self._consumer.assignment()
        if not assigned:
            return time.monotonic() - self._assigned_at >= _WITHOUT_PARTITIONS_SECONDS
        return all(map(self._consumer.has_reached_limit, assigned))

    def _limit(self, partitions: Collection[TopicPartition], timeout: float) -> None:
        if self._until_end:
            unseen = [one for one in partitions if one not in self._limits]
            committed_only = self._settings.fetch.committed_only
            steps = log_ends(self._connector.cluster, unseen, LATEST, committed_only=committed_only)
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
                self._outage.check(None, time.monotonic())
                self._arrived = {one.partition: one.offset for one in reversed(arrived)}
                return arrived
            self._check_outage()
            if left <= 0 or self.at_end:
                return []

    def _take_new_partitions(self) -> None:
        """Read partitions that are added later from their start; a group assigns them itself."""
        if self._is_member or self._until_end:
            return
        added = self._topics.added(self._consumer.known_partition_count)
        if added:
            self._consumer.assign([*self._consumer.assignment(), *added])
            for one in added:
                self._consumer.seek(one, 0)

    def _check_outage(self) -> None:
        error = self._consumer.obstacle()
        is_unstable = error is not None and _is_unstable(error)
        lasted = self._outage.check(error, time.monotonic(), is_patient=is_unstable)
        if error is None or lasted is None:
            self._is_noticed = False
        elif not self._is_noticed and not is_missing(error):
            if is_unstable:
                self._is_noticed = True
                self._notice(f"{error}; waiting for its end")
            elif lasted > _SOON_SECONDS or not isinstance(error, BrokerError):
                self._is_noticed = True
                self._notice(f"{error}; trying again")

    # --- commits ---

    def commit_before(self, ends: Mapping[TopicPartition, int], timeout: float, check: Callable[[], None]) -> bool:
        """Commit these offsets before the records are printed. False: print none of what `poll` returned; it comes again."""
        try:
            self._commits.commit_now(ends, timeout, check)
        except (CommitFailed, RebalanceInProgress):
            if not self._is_member:
                raise
            assigned = self._consumer.assignment()
            for one, offset in self._arrived.items():
                if one in assigned:
                    self._consumer.seek(one, offset)
            return False
        return True

    def commit_after(self, ends: Mapping[TopicPartition, int], timeout: float, check: Callable[[], None]) -> None:
        """Commit the offsets of printed records."""
        try:
            self._commits.commit_now(ends, timeout, check)
        except (CommitFailed, RebalanceInProgress) as error:
            if not self._is_member:
                raise
            if isinstance(error, CommitFailed):
                self._notice(f"{error}; the records will be read again")

    def mark_used(self, partition: TopicPartition, next_offset: int) -> None:
        """All records of the partition before `next_offset` are printed."""
        self._arrived[partition] = next_offset
        if self._settings.group is not None and partition in self._consumer.assignment():
            self._commits.used(partition, next_offset)
            self._fresh.discard(partition)

    def commit_if_due(self) -> None:
        """For callers that block between two polls."""
        self._commits.commit_if_due()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Commit printed records, leave the group, close the connections. Raises the first error once all of it is done."""
        deadline = time.monotonic() + timeout
        error: KgctlError | None = None
        try:
            self._commits.commit_all(timeout)
        except KgctlError as raised:
            error = raised
        try:
            self._consumer.close(max(_LEAST_SECONDS, deadline - time.monotonic()))
        except KgctlError as raised:
            error = error or raised
        if error is not None:
            raise error

    def end(self) -> None:
        """Close the connections at once, if `close` was not called."""
        with contextlib.suppress(KgctlError):
            self._consumer.close(0)

    # --- the group ---

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        if self._rebalances is not None:
            self._rebalances.assigned(partitions)
        self._limit(partitions, CLOSE_SECONDS)
        self._consumer.stop_before({one: self._limits[one] for one in partitions if one in self._limits})
        self._fresh |= set(partitions)
        self._assigned_at = time.monotonic()

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._assigned_at = None
        self._fresh -= set(partitions)
        self._commits.revoke(partitions)
        if self._rebalances is not None:
            self._rebalances.revoked(partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._assigned_at = None
        self._fresh -= set(partitions)
        self._commits.forget(partitions)
        if self._rebalances is not None:
            self._rebalances.lost(partitions)

    def _note_starts(self, arrived: Sequence[Fetched]) -> None:
        if not self._fresh:
            return
        starts = {one.partition: one.offset for one in reversed(arrived)}
        for one in list(self._fresh):
            state = self._consumer.state_of(one)
            position = None if state is None else state.valid_position
            start = starts.get(one, None if position is None else position.offset)
            if start is not None:
                self._commits.start(one, start)
            if state is None or start is not None:
                self._fresh.discard(one)


def _is_unstable(error: KgctlError) -> bool:
    """Whether an open transaction has offsets of the group."""
    return isinstance(error, BrokerError) and error.code == ErrorCode.UNSTABLE_OFFSET_COMMIT
