"""What the polling thread does for a membership, whichever protocol the group has: commit, call the listener, leave.

Flows are generators that the polling thread drives: they yield calls of the application to run, and conditions to wait for.
Meanwhile, requests and heartbeats continue without them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from typing import TypeAlias

from broker.light_named_tuples import NamedTuple
from kgctl.client.consumer.group.calls import Call, ListenerCall
from kgctl.client.consumer.group.commits import Commits
from kgctl.client.consumer.group.standing import Standing
from kgctl.client.consumer.group.topics import TopicWatch
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.network.metadata import Metadata
from kgctl.model.topic_partition import TopicPartition


class Wait(NamedTuple):
    """Until the condition holds; `at_ms` is when time alone can make it hold."""

    ready: Callable[[int], bool]
    at_ms: int | None = None


Flow: TypeAlias = Generator[Call | Wait, None, None]
Notified: TypeAlias = Generator[Call | Wait, None, BaseException | None]


class GroupFlows:
    def __init__(
        self,
        membership: Standing,
        commits: Commits,
        subscription: SubscriptionState,
        topics: TopicWatch,
        metadata: Metadata,
    ) -> None:
        self._standing = membership
        self._commits = commits
        self._subscription = subscription
        self._topics = topics
        self._metadata = metadata
        self._settings = membership.settings
        self.now_ms = 0

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """What transactions name (KIP-447)."""
        raise NotImplementedError

    @property
    def is_needed(self) -> bool:
        """Whether `active_group` has something to do."""
        raise NotImplementedError

    def active_group(self) -> Flow:
        """Join the group, and take over what it assigns, until there is nothing more to do."""
        raise NotImplementedError

    def leave(self, reason: str) -> Flow:
        """Give up all partitions, and the place in the group."""
        error = yield from self._drop_all()
        self._standing.leave(reason, self.now_ms)
        self._topics.joined = None
        self._has_left()
        if error is not None:
            raise error

    # --- parts ---

    def _has_left(self) -> None:
        """Forget what belongs to the membership that ended."""

    def _metadata_of_now(self) -> ConsumerGroupMetadata:
        generation = self._standing.generation
        return ConsumerGroupMetadata(
            self._settings.group_id, generation.generation_id, generation.member_id, self._settings.group_instance_id
        )

    def _fresh_topics(self) -> Flow:
        """Match the pattern with the topics of now, so that one rebalance, not one for each member, follows a new topic."""
        number = self._topics.fresh_answer(self.now_ms)
        yield Wait(lambda now_ms: self._metadata.answered >= number)
        self._topics.update(self.now_ms)

    def _commit_until_done(self) -> Flow:
        """Commit until it is done, refused for good, or the group continues without this member."""
        deadline_ms = self.now_ms + self._settings.max_poll_interval_ms
        while self.now_ms < deadline_ms:
            commit = self._commits.auto_commit(self.now_ms)
            yield Wait(lambda now_ms, commit=commit: commit.is_done or now_ms >= deadline_ms, deadline_ms)  # type: ignore[misc]
            if not commit.is_done or commit.error is None or not commit.error.retriable:
                return
            retry_ms = self.now_ms + self._settings.retry_backoff_ms
            yield Wait(lambda now_ms, retry_ms=retry_ms: now_ms >= retry_ms, retry_ms)  # type: ignore[misc]

    def _add(self, assigned: Collection[TopicPartition], added: set[TopicPartition]) -> Notified:
        """Fetch what is new once the listener has run."""
        self._commits.start_auto_commit(self.now_ms)
        self._subscription.assign_awaiting_call(sorted(assigned), added)
        error = yield from self._notify("assigned", added)
        self._subscription.enable(added)
        return error

    def _drop_all(self) -> Notified:
        """Before leaving: everything is revoked, or lost if the membership has ended or a rebalance is under way."""
        owned = self._subscription.assigned
        if not self._subscription.is_auto_assigned or not owned:
            return None
        is_lost = self._standing.generation.owns_nothing or self._standing.state.is_rebalancing
        error = yield from self._notify("lost" if is_lost else "revoked", owned)
        self._give_up(owned)
        return error

    def _give_up(self, partitions: Collection[TopicPartition]) -> None:
        if self._subscription.is_auto_assigned:
            self._subscription.assign_from_group(sorted(self._subscription.assigned - set(partitions)))

    def _notify(self, kind: str, partitions: Collection[TopicPartition]) -> Notified:
        listener = self._subscription.listener
        if listener is None:
            return None
        call = ListenerCall(kind, listener, sorted(partitions))
        yield call
        return call.error
