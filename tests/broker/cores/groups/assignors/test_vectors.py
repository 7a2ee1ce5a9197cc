"""The assignors give the target assignments that Kafka's coordinator gave to recorded groups (see tests/harness/java)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.broker.cores.groups.assignors.vectors import read

VECTORS, SHARE_VECTORS = (
    list(read((Path(__file__).parent / f"{name}_vectors.jsonl").read_text().splitlines())) for name in ("java", "share")
)


def test_every_recorded_group_gets_kafkas_records() -> None:
    """The same members, topics and partitions in the same order; and no assignment where Kafka's assignor fails."""
    for number, vector in enumerate([*VECTORS, *SHARE_VECTORS]):
        assert vector.computed() == vector.records, (number, vector)
    assert [vector.records for vector in SHARE_VECTORS].count(None) == 1


def test_the_recorded_groups_are_of_all_kinds() -> None:
    kinds = Counter[str]()
    for vector in VECTORS:
        members = vector.members.values()
        kinds[f"{vector.assignor} {'alike' if vector.is_homogeneous else 'different'}"] += 1
        kinds["nothing changes"] += not vector.records
        kinds["a member joins"] += len(vector.members) > vector.stored
        kinds["static and dynamic"] += len({member.instance_id is None for member in members}) == 2
        kinds["missing topics"] += any(member.missing for member in members)
        kinds["more than ten members"] += len(members) > 10
        kinds["more than ten topics"] += any(len(member.subscribed) > 10 for member in members)
        kinds["unsubscribed"] += any(member.assigned.keys() - set(member.subscribed) for member in members)
        kinds["partitions out of order"] += any(text != ordered(text) for _, text in vector.records or ())
    assert len(kinds) == 12
    assert all(count >= 8 for count in kinds.values()), kinds


def test_the_recorded_share_groups_are_of_all_kinds() -> None:
    kinds = Counter[str]()
    for vector in SHARE_VECTORS:
        members, assignable = vector.members.values(), vector.assignable or {}
        kinds["alike" if vector.is_homogeneous else "different"] += 1
        kinds["nothing changes"] += not vector.records
        kinds["missing topics"] += any(member.missing for member in members)
        kinds["more than ten members"] += len(members) > 10
        kinds["unsubscribed"] += any(member.assigned.keys() - set(member.subscribed) for member in members)
        kinds["without state"] += any(len(assignable[topic]) < count for topic, count in vector.topics.counts.items())
        given = Counter(place for _, text in vector.records or () for place in places(text))
        kinds["shared partitions"] += any(count > 1 for count in given.values())
    assert len(kinds) == 8
    assert all(count >= 8 for count in kinds.values()), kinds


def places(text: str) -> list[str]:
    words = (word.partition(":") for word in text.split())
    return [f"{topic}:{number}" for topic, _, numbers in words for number in numbers.split(",")]


def ordered(text: str) -> str:
    """The text of an assignment with the partitions of each topic in ascending order."""
    words = (word.partition(":") for word in text.split())
    return " ".join(f"{topic}:{','.join(sorted(numbers.split(','), key=int))}" for topic, _, numbers in words)
