"""Hard state: the one place where records become groups and offsets, live and at recovery alike."""

from __future__ import annotations

from broker.cores.core import BrokenInvariant
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
    """The groups by id, and the generation floors.

    `recovering` until all stored records were applied: of a group that is made then, offsets may still lie in the store; of one
    that is made later, none do.
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
            # A commit to a group that nobody has joined makes a simple group: Empty, without a protocol type.
            offsets = self._group(record.group_id).offsets
            offsets.setdefault(record.topic, {})[record.partition] = record
        elif isinstance(record, GenerationFloor):
            self._set_floor(record)
        elif isinstance(record, GroupMetadataRecord):
            self._group(record.group_id).metadata = record
        elif isinstance(record, OffsetTombstone):
            self._remove_offset(record)
        elif isinstance(record, GroupMetadataTombstone):
            self.groups.pop(record.group_id, None)
        else:
            raise BrokenInvariant(f"{kind.__name__} is not a record of groups")

    def expect_offsets(self, group_id: str) -> None:
        """The store holds offsets of this group, which are to be loaded before the first request that needs them."""
        group = self._group(group_id)
        group.offsets_loaded = False

    def unload(self, group: Group) -> None:
        """Forget the offsets of a group; the store still has them."""
        group.offsets = {}
        group.offsets_loaded = False

    def _group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, offsets_loaded=not self.recovering)
        return group

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
