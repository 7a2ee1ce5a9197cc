"""Hard state: the groups and generation floors, changed only by applying state records, live and at recovery alike."""

from __future__ import annotations

from broker.cores.core import BrokenInvariant
from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.group import Group
from broker.cores.groups.records import (
    GenerationFloor,
    GroupMetadataRecord,
    GroupMetadataTombstone,
    OffsetCommitRecord,
    OffsetTombstone,
    StateRecord,
)


class HardState:
    """The groups by id and the generation floors.

    `recovering` holds until all stored records were applied. The store may have offsets of a group that is created while it holds,
    and has none of a group that is created later.
    """

    __slots__ = ("floors", "groups", "recovering")

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.floors: dict[str, int] = {}
        self.recovering = True

    def apply(self, record: StateRecord) -> None:
        kind = type(record)
        if kind is OffsetCommitRecord:
            assert isinstance(record, OffsetCommitRecord)
            offsets = self._find_or_create(record.group_id).offsets
            offsets.setdefault(record.topic, {})[record.partition] = record
        elif isinstance(record, GenerationFloor):
            self._set_floor(record)
        elif isinstance(record, GroupMetadataRecord):
            self._set_metadata(record)
        elif isinstance(record, OffsetTombstone):
            self._remove_offset(record)
        elif isinstance(record, GroupMetadataTombstone):
            self.groups.pop(record.group_id, None)
        else:
            raise BrokenInvariant(f"{kind.__name__} is not a state record of groups")

    def expect_offsets(self, group_id: str) -> None:
        """Note that the store has offsets of this group, to be loaded before the first request that needs them."""
        self._find_or_create(group_id).offsets_loaded = False

    def unload(self, group: Group) -> None:
        """Drop a group's offsets from memory; the store still has them."""
        group.offsets = {}
        group.offsets_loaded = False

    def _find_or_create(self, group_id: str) -> Group:
        """A commit to a group that does not exist creates a simple group: classic, Empty and without a protocol type."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id, offsets_loaded=not self.recovering)
        return group

    def _set_metadata(self, record: GroupMetadataRecord) -> None:
        group = self._find_or_create(record.group_id)
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
