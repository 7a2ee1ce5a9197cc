"""The admin client: each method runs the steps of one query or change and returns rows of kgctl.model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kgctl.client.admin.group_changes import GroupChanges
from kgctl.client.admin.resource_admin import ResourceAdmin
from kgctl.client.admin.session import ADDITION_SECONDS
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.security.acls.bindings import Binding, Filter
    from broker.security.secret import Secret
    from kgctl.client.admin import history, offsets
    from kgctl.client.admin.aborts import HangingTarget
    from kgctl.client.admin.consumer_group_records import ConsumerGroups, Take
    from kgctl.client.admin.group_metadata import GroupFacts
    from kgctl.client.admin.stored_generations import Offsets
    from kgctl.model.acls import AclChange, AclRow
    from kgctl.model.changes import TopicChange
    from kgctl.model.cluster import ClusterFacts
    from kgctl.model.groups import Committed, GroupDescription, Listing
    from kgctl.model.history import GroupEventRow
    from kgctl.model.lag import LagFacts
    from kgctl.model.topics import TopicConfigRow, TopicPartitionRow, TopicRow
    from kgctl.model.transactions import (
        GroupHold,
        HangingTransaction,
        Hold,
        ProducerRow,
        TransactionAbort,
        TransactionListings,
        TransactionPartition,
        TransactionRow,
    )
    from kgctl.model.users import UserChange, UserRow
    from kgctl.model.watched_topics import TopicStorage

K = TypeVar("K")
V = TypeVar("V")

# How long to fetch records whose timestamps are wanted.
_RECORDS_SECONDS = 10.0
_RECENT_SECONDS = 1.0


class Admin(GroupChanges, ResourceAdmin):
    """A client of one cluster, for one thread. The timeout of the settings bounds each method.

    Methods raise a KgctlError when the whole request failed; a part that failed is a row with its error.
    """

    _bookmark: history.Bookmark | None = None
    _keeps_no_history = False

    # --- topics ---

    def list_topics(self, names: Sequence[str] | None = None) -> list[TopicRow]:
        from kgctl.client.admin import topics

        return self.run(topics.list_topics(self.cluster, names))

    def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicPartitionRow]:
        from kgctl.client.admin import topics

        return self.run(topics.describe_topics(self.cluster, names))

    def topic_storage(self) -> TopicStorage:
        """What the logs of all topics take. A kind of facts that cannot be read is in `missing`."""
        from kgctl.client.admin import lag_facts, topic_storage
        from kgctl.model.watched_topics import TopicStorage

        missing: dict[str, str] = {}
        partitions = self.run(topic_storage.partitions_of(self.cluster))
        sizes = self._read_if_possible("sizes of logs", lag_facts.log_bytes(self.cluster, partitions), missing)
        oldest = self._read_if_possible(
            "timestamps of the oldest records", topic_storage.oldest_times(self.cluster, partitions), missing
        )
        topics = sorted({key.topic for key in partitions})
        retention = self._read_if_possible("retention settings", lag_facts.retention(self.cluster, topics), missing)
        return TopicStorage(_wall_ms(), sizes, oldest, retention, missing)

    def topic_configs(self, names: Sequence[str], *, all_of_them: bool = False) -> list[TopicConfigRow]:
        from kgctl.client.admin import topics

        return self.run(topics.topic_configs(self.cluster, names, all_of_them=all_of_them))

    def create_topics(
        self,
        names: Sequence[str],
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> list[TopicChange]:
        from kgctl.client.admin import topics

        return self.run(
            topics.create_topics(
                self.cluster, names, partitions=partitions, replicas=replicas, configs=configs, note=note
            )
        )

    def plan_topic_deletion(self, names: Sequence[str]) -> list[TopicChange]:
        from kgctl.client.admin import topics

        return self.run(topics.plan_deletion(self.cluster, names))

    def delete_topics(self, plan: Sequence[TopicChange]) -> list[TopicChange]:
        from kgctl.client.admin import topics

        return self.run(topics.delete_topics(self.cluster, plan))

    # --- groups ---

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> Listing:
        from kgctl.client.admin import groups

        return self.run(groups.list_groups(self.cluster, states, types))

    def describe_groups(
        self, names: Sequence[str], *, offsets: bool = True, commit_times: bool = False
    ) -> list[GroupDescription]:
        from kgctl.client.admin import groups

        return self.run(groups.describe_groups(self.cluster, names, offsets=offsets, commit_times=commit_times))

    def group_facts(
        self, found: Sequence[GroupDescription], *, seconds: float, most_bytes: int
    ) -> tuple[list[GroupDescription], GroupFacts]:
        """The groups with what `__consumer_offsets` says about them, and what was read.

        Reads at most about this long and this much; groups of kgctl's own broker need no reading.
        """
        from kgctl.client.admin import group_metadata
        from kgctl.client.net.errors import TimedOut

        facts = group_metadata.GroupFacts()
        try:
            steps = group_metadata.read_facts(self.cluster, found, facts, most_bytes)
            self._connector.run(steps, min(self._connector.settings.timeout, seconds))
        except TimedOut:
            facts.missing = f"reading __consumer_offsets takes more than {seconds:g} s"
        except KgctlError as error:
            facts.missing = str(error)
        return [group_metadata.with_facts(group, facts) for group in found], facts

    def pending_offsets(self, found: Sequence[GroupDescription]) -> list[GroupDescription]:
        """The groups with the offsets that are pending in open transactions."""
        from kgctl.client.admin import pending_offsets

        steps = pending_offsets.with_pending(self.cluster, found)
        return self._connector.run(steps, min(self._connector.settings.timeout, ADDITION_SECONDS))

    def with_recent(
        self, found: Sequence[GroupDescription], since_ms: int, now_ms: int
    ) -> tuple[list[GroupDescription], str | None]:
        """The groups with `recent_from`, from one ListOffsets per leader; and why it is missing for some, or None."""
        from kgctl.client.admin import recent_offsets

        steps = recent_offsets.with_recent(self.cluster, found, since_ms, now_ms)
        try:
            groups, left_out = self._connector.run(steps, min(self._connector.settings.timeout, _RECENT_SECONDS))
        except KgctlError as error:
            return list(found), str(error)
        return groups, f"{left_out:,} partitions with lag were left out" if left_out else None

    def group_history(self, group: str) -> list[GroupEventRow]:
        from kgctl.client.admin import history

        return self.run(history.group_history(self.cluster, group))

    def new_events(self, group: str | None, *, whole_history: bool) -> tuple[GroupEventRow, ...]:
        """The events of the group since the last call; all of them with `whole_history`, or after a call for another group.

        None: the events of all groups.
        """
        from kgctl.client.admin import history

        since = None if whole_history else self._bookmark
        events, self._bookmark = self.run(history.new_events(self.cluster, group, since))
        return events

    def recent_events(self, newest: int) -> tuple[GroupEventRow, ...] | None:
        """The events of all groups since the last call, the first time only the newest ones; None on a cluster without a history.

        It asks such a cluster only once.
        """
        from kgctl.client.admin import history
        from kgctl.client.net.errors import Precondition

        if self._keeps_no_history:
            return None
        try:
            events, self._bookmark = self.run(history.new_events(self.cluster, None, self._bookmark, newest=newest))
        except Precondition:
            self._keeps_no_history = True
            return None
        return events

    def read_generations(self, offsets: Offsets | None, newer: ConsumerGroups, take: Take) -> Offsets:
        """Pass on the generations of groups that were stored since `offsets`; the next offsets."""
        from kgctl.client.admin import stored_generations

        return self.run(stored_generations.read_generations(self.cluster, offsets, newer, take))

    def cluster_facts(self) -> ClusterFacts:
        from kgctl.client.admin import cluster_facts

        return self.run(cluster_facts.cluster_facts(self.cluster, _wall_ms()))

    # --- users and ACLs; other commands do not load their modules ---

    def list_users(self, names: Sequence[str] = ()) -> list[UserRow]:
        from kgctl.client.admin import users

        return self.run(users.list_users(self.cluster, names))

    def set_password(self, user: str, mechanism: str, password: Secret, *, iterations: int, salt: bytes) -> UserChange:
        from kgctl.client.admin import users

        return self.run(users.set_password(self.cluster, user, mechanism, password, iterations=iterations, salt=salt))

    def plan_user_deletion(self, names: Sequence[str], mechanism: str | None = None) -> list[UserChange]:
        from kgctl.client.admin import users

        return self.run(users.plan_deletion(self.cluster, names, mechanism))

    def delete_users(self, plan: Sequence[UserChange]) -> list[UserChange]:
        from kgctl.client.admin import users

        return self.run(users.delete_users(self.cluster, plan))

    def list_acls(self, filters: Sequence[Filter]) -> list[AclRow]:
        from kgctl.client.admin import acls

        return self.run(acls.list_acls(self.cluster, filters))

    def plan_acl_addition(self, bindings: Sequence[Binding]) -> list[AclChange]:
        from kgctl.client.admin import acls

        return self.run(acls.plan_addition(self.cluster, bindings))

    def add_acls(self, plan: Sequence[AclChange]) -> list[AclChange]:
        from kgctl.client.admin import acls

        return self.run(acls.add_acls(self.cluster, plan))

    def plan_acl_removal(self, filters: Sequence[Filter]) -> list[AclChange]:
        from kgctl.client.admin import acls

        return self.run(acls.plan_removal(self.cluster, filters))

    def remove_acls(self, plan: Sequence[AclChange]) -> list[AclChange]:
        from kgctl.client.admin import acls

        return self.run(acls.remove_acls(self.cluster, plan))

    # --- transactions ---

    def list_transactions(
        self,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        older_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> TransactionListings:
        from kgctl.client.admin import transactions

        return self.run(
            transactions.list_with_ages(self.cluster, _wall_ms(), states, producer_ids, older_than_ms, pattern)
        )

    def describe_transactions(self, names: Sequence[str]) -> list[TransactionRow]:
        from kgctl.client.admin import transactions

        return self.run(transactions.describe_transactions(self.cluster, names, _wall_ms()))

    def transaction_partitions(self, rows: Sequence[TransactionRow]) -> list[TransactionPartition]:
        from kgctl.client.admin import producers

        return self.run(producers.transaction_partitions(self.cluster, rows))

    def describe_producers(
        self, partitions: Sequence[TopicPartition], broker_id: int | None = None
    ) -> list[ProducerRow]:
        from kgctl.client.admin import producers

        return self.run(producers.named_producers(self.cluster, partitions, broker_id))

    def holds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Hold]:
        from kgctl.client.admin import producers

        return self.run(producers.holds(self.cluster, partitions, _wall_ms()))

    def group_holds(self, groups: Sequence[GroupDescription]) -> list[GroupHold]:
        from kgctl.client.admin import producers

        steps = producers.group_holds(self.cluster, groups, _wall_ms())
        return self._connector.run(steps, min(self._connector.settings.timeout, ADDITION_SECONDS))

    def find_hanging_transactions(
        self,
        older_than_ms: int,
        topics: Sequence[str] | None = None,
        partitions: Iterable[int] | None = None,
        broker_id: int | None = None,
    ) -> list[HangingTransaction]:
        from kgctl.client.admin import aborts

        return self.run(aborts.find_hanging(self.cluster, topics, partitions, broker_id, older_than_ms, _wall_ms()))

    def plan_fencing(self, names: Sequence[str]) -> list[TransactionAbort]:
        from kgctl.client.admin import aborts

        return self.run(aborts.plan_fencing(self.cluster, names, _wall_ms()))

    def fence(self, plan: Sequence[TransactionAbort]) -> list[TransactionAbort]:
        from kgctl.client.admin import aborts

        return self.run(aborts.fence(self.cluster, plan))

    def plan_abort_marker(self, target: HangingTarget, *, force: bool = False) -> TransactionAbort:
        from kgctl.client.admin import aborts

        return self.run(aborts.plan_marker(self.cluster, target, _wall_ms(), force=force))

    def write_abort_marker(self, row: TransactionAbort) -> TransactionAbort:
        from kgctl.client.admin import aborts

        return self.run(aborts.write_marker(self.cluster, row))

    # --- offsets ---

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, offsets.OffsetAt | KgctlError]:
        from kgctl.client.admin import offsets

        return self.run(offsets.list_offsets(self.cluster, wanted))

    def committed(self, names: Sequence[str]) -> dict[str, dict[TopicPartition, Committed] | KgctlError]:
        from kgctl.client.admin import offsets

        return self.run(offsets.committed(self.cluster, names))

    def lag_facts(self, described: Sequence[GroupDescription]) -> LagFacts:
        """Facts about the partitions of these groups. A kind of facts that cannot be read is in `missing`."""
        from kgctl.client.admin import lag_facts
        from kgctl.model.lag import LagFacts

        missing: dict[str, str] = {}

        def read(kind: str, steps: Steps[dict[K, V]]) -> dict[K, V]:
            return self._read_if_possible(kind, steps, missing)

        partitions = lag_facts.partitions_of(described)
        starts = read("log start offsets", lag_facts.log_starts(self.cluster, partitions))
        positions, left_out = lag_facts.unread_positions(described, starts)
        lagging = sorted({TopicPartition(topic, number) for topic, number, _ in positions})
        retention = read("retention settings", lag_facts.retention(self.cluster, [key.topic for key in lagging]))
        limited = [key for key in lagging if (one := retention.get(key.topic)) and one.size_bytes is not None]
        sizes = read("sizes of logs", lag_facts.log_bytes(self.cluster, limited)) if limited else {}
        newest = read("newest timestamps", lag_facts.newest_times(self.cluster, lagging)) if lagging else {}
        times = read("timestamps of unread records", lag_facts.unread_times(self.cluster, positions)) if lagging else {}
        if left_out:
            missing["timestamps of unread records"] = f"{left_out:,} partitions with little lag were left out"
        return LagFacts(_wall_ms(), starts, times, newest, retention, sizes, missing)

    def _read_if_possible(self, kind: str, steps: Steps[dict[K, V]], missing: dict[str, str]) -> dict[K, V]:
        """What the steps find within a few seconds; nothing if they fail, with the reason in `missing`."""
        try:
            return self._connector.run(steps, min(self._connector.settings.timeout, _RECORDS_SECONDS))
        except KgctlError as error:
            missing[kind] = str(error)
            return {}


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
