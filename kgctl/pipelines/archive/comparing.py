"""Compares an archive with the topics of a cluster, record by record."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from kgctl.client.admin.admin import Admin
from kgctl.client.admin.stored_topics import stored_topics
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import BrokerError, KgctlError, Precondition
from kgctl.model.pipelines import ArchiveFindingRow
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.archive.replayed import ReplayedPartition, Replays
from kgctl.pipelines.archive.side_by_side import (
    DIFFERENT,
    EXTRA,
    LOST,
    MISSING_TOPIC,
    OTHER_TOPIC,
    SHORT_LOG,
    Partition,
)
from kgctl.pipelines.archive.verifying import CONTENT, finding

NOT_COMPARED, NO_REPLAY = "not compared", "no replay"
# What may come from other offsets than expected.
DIFFERENCES = (LOST, DIFFERENT, EXTRA, SHORT_LOG)


class NotCompared(Precondition):
    """Some topics cannot be compared. Findings say which; the message is the reason of the first."""


def compare(
    archive: Archive,
    connection: ConnectionSettings,
    state: Path | None = None,
    damaged: Collection[TopicPartition] = (),
) -> Iterator[ArchiveFindingRow]:
    """Findings for each partition of the archive. Raises KgctlError if the cluster cannot be asked or read, and NotCompared
    after all findings if there are topics that cannot be compared.

    On another cluster, what a replay of the archive has written is where the replay says; `state` is its folder. Without a
    replay, records have the offsets of the archive. Records that retention or compaction has removed since are information,
    not a fault. Partitions that are `damaged` are not compared.
    """
    with Admin(connection) as admin:
        found = admin.run(stored_topics(admin.cluster, sorted(archive.topics)))
        replays = Replays(archive, state, admin, found)
        is_same_cluster = admin.cluster_id() == archive.cluster_id
        refused: KgctlError | None = None
        for name, facts in archive.topics.items():
            topic = found.get(name)
            if topic is None:
                yield _of_topic(MISSING_TOPIC, name, "the topic does not exist on the cluster")
                continue
            if isinstance(topic, KgctlError):
                refused = refused or topic
                yield _not_compared(name, topic)
                continue
            if is_same_cluster and facts.id and topic.topic_id and topic.topic_id != facts.id:
                yield _of_topic(OTHER_TOPIC, name, "the topic was deleted and created again since it was archived")
                continue
            try:
                replay = None if is_same_cluster else replays.of(name)
            except (Precondition, BrokerError) as error:
                refused = refused or error
                yield _not_compared(name, error)
                continue
            differs = False
            for partition in [one for one in archive.partitions if one.topic == name]:
                if partition in damaged:
                    detail = "the files of this partition are damaged"
                    yield replace(finding(NOT_COMPARED, detail, partition), ok=None)
                    continue
                where = archive, partition, topic, connection, admin
                compared = Partition(*where) if replay is None else ReplayedPartition(*where, replay)
                for one in _findings(compared, partition):
                    differs = differs or one.finding in DIFFERENCES
                    yield one
            if differs and replay is None and not is_same_cluster:
                detail = f"{replays.folder} has no replay of this topic, so its offsets should be those of the archive"
                yield replace(_of_topic(NO_REPLAY, name, detail), ok=None)
        if refused is not None:
            raise NotCompared(str(refused))


def _not_compared(topic: str, error: KgctlError) -> ArchiveFindingRow:
    return replace(_of_topic(NOT_COMPARED, topic, str(error)), ok=None)


def _of_topic(name: str, topic: str, detail: str) -> ArchiveFindingRow:
    return replace(finding(name, detail), topic=topic)


def _findings(compared: Partition, partition: TopicPartition) -> Iterator[ArchiveFindingRow]:
    try:
        yield from compared.findings()
    except (OSError, pa.ArrowException) as error:
        # A file that was good when it was checked.
        yield finding(CONTENT, f"a file cannot be read: {str(error).splitlines()[0]}", partition)
