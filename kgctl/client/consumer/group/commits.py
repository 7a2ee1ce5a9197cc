"""Commits of offsets: asynchronous ones in order, synchronous ones with retries, and automatic ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from random import Random

from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgctl.client.consumer.group.calls import Call, CommitCall, CommitCallback
from kgctl.client.consumer.group.commit_answers import CommitAnswers
from kgctl.client.consumer.group.errors import CommitFailed, FencedInstance, RebalanceInProgress, StaleEpoch
from kgctl.client.consumer.group.generation import NO_GENERATION, Generation
from kgctl.client.consumer.group.standing import Standing
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.net.errors import BadValue, KgctlError, TimedOut
from kgctl.model.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Commit:
    """`is_done`, then `error`. `deadline_ms`: retry until then; None: one attempt."""

    __slots__ = (
        "attempts",
        "callback",
        "deadline_ms",
        "error",
        "in_flight",
        "is_done",
        "offsets",
        "retry_at_ms",
        "then",
    )

    def __init__(
        self,
        offsets: Offsets,
        deadline_ms: int | None = None,
        callback: CommitCallback | None = None,
        then: Callable[[KgctlError | None, int], None] | None = None,
    ) -> None:
        self.offsets = dict(offsets)
        self.deadline_ms = deadline_ms
        self.callback = callback
        self.then = then  # our own, at once and not in the application's thread
        self.is_done = False
        self.error: KgctlError | None = None
        self.attempts = 0
        self.in_flight = False
        self.retry_at_ms = 0


class Commits:
    """Commits leave in the order of the calls; one that waits for the coordinator holds back later ones."""

    def __init__(
        self,
        membership: Standing,
        subscription: SubscriptionState,
        random: Random,
        calls: deque[Call],
    ) -> None:
        self._membership = membership
        self._subscription = subscription
        self._settings = membership.settings
        self._random = random
        self._calls = calls
        self._answers = CommitAnswers(membership)
        self._open: list[Commit] = []
        self._auto_commit_ms: int | None = None
        self._fenced: KgctlError | None = None
        self.on_commit: Callable[[Offsets], object] | None = None  # interceptors

    # --- by the application ---

    def commit(self, offsets: Offsets, now_ms: int, callback: CommitCallback | None = None) -> Commit:
        """Commit without retries. The callback runs in the polling thread, after those of earlier commits."""
        self.raise_if_fenced()
        return self._add(Commit(offsets, callback=callback), now_ms)

    def commit_sync(self, offsets: Offsets, now_ms: int, deadline_ms: int) -> Commit:
        """Commit with retries. It is done after all commits before it; without offsets it only waits for those."""
        self.raise_if_fenced()
        return self._add(Commit(offsets, deadline_ms), now_ms)

    def raise_if_fenced(self) -> None:
        """An asynchronous commit learned that another instance took over."""
        if self._fenced is not None:
            raise self._fenced

    @property
    def has_open(self) -> bool:
        return bool(self._open)

    # --- automatically ---

    def start_auto_commit(self, now_ms: int) -> None:
        """The next automatic commit is due an interval from now."""
        if self._settings.auto_commit:
            self._auto_commit_ms = now_ms + self._settings.auto_commit_interval_ms

    def auto_commit_due(self, now_ms: int) -> bool:
        return self._auto_commit_ms is not None and now_ms >= self._auto_commit_ms

    def auto_commit_if_due(self, now_ms: int) -> None:
        """Commit what earlier polls returned. For poll only: later, records may be returned and not processed."""
        if self._settings.auto_commit and self._auto_commit_ms is None:
            self.start_auto_commit(now_ms)
        if self.auto_commit_due(now_ms):
            self._auto_commit_ms = now_ms + self._settings.auto_commit_interval_ms
            self.auto_commit(now_ms)

    def auto_commit(self, now_ms: int) -> Commit:
        def finished(error: KgctlError | None, at_ms: int) -> None:
            if error is None:
                return
            if not isinstance(error, StaleEpoch):
                self._membership.note(f"the automatic commit failed: {error}")
            if error.retriable:
                self._auto_commit_ms = at_ms + self._settings.retry_backoff_ms

        return self._add(Commit(self._subscription.consumed(), then=finished), now_ms)

    # --- in the background ---

    def advance(self, now_ms: int) -> None:
        self._send_all(now_ms)
        for commit in [one for one in self._open if one.deadline_ms is not None and now_ms >= one.deadline_ms]:
            self._finish(commit, self._late(), now_ms)

    def _send_all(self, now_ms: int) -> None:
        for commit in list(self._open):
            if commit.is_done or commit.in_flight:
                continue
            if not commit.offsets:
                if commit is self._open[0]:
                    self._finish(commit, None, now_ms)
                    continue
                return
            if not self._attempt(commit, now_ms):
                return

    def wake_at_ms(self) -> list[int]:
        times = [] if self._auto_commit_ms is None else [self._auto_commit_ms]
        for commit in self._open:
            if not commit.in_flight:
                times.append(commit.retry_at_ms)
            if not commit.in_flight or commit.deadline_ms is not None:
                times.append(self._expires_ms(commit))
        return times

    def fail_all(self, error: KgctlError, now_ms: int) -> None:
        """The consumer closes: nothing more is sent."""
        for commit in list(self._open):
            self._finish(commit, error, now_ms)

    # --- parts ---

    def _add(self, commit: Commit, now_ms: int) -> Commit:
        if commit.deadline_ms is None:
            commit.retry_at_ms = now_ms
        self._open.append(commit)
        self.advance(now_ms)
        return commit

    def _late(self) -> TimedOut:
        return self._membership.link.late(f"the commit of group {self._settings.group_id!r} timed out")

    def _expires_ms(self, commit: Commit) -> int:
        if commit.deadline_ms is not None:
            return commit.deadline_ms
        return commit.retry_at_ms + self._settings.request_timeout_ms

    def _attempt(self, commit: Commit, now_ms: int) -> bool:
        """Send the commit if it can be sent; false if it has to wait for the coordinator or for its retry."""
        if now_ms < commit.retry_at_ms:
            return False
        try:
            is_known = self._membership.link.seek(now_ms)
        except KgctlError as error:
            self._finish(commit, error, now_ms)
            return True
        if is_known:
            self._send(commit, now_ms)
            return True
        if now_ms >= self._expires_ms(commit):
            self._finish(commit, self._late(), now_ms)
            return True
        return False

    def _send(self, commit: Commit, now_ms: int) -> None:
        commit.in_flight = True
        bad = next((one for one in commit.offsets.items() if one[1].offset < 0), None)
        generation = self._generation()
        if bad is not None:
            self._finish(commit, BadValue(f"cannot commit offset {bad[1].offset} of {bad[0]}: it is negative"), now_ms)
        elif isinstance(generation, KgctlError):
            self._finish(commit, generation, now_ms)
        else:
            request, oldest = _request(self._settings.group_id, generation, commit.offsets), 0
            if self._subscription.is_auto_assigned:
                request.group_instance_id = self._settings.group_instance_id
                oldest = self._settings.min_version(OffsetCommitRequest)

            def answered(answer: OffsetCommitResponse | KgctlError, at_ms: int) -> None:
                error = self._answers.error_of(answer, generation)
                self._answered(commit, error, at_ms)

            self._membership.link.send(request, OffsetCommitResponse, answered, now_ms, min_version=oldest)

    def _generation(self) -> Generation | KgctlError:
        if not self._subscription.is_auto_assigned:
            return NO_GENERATION
        membership = self._membership
        generation = membership.stable_generation
        if generation is not None:
            return generation
        if membership.state.is_rebalancing:
            return RebalanceInProgress(
                "the commit was not sent: the group is rebalancing; call poll until it is done, then commit what is assigned"
            )
        return CommitFailed(
            f"the commit was not sent: {membership.left_because or 'the consumer is not a member of the group'}"
        )

    def _answered(self, commit: Commit, error: KgctlError | None, now_ms: int) -> None:
        commit.in_flight = False
        if error is not None and error.retriable and commit.deadline_ms is not None:
            if now_ms < commit.deadline_ms:
                commit.retry_at_ms = now_ms + self._settings.backoff_ms(commit.attempts, self._random)
                commit.attempts += 1
                return
            error = TimedOut(f"the commit of group {self._settings.group_id!r} timed out: {error}")
        self._finish(commit, error, now_ms)

    def _finish(self, commit: Commit, error: KgctlError | None, now_ms: int) -> None:
        if commit.is_done:
            return
        commit.is_done, commit.error = True, error
        self._open.remove(commit)
        if error is None and self.on_commit is not None and commit.offsets:
            offsets, on_commit = commit.offsets, self.on_commit
            self._calls.append(Call(lambda: on_commit(offsets)))
        if commit.deadline_ms is None:
            if isinstance(error, FencedInstance):
                self._fenced = error
            if commit.then is not None:
                commit.then(error, now_ms)
            elif commit.callback is not None:
                self._calls.append(CommitCall(commit.callback, commit.offsets, error))
            elif error is not None:
                self._membership.note(f"a commit failed: {error}")


def _request(group_id: str, generation: Generation, offsets: Offsets) -> OffsetCommitRequest:
    topics: dict[str, OffsetCommitRequest.Topic] = {}
    for (name, index), one in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequest.Topic(name=name, partitions=[]))
        topic.partitions.append(
            OffsetCommitRequest.Partition(
                partition_index=index,
                committed_offset=one.offset,
                committed_leader_epoch=-1 if one.leader_epoch is None else one.leader_epoch,
                committed_metadata=one.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation.generation_id,
        member_id=generation.member_id,
        topics=list(topics.values()),
    )
