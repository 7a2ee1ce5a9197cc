"""Taking over what the group assigns: commit, revoke, assign, then acknowledge. The part of KIP-848 that a listener sees."""

from __future__ import annotations

from kgctl.client.consumer.group.commits import Commits
from kgctl.client.consumer.group.consumer_protocol.heartbeat_contents import TopicIds
from kgctl.client.consumer.group.consumer_protocol.membership import EpochMembership
from kgctl.client.consumer.group.flows import Flow, GroupFlows, Wait
from kgctl.client.consumer.group.generation import MemberState
from kgctl.client.consumer.group.topics import TopicWatch
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.client.consumer.subscription import SubscriptionState, SubscriptionType
from kgctl.client.network.metadata import Metadata
from kgctl.model.topic_partition import TopicPartition


class Reconciliation(GroupFlows):
    def __init__(
        self,
        membership: EpochMembership,
        commits: Commits,
        subscription: SubscriptionState,
        topics: TopicWatch,
        metadata: Metadata,
    ) -> None:
        super().__init__(membership, commits, subscription, topics, metadata)
        self._membership = membership
        self._reconciled: TopicIds | None = None  # the target, as far as metadata knew its topics
        self._asked_version = -1  # of metadata, when it did not know all of them

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """The member's epoch of now."""
        return self._metadata_of_now()

    @property
    def is_needed(self) -> bool:
        if not self._subscription.is_auto_assigned:
            return False
        membership = self._membership
        if membership.state is MemberState.UNJOINED or self._has_lost:
            return True
        target = membership.target
        if target is None or target == self._reconciled:
            return False
        return self._is_news(self._known(target)) or self._metadata.version > self._asked_version

    @property
    def _has_lost(self) -> bool:
        return self._membership.generation.owns_nothing and bool(self._subscription.assigned)

    def _known(self, target: TopicIds) -> TopicIds:
        """The part of a target whose topics have names in metadata."""
        return {topic_id: rows for topic_id, rows in target.items() if self._metadata.topic_name(topic_id) is not None}

    def _is_news(self, known: TopicIds) -> bool:
        return known != self._reconciled and bool(known or not self._membership.target)

    # --- flows ---

    def active_group(self) -> Flow:
        membership = self._membership
        while self.is_needed:
            if self._has_lost:
                yield from self._lose()
            elif membership.state is MemberState.UNJOINED:
                yield from self._join()
            elif membership.target is not None:
                known = self._known(membership.target)
                if known.keys() != membership.target.keys():
                    self._asked_version = self._metadata.version
                    self._metadata.request_update()
                if self._is_news(known):
                    yield from self._reconcile(known)

    # --- parts ---

    def _has_left(self) -> None:
        self._reconciled = None

    def _join(self) -> Flow:
        """Begin; what the answer assigns is another flow."""
        membership = self._membership
        if not membership.link.seek(self.now_ms):
            yield Wait(lambda now_ms: membership.link.has_answer)
            return
        if self._subscription.type is SubscriptionType.PATTERN:
            yield from self._fresh_topics()
        self._reconciled = None
        membership.join(self.now_ms)

    def _lose(self) -> Flow:
        owned = self._subscription.assigned
        self._membership.note("the membership ended: all partitions are lost")
        error = yield from self._notify("lost", owned)
        self._give_up(owned)
        if error is not None:
            raise error

    def _reconcile(self, target: TopicIds) -> Flow:
        """Commit, revoke, assign, acknowledge. Stops where the membership ends meanwhile; raises what the listener raised."""
        membership, subscription = self._membership, self._subscription
        incarnation = membership.incarnation

        def is_member() -> bool:
            return incarnation == membership.incarnation and not membership.generation.owns_nothing

        assigned, owned = self._partitions(target), subscription.assigned
        errors: list[BaseException | None] = []
        if assigned != owned or self._reconciled is None:
            revoked = owned - assigned
            # Positions must not move between this commit and the revocation.
            subscription.mark_pending_revocation(revoked)
            if self._settings.auto_commit and owned:
                yield from self._commit_until_done()
            if revoked and is_member():
                errors.append((yield from self._notify("revoked", revoked)))
                self._give_up(revoked)
            # A heartbeat that reported what the member owned before may have given up what it has not added yet.
            if membership.is_reporting:
                yield Wait(lambda now_ms: not (is_member() and membership.is_reporting))
            if is_member():
                target = _without_stale(target, membership.owned, membership.target or {})
                added = (assigned - owned) & self._partitions(target)
                errors.append((yield from self._add(assigned & owned | added, added)))
        if is_member():
            self._reconciled = target
            membership.has_reconciled(target, self.now_ms)
        for raised in errors:
            if raised is not None:
                raise raised

    def _partitions(self, target: TopicIds) -> set[TopicPartition]:
        names = {topic_id: self._metadata.topic_name(topic_id) for topic_id in target}
        return {
            TopicPartition(name, number)
            for topic_id, numbers in target.items()
            if (name := names[topic_id]) is not None
            for number in numbers
        }


def _without_stale(target: TopicIds, owned: TopicIds, newest: TopicIds) -> TopicIds:
    """A target without what the member does not own yet and the newest one lacks. Java's consumer takes that over, too."""
    nothing = frozenset[int]()
    kept = {
        topic_id: numbers & (owned.get(topic_id, nothing) | newest.get(topic_id, nothing))
        for topic_id, numbers in target.items()
    }
    return {topic_id: numbers for topic_id, numbers in kept.items() if numbers}
