"""Target assignments that Kafka's coordinator has computed, recorded by tests/harness/java/{Server,Share}AssignorVectors.java."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from broker.cores.groups.assignors.interface import Assignment, MemberSpec, PartitionAssignorError, load_assignor
from broker.cores.groups.assignors.java_order import map_order, set_order, timeline_order
from broker.cores.groups.assignors.simple import SimpleAssignor


@dataclass
class Topics:
    """The cluster that the assignor sees."""

    counts: dict[bytes, int]

    def partition_count(self, topic_id: bytes) -> int:
        return self.counts.get(topic_id, -1)

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return frozenset({f"r{partition % 3}"} if topic_id in self.counts else ())


@dataclass
class Vector:
    """One target assignment. `members` are in the order in which they joined; only the first `stored` are in the group,
    which has had up to `most`.

    `is_new` are the members without a record of an assignment.
    `records` are the changed assignments in the order of Kafka's records; None if Kafka's assignor failed.
    """

    assignor: str
    is_homogeneous: bool
    topics: Topics
    members: dict[str, MemberSpec]
    stored: int
    most: int
    records: list[tuple[str, str]] | None
    is_new: set[str] = field(default_factory=set)
    assignable: dict[bytes, set[int]] | None = None  # of share groups only

    def assign(self) -> dict[str, Assignment]:
        put = [*timeline_order([*self.members][: self.stored], self.most), *[*self.members][self.stored :]]
        ordered = {member_id: self.members[member_id] for member_id in map_order(put)}
        if self.assignable is not None:
            return SimpleAssignor().assign(ordered, self.is_homogeneous, self.topics, self.assignable)
        return load_assignor(self.assignor).assign(ordered, self.is_homogeneous, self.topics)

    def computed(self) -> list[tuple[str, str]] | None:
        """What `records` should be."""
        try:
            return self.changes(self.assign())
        except PartitionAssignorError:
            return None

    def changes(self, assigned: dict[str, Assignment]) -> list[tuple[str, str]]:
        """The records of this result: a member keeps its assignment if it is the same object."""
        return [
            (member_id, as_text(assigned[member_id]))
            for member_id in assigned
            if member_id in self.is_new or assigned[member_id] is not self.members[member_id].assigned
        ]


def read(lines: Iterable[str]) -> Iterator[Vector]:
    for line in lines:
        row = json.loads(line)
        ids = {name: topic_id(text) for name, (text, _) in row["topics"].items()}
        counts = {ids[name]: count for name, (_, count) in row["topics"].items()}
        members = {}
        is_new = set()
        for member_id, instance_id, rack_id, names, assigned in row["members"]:
            ordered = set_order(names.split())
            subscribed = [ids[name] for name in ordered if name in ids]
            missing = len(ordered) - len(subscribed)
            members[member_id] = MemberSpec(subscribed, _assignment(assigned or ""), instance_id, rack_id, missing)
            if assigned is None:
                is_new.add(member_id)
        records = None if row["records"] is None else [(member_id, text) for member_id, text in row["records"]]
        vector = Vector(
            row["assignor"], row["homogeneous"], Topics(counts), members, row["stored"], row["most"], records, is_new
        )
        if "assignable" in row:
            vector.assignable = {ids[name]: set(partitions) for name, partitions in row["assignable"].items()}
        yield vector


def topic_id(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def _assignment(text: str) -> Assignment:
    topics = (word.split(":") for word in text.split())
    return {topic_id(topic): tuple(map(int, numbers.split(","))) for topic, numbers in topics}


def as_text(assignment: Assignment) -> str:
    """Topics and partitions in the order of the assignment."""
    return " ".join(
        f"{base64.urlsafe_b64encode(topic).decode().rstrip('=')}:{','.join(map(str, numbers))}"
        for topic, numbers in assignment.items()
    )
