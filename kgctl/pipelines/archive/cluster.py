"""What an archive asks the cluster: facts of topics, ends of logs, committed offsets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self, TypeVar

from kgctl.client.admin.admin import Admin
from kgctl.client.admin.epoch_ends import epoch_ends
from kgctl.client.admin.group_states import cluster_id, stored_offsets, with_logs
from kgctl.client.admin.groups import list_groups
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, committed, list_offsets
from kgctl.client.admin.stored_topics import stored_topics
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, NotFound, TimedOut
from kgctl.client.net.steps import Steps
from kgctl.model.groups import CLASSIC
from kgctl.model.items import StoredTopic
from kgctl.model.plans import StoredGroup
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import GroupOffset, GroupsSnapshot, TopicFacts
from kgctl.pipelines.archive.planning import Log
from kgctl.pipelines.source import connector
from kgctl.pipelines.spark.failures import Interrupted

T = TypeVar("T")
_PAUSE_S = 0.5


class ArchivedCluster:
    """Asks over connections that stay open, again while a broker restarts. For one thread. Raises KgctlError.

    `max_outage_s`: how long a cluster that has answered before may be away. `on_outage` is called once in each outage.
    """

    def __init__(
        self,
        connection: ConnectionSettings,
        *,
        committed_only: bool,
        stop: threading.Event,
        max_outage_s: float = 120.0,
        on_outage: Callable[[KgctlError], None] = lambda _: None,
    ) -> None:
        self._admin = Admin(connection)
        self._committed_only = committed_only
        self._stop = stop
        self._max_outage_s, self._on_outage = max_outage_s, on_outage
        self._has_answered = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._admin.close()

    def id(self) -> str:
        return self._ask(cluster_id)

    def topics(self, names: Sequence[str]) -> list[TopicFacts]:
        """Raises NotFound if one does not exist."""
        return self._ask(lambda cluster: _topics(cluster, names))

    def all_topics(self) -> list[str]:
        """The names of all topics, except the cluster's own."""
        return self._ask(_all_topics)

    def logs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Log]:
        wanted = list(partitions)
        # The ends first: a log that grows meanwhile is read with the next commit.
        ends = self._offsets(dict.fromkeys(wanted, LATEST))
        starts = self._offsets(dict.fromkeys(wanted, EARLIEST))
        return {one: Log(starts[one].offset, ends[one].offset, ends[one].leader_epoch) for one in wanted}

    def at_time(
        self, partitions: Iterable[TopicPartition], time_ms: int, logs: Mapping[TopicPartition, Log]
    ) -> dict[TopicPartition, int]:
        """The first offset at or after a time, or the end of the log."""
        found = self._offsets(dict.fromkeys(partitions, time_ms))
        return {one: logs[one].end if at.offset < 0 else min(at.offset, logs[one].end) for one, at in found.items()}

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The end of each leader epoch; without those that the brokers do not say."""
        found = self._ask(lambda cluster: epoch_ends(cluster, epochs)) if epochs else {}
        return {one: end for one, end in found.items() if not isinstance(end, KgctlError)}

    def groups(self, topics: Iterable[str]) -> GroupsSnapshot:
        """The committed offsets of all groups in these topics."""
        return self._ask(lambda cluster: groups_snapshot(cluster, frozenset(topics)))

    def _offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAt]:
        return self._ask(lambda cluster: _all_offsets(cluster, wanted, self._committed_only))

    def _ask(self, steps: Callable[[Cluster], Steps[T]]) -> T:
        give_up_at = time.monotonic() + (self._max_outage_s if self._has_answered else 0.0)
        is_away = False
        while True:
            try:
                answer = self._admin.run(steps(self._admin.cluster))
            except KgctlError as error:
                if not (error.retriable or isinstance(error, TimedOut)) or time.monotonic() > give_up_at:
                    raise
                if not is_away:
                    is_away = True
                    self._on_outage(error)
                if self._stop.wait(_PAUSE_S):
                    raise Interrupted from None
            else:
                self._has_answered = True
                return answer


def groups_snapshot(cluster: Cluster, topics: frozenset[str]) -> Steps[GroupsSnapshot]:
    """Raises the error of a group whose offsets cannot be read: a snapshot without it would look complete."""
    taken_ms = time.time_ns() // 1_000_000
    listing = yield from list_groups(cluster)
    for error in listing.errors:
        raise KgctlError(f"the groups of a broker are not known: {error.message}")
    types = {group.group: group.type or CLASSIC for group in listing.groups}
    found = yield from committed(cluster, sorted(types))
    groups = []
    for name, commits in found.items():
        if isinstance(commits, KgctlError):
            if isinstance(commits, NotFound):
                continue
            raise commits
        offsets = tuple(one for one in stored_offsets(commits) if one.topic in topics)
        if offsets:
            groups.append(StoredGroup(name, None, offsets=offsets))
    described = yield from with_logs(cluster, groups)
    return GroupsSnapshot(
        taken_ms,
        tuple(
            GroupOffset(
                group=group.group,
                topic=one.topic,
                partition=one.partition,
                offset=one.offset,
                leader_epoch=-1 if one.leader_epoch is None else one.leader_epoch,
                metadata=one.metadata or "",
                timestamp_ms=one.timestamp,
                log_start=one.log_start,
                log_end=one.log_end,
                type=types[group.group],
            )
            for group in sorted(described, key=lambda group: group.group)
            for one in group.offsets
        ),
    )


def _topics(cluster: Cluster, names: Sequence[str]) -> Steps[list[TopicFacts]]:
    found = yield from stored_topics(cluster, names)
    facts = []
    for name in names:
        topic = found.get(name)
        if isinstance(topic, KgctlError):
            raise topic
        if topic is None:
            raise NotFound(f"topic {name!r} does not exist")
        facts.append(_facts(topic))
    return facts


def _all_topics(cluster: Cluster) -> Steps[list[str]]:
    answer = yield from cluster.metadata(None)
    own = connector.INTERNAL_TOPICS
    return sorted(row.name for row in answer.topics if row.name and not row.is_internal and row.name not in own)


def _facts(topic: StoredTopic) -> TopicFacts:
    configs = {one.name: one.value for one in topic.configs or ()}
    return TopicFacts(topic.topic, topic.topic_id or "", topic.partitions, topic.replicas, configs)


def _all_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], committed_only: bool
) -> Steps[dict[TopicPartition, OffsetAt]]:
    answers = yield from list_offsets(cluster, wanted, committed_only=committed_only)
    found = {}
    for partition, answer in answers.items():
        if isinstance(answer, KgctlError):
            raise answer
        found[partition] = answer
    return found
