"""Compares two assignments: which partitions each member kept, gained and lost, and which have no owner or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.light_dataclasses import dataclass, field
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Assignment
from kgctl.watch.figures import counted

Owners = Mapping[TopicPartition, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Moves:
    """The comparison. Each of `partitions` is in exactly one of stay, moved, new, unassigned, doubled.

    stay: one owner, the same as before. moved: one owner, another one than before. new: one owner, none before.
    unassigned: no owner. doubled: several owners. Without an assignment before, all partitions with one owner are in stay.
    `owners_before` and `owners_after` leave out partitions without an owner.
    """

    members: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]
    owners_before: Owners | None
    owners_after: Owners
    joined: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    stay: frozenset[TopicPartition] = frozenset()
    moved: frozenset[TopicPartition] = frozenset()
    new: frozenset[TopicPartition] = frozenset()
    unassigned: frozenset[TopicPartition] = frozenset()
    doubled: frozenset[TopicPartition] = frozenset()
    kept: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    gained: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    lost: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)

    @property
    def stickiness(self) -> int | None:
        """The percentage of previously owned partitions that stay, rounded down; None if there were none."""
        return 100 * len(self.stay) // len(self.owners_before) if self.owners_before else None


def moves(after: Assignment, before: Assignment | None = None, partitions: Iterable[TopicPartition] = ()) -> Moves:
    """Compare two assignments. `partitions` adds partitions that the group reads and no member owns or owned."""
    has, had = _by_member(after), None if before is None else _by_member(before)
    owners_after, owners_before = _owners(has), None if had is None else _owners(had)
    every = sorted({*partitions, *owners_after, *(owners_before or ())})
    members = tuple(sorted({*has, *(had or ())}))
    places: dict[str, set[TopicPartition]] = {name: set() for name in ("stay", "moved", "new", "unassigned", "doubled")}
    for partition in every:
        now = owners_after.get(partition, frozenset())
        was = now if owners_before is None else owners_before.get(partition, frozenset())
        places[_fate(now, was)].add(partition)
    none: frozenset[TopicPartition] = frozenset()
    was_of = has if had is None else had
    return Moves(
        members=members,
        partitions=tuple(every),
        owners_before=owners_before,
        owners_after=owners_after,
        joined=frozenset(has.keys() - was_of.keys()),
        left=frozenset(was_of.keys() - has.keys()),
        kept={member: has.get(member, none) & was_of.get(member, none) for member in members},
        gained={member: has.get(member, none) - was_of.get(member, none) for member in members},
        lost={member: was_of.get(member, none) - has.get(member, none) for member in members},
        **{name: frozenset(found) for name, found in places.items()},
    )


def in_words(change: Moves) -> str:
    """One line: "12 partitions: 9 stay, 2 move, 1 unassigned; stickiness 82 %"."""
    total = counted(len(change.partitions), "partition")
    members = len(change.members) - len(change.left)
    if change.owners_before is None:
        parts = [f"{len(change.stay):,} assigned to {counted(members, 'member')}"] if change.stay or members else []
    else:
        parts = [
            f"{len(found):,} {word}{'s' if len(found) == 1 and is_verb else ''}"
            for found, word, is_verb in (
                (change.stay, "stay", True),
                (change.moved, "move", True),
                (change.new, "new", False),
            )
            if found or word != "new"
        ]
    parts += [f"{len(change.unassigned):,} unassigned"] if change.unassigned else []
    parts += [f"{len(change.doubled):,} twice"] if change.doubled else []
    line = f"{total}: {', '.join(parts)}" if parts else total
    return line if change.stickiness is None else f"{line}; stickiness {change.stickiness} %"


def _fate(now: frozenset[str], was: frozenset[str]) -> str:
    if len(now) > 1:
        return "doubled"
    if not now:
        return "unassigned"
    if not was:
        return "new"
    return "stay" if now <= was else "moved"


def _by_member(assignment: Assignment) -> dict[str, frozenset[TopicPartition]]:
    return {
        member: frozenset(TopicPartition(entry.topic, number) for entry in entries for number in entry.partitions)
        for member, entries in assignment.items()
    }


def _owners(by_member: Mapping[str, frozenset[TopicPartition]]) -> Owners:
    found: dict[TopicPartition, set[str]] = {}
    for member, partitions in by_member.items():
        for partition in partitions:
            found.setdefault(partition, set()).add(member)
    return {partition: frozenset(members) for partition, members in found.items()}
