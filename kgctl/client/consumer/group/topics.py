"""The topics of the group as metadata shows them: which match a pattern, and which changes call for a rebalance."""

from __future__ import annotations

from collections.abc import Collection

from broker.light_named_tuples import NamedTuple
from kgctl.client.consumer.assignors.assignor import ClusterView
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.subscription import SubscriptionState, SubscriptionType
from kgctl.client.consumer.wanted_topics import want_topics
from kgctl.client.network.metadata import Metadata
from kgctl.model.topic_partition import TopicPartition


class Snapshot(NamedTuple):
    """For each topic the racks of each partition; the racks are left out if the client has none (KIP-881)."""

    version: int
    topics: dict[str, list[frozenset[str]]]

    def matches(self, other: Snapshot) -> bool:
        return self.version == other.version or self.topics == other.topics


class TopicWatch:
    """`joined` are the topics that this member sent in its last JoinGroup."""

    def __init__(self, subscription: SubscriptionState, metadata: Metadata, settings: GroupSettings) -> None:
        self._subscription = subscription
        self._metadata = metadata
        self._settings = settings
        self._current = Snapshot(-1, {})
        self._assigned: Snapshot | None = None
        # Questions about all topics: from the subscription to a pattern on, and about those of other members.
        self._match_after = 0
        self._group_after = 0
        self._updated_ms = 0
        self.joined: frozenset[str] | None = None

    # --- metadata ---

    def subscribed(self) -> None:
        """The application subscribed, or assigned partitions."""
        want_topics(self._metadata, self._subscription)
        if self._subscription.type is SubscriptionType.PATTERN:
            self._match_after = self._metadata.request_update()

    def fresh_answer(self, now_ms: int) -> int:
        """The answer of metadata to match the pattern with before a rebalance: a new one, unless this one is."""
        is_new = now_ms < self._updated_ms + self._settings.retry_backoff_ms
        if self._metadata.answered < self._match_after or is_new:
            return self._match_after
        return self._metadata.request_update()

    def update(self, now_ms: int) -> None:
        """Look at newer metadata: match the pattern, and note what a rebalance may depend on."""
        if self.is_outdated:
            self._updated_ms = now_ms
            self.refresh()

    def refresh(self) -> None:
        """Look again, because other topics are followed."""
        self._match_pattern()
        self._current = self._snapshot(self._metadata.version)

    @property
    def is_outdated(self) -> bool:
        """Metadata is newer than what `update` saw."""
        return self._metadata.version > self._current.version

    def follow_group(self, topics: Collection[str]) -> None:
        """Watch all these topics."""
        if self._subscription.subscribe_group(topics):
            want_topics(self._metadata, self._subscription)
            if self._subscription.type is SubscriptionType.PATTERN:
                self._group_after = self._metadata.request_update()

    def knows(self, topics: Collection[str]) -> bool:
        """Metadata has all these topics, or says why it has not. An answer about all topics leaves out those that do not exist."""
        metadata = self._metadata
        if metadata.wanted() is None and metadata.answered >= max(self._match_after, self._group_after):
            return True
        return all(
            metadata.partition_count(topic) is not None or metadata.error_of(topic) is not None for topic in topics
        )

    def add_matched(self, topics: Collection[str]) -> None:
        """The leader matched more topics with the pattern: follow its decision."""
        added = set(topics) - (self.joined or frozenset())
        if self._subscription.type is not SubscriptionType.PATTERN or not added:
            return
        self._subscription.subscribe_from_pattern(self._subscription.topics | added)
        self.joined = (self.joined or frozenset()) | added

    def view(self) -> ClusterView:
        """What the assignor is given."""
        counts: dict[str, int] = {}
        racks: dict[TopicPartition, Collection[str]] = {}
        for topic in self._subscription.metadata_topics:
            count = self._metadata.partition_count(topic)
            if count is None:
                continue
            counts[topic] = count
            for number in range(count):
                partition = TopicPartition(topic, number)
                if found := self._racks(partition):
                    racks[partition] = found
        return ClusterView(counts, racks)

    # --- whether to rejoin ---

    def note_assigned(self) -> None:
        """This member leads: the assignment depends on the metadata of now."""
        self._assigned = self._current

    def forget_assigned(self) -> None:
        """Another member leads and watches the metadata."""
        self._assigned = None

    def rejoin_reason(self) -> tuple[str, str] | None:
        """Why the group has to rebalance: for the coordinator, and in full."""
        if self._assigned is not None and not self._assigned.matches(self._current):
            return "cached metadata has changed", f"metadata has changed since the assignment: {self._changed_topics()}"
        now = self._subscription.topics
        if self.joined is not None and self.joined != now:
            before = ", ".join(sorted(self.joined))
            return "subscription has changed", f"the subscription changed from {before} to {', '.join(sorted(now))}"
        return None

    # --- parts ---

    def _changed_topics(self) -> str:
        before, now = self._assigned.topics if self._assigned else {}, self._current.topics
        return ", ".join(sorted(topic for topic in before.keys() | now.keys() if before.get(topic) != now.get(topic)))

    def _match_pattern(self) -> None:
        if self._subscription.type is not SubscriptionType.PATTERN:
            return
        hides_internal = self._settings.exclude_internal_topics
        self._subscription.subscribe_from_pattern(
            topic
            for topic in self._metadata.topics()
            if self._subscription.matches_pattern(topic) and not (hides_internal and self._metadata.is_internal(topic))
        )

    def _snapshot(self, version: int) -> Snapshot:
        topics = {}
        for topic in self._subscription.metadata_topics:
            if (count := self._metadata.partition_count(topic)) is not None:
                with_racks = self._settings.client_rack is not None
                topics[topic] = [
                    frozenset(self._racks(TopicPartition(topic, number))) if with_racks else frozenset[str]()
                    for number in range(count)
                ]
        return Snapshot(version, topics)

    def _racks(self, partition: TopicPartition) -> set[str]:
        nodes = self._metadata.nodes()
        found = (nodes.get(node_id) for node_id in self._metadata.replicas(partition))
        return {node.rack for node in found if node is not None and node.rack}
