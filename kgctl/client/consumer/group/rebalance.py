"""A rebalance as the application sees it: commit, revoke, join, take over, assign. Kafka's ConsumerCoordinator."""

from __future__ import annotations

from collections.abc import Collection

from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgctl.client.consumer.assignors.assignor import Assignor, RebalanceProtocol, Subscription
from kgctl.client.consumer.assignors.wire import decode_assignment, encode_subscription
from kgctl.client.consumer.group.commits import Commits
from kgctl.client.consumer.group.flows import Flow, GroupFlows, Wait
from kgctl.client.consumer.group.join_attempt import JoinAttempt
from kgctl.client.consumer.group.leader import Assigning, BadAssignment
from kgctl.client.consumer.group.membership import Membership
from kgctl.client.consumer.group.topics import TopicWatch
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.client.consumer.subscription import SubscriptionState, SubscriptionType
from kgctl.client.network.metadata import Metadata
from kgctl.model.topic_partition import TopicPartition


class Rebalance(GroupFlows):
    def __init__(
        self,
        membership: Membership,
        commits: Commits,
        subscription: SubscriptionState,
        topics: TopicWatch,
        metadata: Metadata,
        assignors: Collection[Assignor],
        protocol: RebalanceProtocol,
    ) -> None:
        super().__init__(membership, commits, subscription, topics, metadata)
        self._membership = membership
        self._assignors = {one.name: one for one in assignors}
        self._protocol = protocol
        self.is_leader = False
        self._group_metadata = ConsumerGroupMetadata(
            self._settings.group_id, group_instance_id=self._settings.group_instance_id
        )

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """The generation whose assignment the application has."""
        return self._group_metadata

    @property
    def is_needed(self) -> bool:
        """Whether the group has to be joined, or a join that is under way completed."""
        if not self._subscription.is_auto_assigned:
            return False
        reason = self._topics.rejoin_reason()
        if reason is not None and not self._membership.rejoin_needed:
            self._membership.request_rejoin(*reason)
        return reason is not None or self._membership.rejoin_needed or self._membership.attempt is not None

    # --- what JoinGroup says, and what the leader does ---

    def protocols(self) -> list[JoinGroupRequest.Protocol]:
        self._topics.joined = topics = self._subscription.topics
        rows = []
        for assignor in self._assignors.values():
            subscription = Subscription(
                topics=tuple(topics),
                user_data=assignor.subscription_user_data(topics),
                owned_partitions=tuple(self._subscription.assigned),
                generation_id=self._membership.generation.generation_id,
                rack_id=self._settings.client_rack,
            )
            rows.append(JoinGroupRequest.Protocol(name=assignor.name, metadata=encode_subscription(subscription)))
        return rows

    def start_assigning(self, joined: JoinGroupResponse) -> Assigning:
        assignor = self._assignor(joined.protocol_name)
        assigning = Assigning(joined, assignor, self._topics, self._protocol, self._membership.note)
        self.is_leader = True
        return assigning

    def _assignor(self, name: str | None) -> Assignor:
        try:
            return self._assignors[name or ""]
        except KeyError:
            raise BadAssignment(f"the group chose the assignor {name!r}, which this consumer does not have") from None

    # --- flows ---

    def active_group(self) -> Flow:
        """Join the group until nothing calls for another rebalance."""
        membership = self._membership
        while self.is_needed:
            if not membership.link.seek(self.now_ms):
                yield Wait(lambda now_ms: membership.link.has_answer)
                continue
            if membership.attempt is None and self._subscription.type is SubscriptionType.PATTERN:
                yield from self._fresh_topics()
            if membership.needs_prepare:
                membership.needs_prepare = False
                yield from self._prepare()
            attempt = membership.join(self.now_ms)
            yield Wait(lambda now_ms, attempt=attempt: attempt.is_done)  # type: ignore[misc]
            if attempt is membership.attempt:
                membership.attempt = None
            if attempt.error is not None:
                yield from self._failed(attempt)
            elif attempt.assignment is None or membership.generation.is_reset or membership.stable_generation is None:
                membership.reset(
                    "rebalance failed since the generation ended before it was complete", forget_member_id=True
                )
            else:
                membership.needs_prepare = True
                yield from self._complete(attempt.assignment)

    # --- parts ---

    def _has_left(self) -> None:
        self._topics.forget_assigned()
        self.is_leader = False

    def _failed(self, attempt: JoinAttempt) -> Flow:
        membership, error = self._membership, attempt.error
        assert error is not None
        membership.failed_rebalances += 1
        if not attempt.got_member_id:
            membership.request_rejoin(f"rebalance failed due to {error.name}", f"the rebalance failed: {error}")
        if attempt.may_retry_at_once:
            return
        if not error.retriable:
            raise error
        retry_ms = self.now_ms + self._settings.retry_backoff_ms
        yield Wait(lambda now_ms: now_ms >= retry_ms, retry_ms)

    def _prepare(self) -> Flow:
        """Commit, then revoke what the protocol wants revoked before JoinGroup; or lose everything, if the generation ended."""
        if self._settings.auto_commit:
            if self._protocol is RebalanceProtocol.EAGER:
                # Positions must not move between this commit and the revocation.
                self._subscription.mark_pending_revocation(self._subscription.assigned)
            yield from self._commit_until_done()
        membership, subscription = self._membership, self._subscription
        owned = subscription.assigned
        error: BaseException | None = None
        if membership.generation.owns_nothing:
            if owned:
                membership.note("the membership ended: all partitions are lost")
                error = yield from self._notify("lost", owned)
                self._give_up(owned)
        elif self._protocol is RebalanceProtocol.EAGER:
            error = yield from self._notify("revoked", owned)
            self._give_up(owned)
        elif revoked := {one for one in owned if one.topic not in subscription.topics}:
            error = yield from self._notify("revoked", revoked)
            self._give_up(revoked)
        self.is_leader = False
        subscription.reset_group_subscription()
        if error is not None:
            raise error

    def _complete(self, blob: bytes) -> Flow:
        """Take over an assignment: revoke what is gone, then add what is new."""
        membership, subscription = self._membership, self._subscription
        generation = membership.generation
        if not self.is_leader:
            self._topics.forget_assigned()
        assignor = self._assignor(generation.protocol_name)
        self._group_metadata = self._metadata_of_now()
        assignment = decode_assignment(blob)
        owned, assigned = subscription.assigned, set(assignment.partitions)
        if strangers := subscription.unsubscribed(assigned):
            membership.request_rejoin(
                "received assignment does not match the current subscription",
                f"the assignment has {_listed(strangers)}, which do not match the subscription to {subscription}",
            )
            return
        errors: list[BaseException | None] = []
        if self._protocol is RebalanceProtocol.COOPERATIVE and (revoked := owned - assigned):
            subscription.mark_pending_revocation(revoked)
            errors.append((yield from self._notify("revoked", revoked)))
            membership.request_rejoin(
                "need to revoke partitions and re-join",
                f"revoked {_listed(revoked)}, which others may have after a rejoin",
            )
        self._topics.add_matched({one.topic for one in assigned})
        try:
            assignor.on_assignment(assignment, self._group_metadata)
        except Exception as error:  # noqa: BLE001  of an assignor by the user
            errors.append(error)
        errors.append((yield from self._add(assigned, assigned - owned)))
        for raised in errors:
            if raised is not None:
                raise raised


def _listed(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
