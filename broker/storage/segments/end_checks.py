"""Checks at the start: the synced ends, the commit marker and the rows of partitions must share one history.

The three are written one after the other, so each that was replaced by an older copy, or lost, is behind another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from broker.light_named_tuples import NamedTuple
from broker.storage.segments.leftovers import noted_deletions
from broker.storage.segments.old_synced_ends import read_old_ends
from broker.storage.segments.shared import Shared
from broker.storage.segments.synced_ends import Head, SyncedEnd
from broker.storage.segments.topic_files import NAME as TOPIC_FILE_NAME
from broker.storage.segments.topic_files import read_topic_file
from broker.storage.store.catalog import Topics
from broker.storage.store.evidence import LOST_WITH_COMMITS
from broker.storage.store.values import as_bytes, as_int

TOPIC_ID_DIGITS = 32
UNKNOWN = "lost records cannot be ruled out"


class Listed(NamedTuple):
    """What the store lists of one partition: its active segment, and whether bytes may follow."""

    topic_id: bytes
    partition: int
    is_beyond_checkpoint: bool
    base_offset: int
    size_bytes: int
    end_offset: int
    has_trailer: bool


def listed_partitions(shared: Shared) -> dict[int, Listed]:
    rows = shared.store.query(
        "SELECT p.partition_id, p.topic_id, p.partition, p.unrecorded, coalesce(max(s.base_offset), 0),"
        " coalesce(s.size_bytes, 0), coalesce(s.end_offset, 0), coalesce(s.has_trailer, 0) FROM partitions AS p"
        " LEFT JOIN segments AS s ON s.partition_id = p.partition_id GROUP BY p.partition_id"
    )
    listed = {}
    for row in rows:
        number, partition, beyond, base_offset, size_bytes, end_offset, trailer = map(as_int, (row[0], *row[2:]))
        listed[number] = Listed(
            as_bytes(row[1]), partition, bool(beyond), base_offset, size_bytes, end_offset, bool(trailer)
        )
    return listed


class CheckedEnds:
    """The synced ends of the last run, compared with the store."""

    def __init__(self, shared: Shared, topics: Topics) -> None:
        self._shared = shared
        self._topics = topics
        self.listed = listed_partitions(shared)
        self.is_old_format = False
        self.are_exact = False  # no acknowledged byte lies beyond an end
        evidence = shared.store.evidence
        known_losses = len(evidence.losses)
        self._exists = os.path.exists(shared.ends.path)
        head = shared.ends.load()
        shared.ends.skip_to_epoch(evidence.ends_epoch)
        self.ends: Mapping[int, SyncedEnd] = shared.ends.at_start
        if shared.store.is_new:
            if evidence.ends_epoch and evidence.lost_commits:
                self._check_head(head)
            self._check_commits(head, evidence.seq)
        else:
            self._check_head(head)
            self._check_commits(head, evidence.seq - 1)
            self._check_topic_files()
            if not self.is_old_format:
                self._check_slots()
        self.are_exact = evidence.is_same_boot and len(evidence.losses) == known_losses
        # What store, commit marker and synced ends say of each other.
        self.has_all_commits = not evidence.lost_commits and not known_losses

    def _lose(self, message: str) -> None:
        evidence = self._shared.store.evidence
        evidence.lose(message, self._shared.accept_loss or not evidence.binding)

    def _check_head(self, head: Head | None) -> None:
        ends, evidence = self._shared.ends, self._shared.store.evidence
        if head is not None:
            if head.epoch < evidence.ends_epoch:
                self._lose(f"{ends.path} is older than the commit marker: {UNKNOWN}")
        elif not self._exists:
            self._lose(f"{ends.path} is missing: {UNKNOWN}")
        elif evidence.ends_epoch == 0:
            self.is_old_format = True
            self.ends = read_old_ends(ends.content(), self.listed)
        else:
            self._lose(f"{ends.path} is damaged: {UNKNOWN}")

    def _check_commits(self, head: Head | None, last: int) -> None:
        """An end, or the head, was written after a commit that the database must have; its last one is `last`."""
        evidence = self._shared.store.evidence
        newest = max((end.commit_seq for end in self.ends.values()), default=0)
        newest = max(newest, head.commit_seq if head is not None else 0)
        if newest > last and self._shared.store.is_new and evidence.lost_commits:
            # This loss is known.
            evidence.skip_to(newest)
        elif newest > last:
            self._lose_commits(self._shared.ends.path, newest, "")

    def _check_topic_files(self) -> None:
        """A directory that the store does not know may be of a topic that a lost commit created."""
        shared = self._shared
        if not os.path.isdir(shared.root):
            return
        known = {topic.topic_id.hex() for topic in self._topics.values()} | noted_deletions(shared.store)
        for name in sorted(set(os.listdir(shared.root)) - known):
            directory = os.path.join(shared.root, name)
            if len(name) == TOPIC_ID_DIGITS and os.path.isdir(directory):
                found = read_topic_file(shared.files, directory)
                # The first flush of a topic writes the file before its commit, which may have failed.
                if found is not None and found.commit_seq > shared.store.evidence.seq + 1:
                    # The synced ends are older, too.
                    self._lose_commits(os.path.join(directory, TOPIC_FILE_NAME), found.commit_seq, f"; {UNKNOWN}")

    def _lose_commits(self, newer: str, seq: int, doubt: str) -> None:
        evidence, path = self._shared.store.evidence, self._shared.store.path
        evidence.lose_commits(
            f"{path} is older than {newer}: acknowledged commits {evidence.stored_seq + 1} to {seq} are lost{doubt};"
            f" {LOST_WITH_COMMITS}",
            self._shared.accept_loss or not evidence.binding,
        )
        evidence.skip_to(seq)

    def _check_slots(self) -> None:
        evidence, ends = self._shared.store.evidence, self._shared.ends
        # A power cut may leave half of a slot, a killed run does not.
        damaged = ends.damaged if evidence.is_same_boot else ()
        missing = [
            self._name(listed)
            for number, listed in self.listed.items()
            if number in damaged or not self._is_of(number, listed)
        ]
        if missing and ends.is_valid:
            more = f" and {len(missing) - 1} more partitions" if len(missing) > 1 else ""
            self._lose(f"{ends.path} does not hold the end of {missing[0]}{more}: {UNKNOWN}")

    def _is_of(self, number: int, listed: Listed) -> bool:
        end = self.ends.get(number)
        return end is not None and (end.topic_id, end.partition) == (listed.topic_id, listed.partition)

    def _name(self, listed: Listed) -> str:
        topic = self._topics.by_id(listed.topic_id)
        return f"{topic.name if topic is not None else listed.topic_id.hex()}-{listed.partition}"

    # -- the result

    def of(self, partition_id: int) -> SyncedEnd | None:
        """The synced end of a partition that the store lists; None if it is missing or names another partition."""
        return self.ends.get(partition_id) if self._is_of(partition_id, self.listed[partition_id]) else None

    def slots_of(self, number: int) -> list[SyncedEnd]:
        """The ends of a partition that name a batch: an attempt that was killed may have replaced one by one that does not."""
        listed = self.listed[number]
        known = [end for end in (self.ends.get(number), *self._shared.ends.replaced_at_start) if end is not None]
        place = listed.topic_id, listed.partition
        return [end for end in known if end.last_size and (end.topic_id, end.partition) == place]

    def add(self, number: int, topic_id: bytes, partition: int) -> None:
        """A partition whose row was lost has a row again."""
        self.listed[number] = Listed(topic_id, partition, True, 0, 0, 0, False)

    @property
    def owners(self) -> dict[tuple[int, int, int, int], tuple[bytes, int]]:
        """Whose batch ends a segment: base offset, end offset, size and CRC of the batch -> topic id, partition."""
        return {
            (end.base_offset, end.end_offset, end.last_size, end.last_crc): (end.topic_id, end.partition)
            # An attempt that was killed may have replaced slots by some that name no batch.
            for end in (*self.ends.values(), *self._shared.ends.replaced_at_start)
        }

    @property
    def newest_commit(self) -> int:
        """The last commit that a synced end names."""
        return max((end.commit_seq for end in self.ends.values()), default=0)

    def to_scan(self) -> list[int]:
        """Partitions with bytes, or an end, beyond their checkpoint."""
        return [number for number, listed in self.listed.items() if listed.is_beyond_checkpoint or self._ahead(number)]

    def _ahead(self, number: int) -> bool:
        end = self.of(number)
        return end is not None and end.end_offset > self.listed[number].end_offset

    def begin_early(self) -> None:
        """A file of an older format cannot take the slots of this one."""
        if self.is_old_format:
            self._shared.ends.replace(self._known())
            self.is_old_format = False

    def begin(self) -> None:
        """All checks passed: bring the file into a state from which this run can continue."""
        ends, evidence = self._shared.ends, self._shared.store.evidence
        self.begin_early()
        for number, end in self._known():
            if ends.at_start.get(number) != end:
                ends.write(number, end)
        ends.clear_damaged()
        evidence.ends_synced(ends.sync(evidence.last_commit))
        if not self._exists:
            self._shared.files.sync_directory(os.path.dirname(ends.path))

    def _known(self) -> Iterator[tuple[int, SyncedEnd]]:
        for number, listed in self.listed.items():
            end = self.of(number)
            if end is None:
                end = SyncedEnd(
                    listed.topic_id, listed.partition, listed.base_offset, listed.size_bytes, listed.end_offset
                )
            yield number, end
