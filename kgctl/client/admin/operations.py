"""The operations of the admin client: each is the steps of one query or change, with rows of kgctl.model as the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kgctl.client.admin.group_changes import GroupChanges
from kgctl.client.admin.operation import ADDITION_SECONDS, operation
from kgctl.client.admin.resource_admin import ResourceAdmin
from kgctl.client.admin.transaction_admin import TransactionAdmin
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps, Within, within
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.security.acls.bindings import Binding, Filter
    from broker.security.secret import Secret
    from kgctl.client.admin import history, offsets
    from kgctl.client.admin.group_metadata import GroupFacts
    from kgctl.client.admin.group_records import Offsets, Take
    from kgctl.model.acls import AclChange, AclRow
    from kgctl.model.changes import TopicChange
    from kgctl.model.cluster import ClusterFacts
    from kgctl.model.groups import Committed, GroupDescription, Listing
    from kgctl.model.history import GroupEventRow
    from kgctl.model.lag import LagFacts
    from kgctl.model.topics import TopicConfigRow, TopicPartitionRow, TopicRow
    from kgctl.model.users import UserChange, UserRow
    from kgctl.model.watched_topics import TopicStorage

K = TypeVar("K")
V = TypeVar("V")

# How long to fetch records whose timestamps are wanted.
_RECORDS_SECONDS = 10.0
_RECENT_SECONDS = 1.0


class AdminOperations(GroupChanges, ResourceAdmin, TransactionAdmin):
    """Operations raise a KgctlError when the whole request failed; a part that failed is a row with its error."""

    _bookmark: history.Bookmark | None = None
    _keeps_no_history = False

    # --- topics ---

    @operation
    def list_topics(self, names: Sequence[str] | None = None) -> Steps[list[TopicRow]]:
        from kgctl.client.admin import topics

        return topics.list_topics(self.cluster, names)

    @operation
    def describe_topics(self, names: Sequence[str] | None = None) -> Steps[list[TopicPartitionRow]]:
        from kgctl.client.admin import topics

        return topics.describe_topics(self.cluster, names)

    @operation
    def topic_storage(self) -> Steps[TopicStorage]:
        """What the logs of all topics take. A kind of facts that cannot be read is in `missing`."""
        from kgctl.client.admin import lag_facts, topic_storage
        from kgctl.model.watched_topics import TopicStorage

        missing: dict[str, str] = {}
        partitions = yield from topic_storage.partitions_of(self.cluster)
        sizes = yield from self._read_if_possible(
            "sizes of logs", lag_facts.log_bytes(self.cluster, partitions), missing
        )
        oldest = yield from self._read_if_possible(
            "timestamps of the oldest records", topic_storage.oldest_times(self.cluster, partitions), missing
        )
        topics = sorted({key.topic for key in partitions})
        read = lag_facts.retention(self.cluster, topics)
        retention = yield from self._read_if_possible("retention settings", read, missing)
        return TopicStorage(_wall_ms(), sizes, oldest, retention, missing)

    @operation
    def topic_configs(self, names: Sequence[str], *, all_of_them: bool = False) -> Steps[list[TopicConfigRow]]:
        from kgctl.client.admin import topics

        return topics.topic_configs(self.cluster, names, all_of_them=all_of_them)

    @operation
    def create_topics(
        self,
        names: Sequence[str],
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> Steps[list[TopicChange]]:
        from kgctl.client.admin import topics

        return topics.create_topics(
            self.cluster, names, partitions=partitions, replicas=replicas, configs=configs, note=note
        )

    @operation
    def plan_topic_deletion(self, names: Sequence[str]) -> Steps[list[TopicChange]]:
        from kgctl.client.admin import topics

        return topics.plan_deletion(self.cluster, names)

    @operation
    def delete_topics(self, plan: Sequence[TopicChange]) -> Steps[list[TopicChange]]:
        from kgctl.client.admin import topics

        return topics.delete_topics(self.cluster, plan)

    # --- groups ---

    @operation
    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> Steps[Listing]:
        from kgctl.client.admin import groups

        return groups.list_groups(self.cluster, states, types)

    @operation
    def describe_groups(
        self, names: Sequence[str], *, offsets: bool = True, commit_times: bool = False
    ) -> Steps[list[GroupDescription]]:
        from kgctl.client.admin import groups

        return groups.describe_groups(self.cluster, names, offsets=offsets, commit_times=commit_times)

    @operation
    def group_facts(
        self, found: Sequence[GroupDescription], *, seconds: float, most_bytes: int
    ) -> Steps[tuple[list[GroupDescription], GroupFacts]]:
        """The groups with what `__consumer_offsets` says about them, and what was read.

        Reads at most about this long and this much; groups of kgctl's own broker need no reading.
        """
        from kgctl.client.admin import group_metadata
        from kgctl.client.net.errors import TimedOut

        facts = group_metadata.GroupFacts()
        try:
            steps = group_metadata.read_facts(self.cluster, found, facts, most_bytes)
            yield from within(steps, seconds)
        except TimedOut:
            facts.missing = f"reading __consumer_offsets takes more than {seconds:g} s"
        except KgctlError as error:
            facts.missing = str(error)
        return [group_metadata.with_facts(group, facts) for group in found], facts

    @operation
    def pending_offsets(self, found: Sequence[GroupDescription]) -> Within[list[GroupDescription]]:
        """The groups with the offsets that are pending in open transactions."""
        from kgctl.client.admin import pending_offsets

        steps = pending_offsets.with_pending(self.cluster, found)
        return self.shortly(steps, ADDITION_SECONDS)

    @operation
    def with_recent(
        self, found: Sequence[GroupDescription], since_ms: int, now_ms: int
    ) -> Steps[tuple[list[GroupDescription], str | None]]:
        """The groups with `recent_from`, from one ListOffsets per leader; and why it is missing for some, or None."""
        from kgctl.client.admin import recent_offsets

        steps = recent_offsets.with_recent(self.cluster, found, since_ms, now_ms)
        try:
            groups, left_out = yield from within(steps, _RECENT_SECONDS)
        except KgctlError as error:
            return list(found), str(error)
        return groups, f"{left_out:,} partitions with lag were left out" if left_out else None

    @operation
    def group_history(self, group: str) -> Steps[list[GroupEventRow]]:
        from kgctl.client.admin import history

        return history.group_history(self.cluster, group)

    @operation
    def new_events(self, group: str | None, *, whole_history: bool) -> Steps[tuple[GroupEventRow, ...]]:
        """The events of the group since the last call; all of them with `whole_history`, or after a call for another group.

        None: the events of all groups.
        """
        from kgctl.client.admin import history

        since = None if whole_history else self._bookmark
        events, self._bookmark = yield from history.new_events(self.cluster, group, since)
        return events

    @operation
    def recent_events(self, newest: int) -> Steps[tuple[GroupEventRow, ...] | None]:
        """The events of all groups since the last call, the first time only the newest ones; None on a cluster without a history.

        It asks such a cluster only once.
        """
        from kgctl.client.admin import history
        from kgctl.client.net.errors import Precondition

        if self._keeps_no_history:
            return None
        try:
            steps = history.new_events(self.cluster, None, self._bookmark, newest=newest)
            events, self._bookmark = yield from steps
        except Precondition:
            self._keeps_no_history = True
            return None
        return events

    @operation
    def read_group_records(self, offsets: Offsets | None, take: Take, group: str | None = None) -> Steps[Offsets]:
        """Pass on the records about the group, or about all, that were stored since `offsets`; the next offsets."""
        from kgctl.client.admin import group_records

        return group_records.read_group_records(self.cluster, offsets, take, group)

    @operation
    def cluster_facts(self) -> Steps[ClusterFacts]:
        from kgctl.client.admin import cluster_facts

        return cluster_facts.cluster_facts(self.cluster, _wall_ms())

    # --- users and ACLs; other commands do not load their modules ---

    @operation
    def list_users(self, names: Sequence[str] = ()) -> Steps[list[UserRow]]:
        from kgctl.client.admin import users

        return users.list_users(self.cluster, names)

    @operation
    def set_password(
        self, user: str, mechanism: str, password: Secret, *, iterations: int, salt: bytes
    ) -> Steps[UserChange]:
        from kgctl.client.admin import users

        return users.set_password(self.cluster, user, mechanism, password, iterations=iterations, salt=salt)

    @operation
    def plan_user_deletion(self, names: Sequence[str], mechanism: str | None = None) -> Steps[list[UserChange]]:
        from kgctl.client.admin import users

        return users.plan_deletion(self.cluster, names, mechanism)

    @operation
    def delete_users(self, plan: Sequence[UserChange]) -> Steps[list[UserChange]]:
        from kgctl.client.admin import users

        return users.delete_users(self.cluster, plan)

    @operation
    def list_acls(self, filters: Sequence[Filter]) -> Steps[list[AclRow]]:
        from kgctl.client.admin import acls

        return acls.list_acls(self.cluster, filters)

    @operation
    def plan_acl_addition(self, bindings: Sequence[Binding]) -> Steps[list[AclChange]]:
        from kgctl.client.admin import acls

        return acls.plan_addition(self.cluster, bindings)

    @operation
    def add_acls(self, plan: Sequence[AclChange]) -> Steps[list[AclChange]]:
        from kgctl.client.admin import acls

        return acls.add_acls(self.cluster, plan)

    @operation
    def plan_acl_removal(self, filters: Sequence[Filter]) -> Steps[list[AclChange]]:
        from kgctl.client.admin import acls

        return acls.plan_removal(self.cluster, filters)

    @operation
    def remove_acls(self, plan: Sequence[AclChange]) -> Steps[list[AclChange]]:
        from kgctl.client.admin import acls

        return acls.remove_acls(self.cluster, plan)

    # --- offsets ---

    @operation
    def list_offsets(
        self, wanted: Mapping[TopicPartition, int]
    ) -> Steps[dict[TopicPartition, offsets.OffsetAt | KgctlError]]:
        from kgctl.client.admin import offsets

        return offsets.list_offsets(self.cluster, wanted)

    @operation
    def committed(self, names: Sequence[str]) -> Steps[dict[str, dict[TopicPartition, Committed] | KgctlError]]:
        from kgctl.client.admin import offsets

        return offsets.committed(self.cluster, names)

    @operation
    def lag_facts(self, described: Sequence[GroupDescription]) -> Steps[LagFacts]:
        """Facts about the partitions of these groups. A kind of facts that cannot be read is in `missing`."""
        from kgctl.client.admin import lag_facts
        from kgctl.model.lag import LagFacts

        missing: dict[str, str] = {}

        def read(kind: str, steps: Steps[dict[K, V]]) -> Steps[dict[K, V]]:
            return self._read_if_possible(kind, steps, missing)

        cluster, partitions = self.cluster, lag_facts.partitions_of(described)
        starts = yield from read("log start offsets", lag_facts.log_starts(cluster, partitions))
        positions, left_out = lag_facts.unread_positions(described, starts)
        lagging = sorted({TopicPartition(topic, number) for topic, number, _ in positions})
        topics = [key.topic for key in lagging]
        retention = yield from read("retention settings", lag_facts.retention(cluster, topics))
        limited = [key for key in lagging if (one := retention.get(key.topic)) and one.size_bytes is not None]
        sizes: dict[TopicPartition, int] = {}
        if limited:
            sizes = yield from read("sizes of logs", lag_facts.log_bytes(cluster, limited))
        if not lagging:
            return LagFacts(_wall_ms(), starts, {}, {}, retention, sizes, missing)
        newest = yield from read("newest timestamps", lag_facts.newest_times(cluster, lagging))
        times = yield from read("timestamps of unread records", lag_facts.unread_times(cluster, positions))
        if left_out:
            missing["timestamps of unread records"] = f"{left_out:,} partitions with little lag were left out"
        return LagFacts(_wall_ms(), starts, times, newest, retention, sizes, missing)

    def _read_if_possible(self, kind: str, steps: Steps[dict[K, V]], missing: dict[str, str]) -> Steps[dict[K, V]]:
        """What the steps find within a few seconds; nothing if they fail, with the reason in `missing`."""
        try:
            return (yield from within(steps, _RECORDS_SECONDS))
        except KgctlError as error:
            missing[kind] = str(error)
            return {}


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
