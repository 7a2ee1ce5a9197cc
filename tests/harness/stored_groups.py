"""What a group coordinator has stored, and another one that recovers from it as the broker's runner does."""

from __future__ import annotations

from collections.abc import Iterable

from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.records import GenerationFloor, StateRecord, from_row
from broker.cores.groups.step import GroupEffects
from broker.protocol.offsets_topic import OffsetCommitKey, decode_key
from tests.harness.group_core import Pending, store


class StoredGroups:
    """A compacted log of `__consumer_offsets`, and what is stored beside it."""

    def __init__(self) -> None:
        self._rows: dict[bytes, tuple[bytes, int]] = {}
        self._floors: dict[str, int] = {}
        self._pending: Pending = {}

    def keep(self, records: Iterable[StateRecord]) -> None:
        for record in records:
            store(record, self._rows, self._floors, self._pending)

    def recover(self, core: Coordinator, now_ms: int, wall_ms: int) -> GroupEffects:
        """Give a new coordinator all that is stored, also the offsets, which a broker loads at their first use."""
        offsets: dict[str, list[StateRecord]] = {}
        for key, (value, timestamp_ms) in self._rows.items():
            record, name = from_row(key, value, timestamp_ms), decode_key(key)
            assert record is not None
            if isinstance(name, OffsetCommitKey):
                offsets.setdefault(name.group, []).append(record)
            else:
                core.apply(record)
        for group_id, generation in self._floors.items():
            core.apply(GenerationFloor(group_id, generation))
        for pending in self._pending.values():
            core.apply(pending)
        core.expect_offsets(offsets)
        effects = core.resume(now_ms, wall_ms)
        for group_id in core.unloaded_groups():
            core.load(group_id, offsets.get(group_id, ()))
        return effects
