"""Derives events of groups from the generations that a coordinator stores: what each record changes is an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.light_dataclasses import dataclass
from kgctl.model.events import EventRow
from kgctl.model.history import DELETED, EMPTY, REPLACED, STABLE, GroupEventRow
from kgctl.model.watched import Assignment
from kgctl.watch.assignments import partitions_moved


@dataclass(frozen=True, slots=True)
class StoredGeneration:
    """A stored generation: assignments by member id, None if they are not those of consumers. `is_deleted`: a tombstone.

    `members` is None if they are not known: a KIP-848 group has a record for each, and older ones were not read.
    """

    group: str
    timestamp: int
    generation: int | None = None
    members: tuple[str, ...] | None = ()
    assignment: Assignment | None = None
    is_deleted: bool = False


class DerivedEvents:
    """The events between stored generations. The first one of a group shows who is a member, not who joined."""

    def __init__(self) -> None:
        self._known: dict[str, StoredGeneration] = {}

    def add(self, stored: StoredGeneration) -> EventRow | None:
        """The event of the next record of a group; None if it repeats what is known, as after a change of the coordinator."""
        before = self._known.get(stored.group)
        if stored.is_deleted:
            if before is None or before.is_deleted:
                return None
            self._known[stored.group] = stored
            return _row(stored, DELETED, None, before.members)
        self._known[stored.group] = stored
        if stored.members is None or (before is not None and before.members is None):
            is_new_epoch = before is None or before.generation != stored.generation
            return _row(stored, STABLE if stored.members != () else EMPTY, None, None) if is_new_epoch else None
        was: Mapping[str, StoredGeneration] = {} if before is None or before.is_deleted else {"": before}
        if not was:
            is_new = (stored.generation or 0) <= 1
            if is_new and not stored.members:
                return None
            return _row(
                stored, STABLE if stored.members else EMPTY, stored.members if is_new else None, () if is_new else None
            )
        last = was[""]
        were = last.members or ()
        joined = tuple(one for one in stored.members if one not in were)
        left = tuple(one for one in were if one not in stored.members)
        if stored.generation == last.generation:
            return _row(stored, REPLACED, joined, left) if joined or left else None
        if not stored.members and not were:
            return None
        moved = partitions_moved(last.assignment, stored.assignment) if stored.members else None
        return _row(stored, STABLE if stored.members else EMPTY, joined, left, moved)


# Both records of a conversion are written at once.
_CONVERSION_MS = 100


def without_conversions(ordered: Sequence[StoredGeneration]) -> list[StoredGeneration]:
    """The records without deletions that only change the protocol of a group: its records of the other protocol follow."""
    following: dict[str, StoredGeneration] = {}
    kept = []
    for one in reversed(ordered):
        after = following.get(one.group)
        is_kept = after is not None and not after.is_deleted and after.timestamp - one.timestamp <= _CONVERSION_MS
        following[one.group] = one
        if not (one.is_deleted and is_kept):
            kept.append(one)
    return kept[::-1]


def as_history(row: EventRow) -> GroupEventRow:
    """A derived event as one of a history that lacks causes and starts."""
    return GroupEventRow(
        group=row.group,
        timestamp=row.timestamp,
        generation=-1 if row.generation is None else row.generation,
        event=row.event,
        cause=None,
        reason=None,
        prepare_ms=None,
        complete_ms=None,
        members=row.members or 0,
        joined_count=row.joined_count or 0,
        left_count=row.left_count or 0,
        partitions_moved=row.partitions_moved,
        commits_rejected=0,
        joined=row.joined,
        left=row.left,
    )


def _row(
    stored: StoredGeneration,
    event: str,
    joined: tuple[str, ...] | None,
    left: tuple[str, ...] | None,
    moved: int | None = None,
) -> EventRow:
    return EventRow(
        timestamp=stored.timestamp,
        group=stored.group,
        event=event,
        generation=stored.generation,
        members=None if stored.members is None else len(stored.members),
        joined_count=None if joined is None else len(joined),
        left_count=None if left is None else len(left),
        partitions_moved=moved,
        joined=joined or (),
        left=left or (),
        is_derived=True,
    )
