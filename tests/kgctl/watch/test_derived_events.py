"""Events that are derived from the generations in __consumer_offsets: only what the records prove."""

from __future__ import annotations

from kgctl.model.groups import TopicPartitions
from kgctl.watch.derived_events import DerivedEvents, StoredGeneration


def stored(generation: int | None, *members: str, group: str = "g", owner: str | None = None) -> StoredGeneration:
    owned = {one: (TopicPartitions("t", (0, 1)),) if one == owner else () for one in members}
    return StoredGeneration(group, 1_000, generation, members, owned, is_deleted=generation is None)


def story(*records: StoredGeneration) -> list[tuple[str, int | None, int | None, int | None, int | None]]:
    derived = DerivedEvents()
    rows = [row for record in records if (row := derived.add(record)) is not None]
    return [(row.event, row.generation, row.joined_count, row.left_count, row.partitions_moved) for row in rows]


def test_a_group_from_its_first_member_to_its_deletion() -> None:
    assert story(
        stored(1, "a", owner="a"), stored(2, "a", "b", owner="b"), stored(3, "b", owner="b"), stored(4), stored(None)
    ) == [
        ("stable", 1, 1, 0, None),
        ("stable", 2, 1, 0, 2),
        ("stable", 3, 0, 1, 0),
        ("empty", 4, 0, 1, None),
        ("deleted", None, None, 0, None),
    ]


def test_who_joined_is_not_known_of_the_first_record_of_an_older_group() -> None:
    assert story(stored(7, "a", "b"), stored(8, "a")) == [("stable", 7, None, None, None), ("stable", 8, 0, 1, 0)]


def test_a_record_that_is_written_again_is_no_event() -> None:
    assert story(stored(3, "a"), stored(3, "a")) == [("stable", 3, None, None, None)]
    assert story(stored(3, "a"), stored(None), stored(None))[1:] == [("deleted", None, None, 1, None)]
    assert story(stored(0), stored(None)) in ([], [("deleted", None, None, 0, None)])


def test_a_member_that_is_replaced_in_one_generation() -> None:
    assert story(stored(3, "a"), stored(3, "a2"))[1:] == [("member_replaced", 3, 1, 1, None)]


def test_groups_are_kept_apart_and_a_deleted_group_starts_anew() -> None:
    assert story(stored(1, "a"), stored(1, "b", group="h"), stored(None), stored(1, "c")) == [
        ("stable", 1, 1, 0, None),
        ("stable", 1, 1, 0, None),
        ("deleted", None, None, 1, None),
        ("stable", 1, 1, 0, None),
    ]
