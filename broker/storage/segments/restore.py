"""With accepted losses: restore topics and partitions whose rows the store lost, from their directories.

The files of topics say which topics there were. A directory that is gone belongs to a topic that was deleted, if the
store lost commits.
"""

from __future__ import annotations

import logging
import os

from broker.storage.segments.end_checks import CheckedEnds
from broker.storage.segments.leftovers import noted_deletions
from broker.storage.segments.partition_table import (
    add_partition,
    delete_partitions,
    raise_partition_numbers,
    set_log_start,
)
from broker.storage.segments.pending import DELETED_SUFFIX
from broker.storage.segments.rebuild import revisions
from broker.storage.segments.shared import Shared
from broker.storage.segments.topic_files import TopicDescription, read_topic_file
from broker.storage.store.catalog import Catalog, Topic
from broker.storage.store.database import Store
from broker.storage.store.values import as_int

SKIPPED_PRODUCER_IDS = 10_000

logger = logging.getLogger(__name__)


class Restoration:
    """Brings catalog and partition rows into agreement with the directories of topics."""

    def __init__(self, shared: Shared, catalog: Catalog, ends: CheckedEnds) -> None:
        self._shared = shared
        self._store = shared.store
        self._catalog = catalog
        self._ends = ends
        self._numbers = {(end.topic_id, end.partition): number for number, end in ends.ends.items()}
        # The synced ends are from after the commits that the store lost.
        self._ends_are_newer = ends.newest_commit > shared.store.evidence.stored_seq
        self._names = set(os.listdir(shared.root)) if os.path.isdir(shared.root) else set()

    def run(self) -> None:
        raise_partition_numbers(self._store, max(self._ends.ends, default=0) + 1)
        described = self._described()
        if self._shared.store.evidence.lost_commits:
            self._restore_cluster_id(described)
            for topic in list(self._catalog.topics.values()):
                if not topic.internal and topic.topic_id.hex() not in self._names:
                    self._drop_deleted(topic)
        for description in sorted(described, key=lambda found: found.commit_seq):
            self._restore_topic(description)
        for topic in list(self._catalog.topics.values()):
            if topic.topic_id.hex() in self._names:
                self._restore_partitions(topic)

    def _described(self) -> list[TopicDescription]:
        deleted = noted_deletions(self._store)
        found = [
            read_topic_file(self._shared.files, os.path.join(self._shared.root, name))
            for name in sorted(self._names - deleted)
            if len(name) == 32
        ]
        return [description for description in found if description is not None]

    # -- topics

    def _restore_cluster_id(self, described: list[TopicDescription]) -> None:
        if self._store.is_new and described:
            self._store.set_meta("cluster_id", described[-1].cluster_id)

    def _drop_deleted(self, topic: Topic) -> None:
        """The directory of a topic with partitions is gone, and commits are lost."""
        listed = {number: row for number, row in self._ends.listed.items() if row.topic_id == topic.topic_id}
        was_renamed = topic.topic_id.hex() + DELETED_SUFFIX in self._names
        if not listed and not was_renamed:
            # Nothing was ever written to it.
            return
        if not was_renamed and self._ends_are_newer and any(self._ends.of(number) for number in listed):
            # A deletion clears the synced ends, so the directory is lost.
            return
        self._delete(topic)
        if not was_renamed:
            directory = os.path.join(self._shared.root, topic.topic_id.hex())
            self._store.evidence.lose(
                f"{directory} is missing: a lost commit deleted the topic {topic.name}, or its records are lost",
                accepted=True,
            )

    def _delete(self, topic: Topic) -> None:
        self._catalog.delete(topic.name)
        for number in delete_partitions(self._store, topic.topic_id):
            self._shared.pending.dropped_partitions.append(number)
            del self._ends.listed[number]

    def _restore_topic(self, description: TopicDescription) -> None:
        """Create a topic that the store does not have, or bring an older one up to date."""
        topics, stored_seq = self._catalog.topics, self._store.evidence.stored_seq
        if description.cluster_id != self._store.meta("cluster_id") or description.internal:
            return
        topic = topics.by_id(description.topic_id)
        if topic is None:
            older = topics.get(description.name)
            if older is not None:
                # A lost commit deleted it, and this one took its name.
                self._delete(older)
            self._catalog.create(
                description.name,
                description.partition_count,
                description.configs,
                internal=False,
                topic_id=description.topic_id,
            )
            logger.warning("restored the topic %s from its directory", description.name)
        elif description.commit_seq > stored_seq:
            if description.partition_count > topic.partition_count:
                self._catalog.add_partitions(topic.name, description.partition_count)
            removed = dict.fromkeys(topic.configs.keys() - description.configs.keys())
            self._catalog.alter_topic_configs(topic.name, {**description.configs, **removed})

    # -- partitions

    def _restore_partitions(self, topic: Topic) -> None:
        """Add the rows of partitions that have segment files."""
        known = {row.partition for row in self._ends.listed.values() if row.topic_id == topic.topic_id}
        directory = os.path.join(self._shared.root, topic.topic_id.hex())
        for name in sorted(os.listdir(directory)):
            if not name.isdecimal() or int(name) in known:
                continue
            bases = revisions(os.path.join(directory, name))
            index = int(name)
            if not bases or str(index) != name:
                continue
            if index >= topic.partition_count:
                self._catalog.add_partitions(topic.name, index + 1)
            number = add_partition(self._store, topic.topic_id, index, self._number(topic.topic_id, index))
            if min(bases):
                set_log_start(self._store, number, min(bases))
            self._ends.add(number, topic.topic_id, index)

    def _number(self, topic_id: bytes, index: int) -> int | None:
        """The number that the partition had, if its synced end is there."""
        number = self._numbers.get((topic_id, index))
        return number if number not in self._ends.listed else None


def skip_producer_ids(store: Store) -> None:
    """Lost commits gave out producer ids: do not give them out again."""
    ((seen,),) = store.query("SELECT coalesce(max(producer_id), 0) FROM producers")
    first = max(int(store.meta("next_producer_id") or 0), as_int(seen) + 1) + SKIPPED_PRODUCER_IDS
    store.set_meta("next_producer_id", str(first))
