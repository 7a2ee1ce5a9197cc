"""Hard state: groups, pending offsets and generation floors, changed only by applying state records, live and at recovery alike."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from broker.cores.core import BrokenInvariant
from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.group import Group
from broker.cores.groups.pending_offsets import PendingOffsets
from broker.cores.groups.records import (
    GenerationFloor,
    GroupMetadataRecord,
    GroupMetadataTombstone,
    GroupRemoval,
    OffsetCommitRecord,
    OffsetTombstone,
    PendingOffset,
    PendingOffsetsRemoval,
    PendingOffsetSuperseded,
    StateRecord,
    TopicRemoval,
)

Offsets: TypeAlias = dict[str, dict[int, OffsetCommitRecord]]  # by topic and partition
FREED_AT_ONCE = 1_000


class HardState:
    """The groups by id, their pending offsets, and the generation floors.

    `recovering` holds until all stored records were applied. The store may have offsets of a group that is created while it holds,
    and has none of a group that is created later.
    """

    __slots__ = ("discarded", "floors", "groups", "loading", "pending", "recovering")

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.pending = PendingOffsets()
        self.floors: dict[str, int] = {}
        self.loading: dict[str, Offsets] = {}  # the part that was read so far of the offsets that are being loaded
        self.discarded: list[dict[int, OffsetCommitRecord]] = []  # removed offsets, which take long to free
        self.recovering = True

    def apply(self, record: StateRecord) -> None:
        kind = type(record)
        if kind is OffsetCommitRecord:
            assert isinstance(record, OffsetCommitRecord)
            self._set_offset(record)
        elif isinstance(record, PendingOffset):
            self.find_or_create(record.group_id)
            self.pending.put(record)
        elif isinstance(record, PendingOffsetsRemoval):
            self.pending.remove(record)
        elif isinstance(record, PendingOffsetSuperseded):
            self.pending.supersede(record)
        elif isinstance(record, GenerationFloor):
            self._set_floor(record)
        elif isinstance(record, GroupMetadataRecord):
            self._set_metadata(record)
        elif isinstance(record, OffsetTombstone):
            self._remove_offset(record)
        elif isinstance(record, GroupMetadataTombstone):
            self.remove_group(record.group_id, keeps_offsets=record.keeps_offsets)
        elif isinstance(record, TopicRemoval):
            self._remove_topic(record.topic)
        elif isinstance(record, GroupRemoval):
            self._remove_offsets(record.group_id)
        elif not (_consumer_groups().apply(self, record) or _share_groups().apply(self, record)):
            raise BrokenInvariant(f"{kind.__name__} is not a state record of groups")

    def _set_offset(self, record: OffsetCommitRecord) -> None:
        group = self.find_or_create(record.group_id)
        offsets: Offsets | None = group.offsets
        if not group.offsets_loaded and not self.recovering:
            # The end of a transaction needs no load. A load that is under way may have passed this partition.
            offsets = self.loading.get(record.group_id)
        if offsets is not None:
            offsets.setdefault(record.topic, {})[record.partition] = record

    def expect_offsets(self, group_id: str) -> None:
        """Note that the store has offsets of this group, to be loaded before the first request that needs them."""
        self.find_or_create(group_id).offsets_loaded = False

    def begin_load(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if group_id in self.loading or (group is not None and group.offsets_loaded):
            raise BrokenInvariant(f"the offsets of group {group_id} were loaded before")
        if group is not None:
            self.loading[group_id] = {}

    def add_loaded(self, group_id: str, records: Iterable[StateRecord]) -> bool:
        """Take a part of the stored offsets. False: the group has been deleted."""
        offsets = self.loading.get(group_id)
        if offsets is None:
            return False
        for record in records:
            if not isinstance(record, OffsetCommitRecord):
                raise BrokenInvariant(f"{type(record).__name__} is not an offset")
            offsets.setdefault(record.topic, {})[record.partition] = record
        return True

    def end_load(self, group_id: str) -> None:
        offsets = self.loading.pop(group_id, None)
        if offsets is not None:
            group = self.groups[group_id]
            group.offsets, group.offsets_loaded = offsets, True

    def _remove_topic(self, topic: str) -> None:
        for group in self.groups.values():
            if topic in group.offsets:
                self.discarded.append(group.offsets.pop(topic))
        for offsets in self.loading.values():
            if topic in offsets:
                self.discarded.append(offsets.pop(topic))

    def _remove_offsets(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if group is not None:
            self.discarded += group.offsets.values()
            group.offsets = {}

    def free(self) -> bool:
        """Free some of the discarded offsets. True: there are more."""
        for _ in range(FREED_AT_ONCE):
            if not self.discarded:
                return False
            if self.discarded[-1]:
                self.discarded[-1].popitem()
            else:
                self.discarded.pop()
        return bool(self.discarded)

    def find_or_create(self, group_id: str) -> Group:
        """A commit to a group that does not exist creates a simple group: classic, Empty and without a protocol type."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id, offsets_loaded=not self.recovering)
        return group

    def remove_group(self, group_id: str, *, keeps_offsets: bool) -> None:
        """With its offsets, or only what makes it a group of its type."""
        group = self.groups.pop(group_id, None)
        if group is not None and keeps_offsets:
            self.put_group(ClassicGroup(group_id, offsets_loaded=True), group)
        else:
            self.loading.pop(group_id, None)

    def put_group(self, group: Group, former: Group | None) -> None:
        """Add a group, which has the offsets and the pending event of its former self."""
        if former is not None:
            group.inherit(former)
        self.groups[group.group_id] = group

    def _set_metadata(self, record: GroupMetadataRecord) -> None:
        group = self.find_or_create(record.group_id)
        if not isinstance(group, ClassicGroup):
            raise BrokenInvariant(f"group {record.group_id} is not a classic group")
        group.metadata = record

    def _set_floor(self, record: GenerationFloor) -> None:
        if record.generation is None:
            self.floors.pop(record.group_id, None)
        else:
            self.floors[record.group_id] = record.generation

    def _remove_offset(self, record: OffsetTombstone) -> None:
        group = self.groups.get(record.group_id)
        partitions = group.offsets.get(record.topic) if group is not None else None
        if group is None or partitions is None:
            return
        partitions.pop(record.partition, None)
        if not partitions:
            del group.offsets[record.topic]


@cache
def _consumer_groups() -> Any:
    """Loaded at its first use: most brokers have no consumer groups."""
    return import_module("broker.cores.groups.consumer.hard_state")


@cache
def _share_groups() -> Any:
    return import_module("broker.cores.groups.share.hard_state")
