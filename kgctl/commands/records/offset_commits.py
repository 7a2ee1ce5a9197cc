"""When `kgctl consume` commits offsets: those of printed records, or before it prints them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from enum import Enum

from broker.light_dataclasses import dataclass
from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.group.errors import CommitFailed, RebalanceInProgress
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.net.errors import KgctlError, TimedOut, Unreachable
from kgctl.model.topic_partition import TopicPartition

COMMIT_SECONDS = 60.0
_REVOKE_SECONDS = 5.0
# A signal is noticed between two attempts.
_ATTEMPT_SECONDS = 5.0

Offsets = dict[TopicPartition, OffsetAndMetadata]


class When(Enum):
    REGULARLY = "after an interval"
    AFTER = "after each printed batch"
    BEFORE = "before a batch is printed"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class CommitPolicy:
    when: When
    interval: float = 1.0  # seconds

    @property
    def waits(self) -> bool:
        """Whether each batch waits for its commit."""
        return self.when in (When.AFTER, When.BEFORE)


class CommitTimedOut(KgctlError):
    """A commit that the next record has to wait for was not answered in time."""

    name = "TIMED_OUT"


class OffsetCommits:
    """Call `used` for printed records and `start` for partitions without any.

    `is_member`: the group decides who may commit, so what it refuses is read again by whoever gets the partition.
    Otherwise a refusal is an error, which `commit_if_due` raises. `notice` gets sentences for people.
    """

    def __init__(
        self, consumer: Consumer, policy: CommitPolicy, *, is_member: bool, notice: Callable[[str], None]
    ) -> None:
        self._consumer, self._policy, self._is_member, self._notice = consumer, policy, is_member, notice
        self._due: Offsets = {}
        self._sent: Offsets = {}  # their commit is not known to have succeeded
        self._commit_at = 0.0
        self._failure: KgctlError | None = None

    def used(self, partition: TopicPartition, next_offset: int) -> None:
        """All records before this offset are printed."""
        if self._policy.when in (When.REGULARLY, When.AFTER):
            self._due[partition] = OffsetAndMetadata(next_offset)

    def start(self, partition: TopicPartition, offset: int) -> None:
        """Nothing is printed yet; the next owner starts here, too."""
        if self._policy.when is not When.NEVER:
            self._due.setdefault(partition, OffsetAndMetadata(offset))

    def commit_if_due(self) -> None:
        """Commit without waiting, once per interval. For callers that block between two polls, too."""
        if self._failure is not None:
            raise self._failure
        now = time.monotonic()
        if self._due and now >= self._commit_at:
            self._commit_at = now + self._policy.interval
            self._sent |= self._due
            due, self._due = self._due, {}
            self._consumer.commit_async(due, self._committed)

    def commit_now(self, offsets: Mapping[TopicPartition, int], timeout: float, check: Callable[[], None]) -> None:
        """Commit these offsets and wait for it. Calls `check` between two attempts; it may raise. Raises CommitTimedOut."""
        wanted = {one: OffsetAndMetadata(offset) for one, offset in offsets.items()}
        self.forget(wanted)  # an older offset must not follow
        deadline = time.monotonic() + timeout
        try:
            while True:
                left = deadline - time.monotonic()
                try:
                    self._consumer.commit(wanted, max(0.0, min(_ATTEMPT_SECONDS, left)))
                    return
                except TimedOut as error:
                    if left <= _ATTEMPT_SECONDS:
                        raise CommitTimedOut(str(error)) from error
                check()
        except BaseException:
            if self._policy.when is When.AFTER:  # the records are printed: commit them when it is possible
                self._due = wanted | self._due
            raise

    def commit_all(self, timeout: float) -> None:
        """The end: commit what is not committed yet."""
        self._commit(self._sent | self._due, timeout)

    def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Commit what is not committed yet of partitions that others get."""
        going = {one: offset for one, offset in (self._sent | self._due).items() if one in partitions}
        self.forget(partitions)
        with contextlib.suppress(KgctlError):  # whoever gets the partitions reads the records again
            self._commit(going, _REVOKE_SECONDS)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        for one in partitions:
            self._sent.pop(one, None)
            self._due.pop(one, None)

    # --- parts ---

    def _commit(self, offsets: Offsets, timeout: float) -> None:
        if offsets:
            try:
                self._consumer.commit(offsets, timeout)
            except (CommitFailed, RebalanceInProgress) as error:
                if self._is_member:
                    self._notice(f"{error}; the records will be read again")
                raise

    def _committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KgctlError | None) -> None:
        is_unsent = isinstance(error, Unreachable | TimedOut | RebalanceInProgress) or (error and error.retriable)
        for one, offset in offsets.items():
            if self._sent.get(one) != offset:
                continue  # a later commit is under way
            del self._sent[one]
            if is_unsent and one in self._consumer.assignment():
                self._due.setdefault(one, offset)
        if error is not None and not is_unsent:
            if self._is_member:
                self._notice(f"{error}; the records will be read again")
            else:
                self._failure = error
