"""Derives events of groups from the records that coordinators store in __consumer_offsets, for clusters without a history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from broker.light_dataclasses import replace
from kgctl.client.admin.group_records import CLASSIC, GroupRecord, Offsets
from kgctl.model.groups import TopicPartitions
from kgctl.model.history import GroupEventRow, MemberClient
from kgctl.watch.classic_generations import StoredGeneration, deletion, event_between, generation_of
from kgctl.watch.newer_groups import KINDS, NewerGroup

# All records of a conversion are written at once.
CONVERSION_MS = 100


class DerivedEvents:
    """The events of all groups in the records of several readings. `offsets` is how far they went."""

    def __init__(self) -> None:
        self.offsets: Offsets | None = None
        self._groups: dict[str, DerivedGroup] = {}
        self._rows: list[GroupEventRow] = []

    def take(self, record: GroupRecord, is_whole: bool) -> None:
        """The next record of a group. `is_whole`: the reading began at the start of its partition."""
        group = self._groups.get(record.group)
        if group is None:
            group = self._groups[record.group] = DerivedGroup(is_whole=is_whole)
        self._rows += group.add(record)

    def rows(self) -> list[GroupEventRow]:
        """The events since the last call, oldest first."""
        for group in self._groups.values():
            self._rows += group.rest()
        found, self._rows = sorted(self._rows, key=lambda row: row.timestamp), []
        return found


class DerivedGroup:
    """One group, which may change its type: it then ends as a group of one type and begins as one of another in the same moment."""

    def __init__(self, *, is_whole: bool) -> None:
        self._is_whole, self._is_new = is_whole, False
        self._classic: StoredGeneration | None = None
        self._newer: NewerGroup | None = None
        self._ended: GroupEventRow | None = None  # its deletion, unless it only changes its type
        self._former: StoredGeneration | None = None  # what the group was before it ended

    def add(self, record: GroupRecord) -> Iterator[GroupEventRow]:
        """The events that the next record of the group shows."""
        if self._ended is not None:
            is_conversion = record.value is not None and record.timestamp - self._ended.timestamp <= CONVERSION_MS
            if not is_conversion:
                yield from self.rest()
            self._ended = None
        if record.kind == CLASSIC:
            yield from self._add_classic(record)
        elif record.kind in KINDS:
            yield from self._add_newer(record)

    def rest(self) -> Iterator[GroupEventRow]:
        """The deletion of the group, if nothing follows it."""
        if self._ended is not None:
            yield self._ended
            self._ended = self._former = None

    def _add_classic(self, record: GroupRecord) -> Iterator[GroupEventRow]:
        now = generation_of(record)
        if now is None:
            if self._classic is not None:
                self._ended, self._former = deletion(self._classic, record.timestamp), self._classic
            self._classic, self._is_new = None, True
            return
        former, self._former = self._former, None
        if former is not None:
            # The members that stay have what they had; a rebalance follows, after which others have joined or left.
            self._classic = replace(former, generation=now.generation)
            return
        row, self._classic = event_between(self._classic, now), now
        if row is not None:
            yield row

    def _add_newer(self, record: GroupRecord) -> Iterator[GroupEventRow]:
        group = self._newer
        if group is None:
            if record.value is None:
                return
            group = self._newer = NewerGroup(
                record.group, KINDS[record.kind], is_whole=self._is_whole, is_new=self._is_new
            )
            if self._former is not None:
                group.former = {one: (client.client_id, client.host) for one, client in self._former.members.items()}
            self._classic = self._former = None
        rows = list(group.add(record))
        if group.is_removed:
            self._former = _as_classic(group, record.timestamp)
            self._newer, self._is_new = None, True
            self._ended = next(iter(rows), None)
            return
        yield from rows


def _as_classic(group: NewerGroup, timestamp: int) -> StoredGeneration | None:
    """The group after its last rebalance; topics have other names in a classic group."""
    if not group.is_whole or group.epoch is None:
        return None
    members = {name: MemberClient(*client) for name, client in (group.former or {}).items()}
    return StoredGeneration(group.group, timestamp, group.epoch, timestamp, members)


def with_names(row: GroupEventRow, names: Mapping[str, str]) -> GroupEventRow:
    """The event with the names of topics in its assignment, by their ids; without the assignment if a topic does not exist any more."""
    if row.assignment is None or not row.counts_epochs:
        return row
    topics = {entry.topic for owned in row.assignment.values() for entry in owned}
    if not topics <= names.keys():
        return replace(row, assignment=None)
    return replace(
        row,
        assignment={
            member: tuple(TopicPartitions(names[entry.topic], entry.partitions) for entry in owned)
            for member, owned in row.assignment.items()
        },
    )
