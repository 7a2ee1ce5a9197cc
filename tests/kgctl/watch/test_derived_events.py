"""Events that are derived from the generations in __consumer_offsets: only what the records prove."""

from __future__ import annotations

from datetime import UTC, datetime

from broker.protocol.codec import encode
from broker.protocol.newer_group_records import ConsumerGroupMember
from broker.protocol.offsets_topic import GroupMetadataValue, encode_value
from broker.protocol.record_batch import Record
from kgctl.client.admin.consumer_group_records import ConsumerGroups
from kgctl.client.admin.stored_generations import LAST_MS, pass_on
from kgctl.model.groups import TopicPartitions
from kgctl.watch.derived_events import DerivedEvents, StoredGeneration, without_conversions


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


def group_of(*records: tuple[str, object], is_whole: bool = True) -> list[tuple[int | None, list[str] | None]]:
    """The generations of a KIP-848 group with these records: ("epoch", 3), ("member", "a"), ("target", 3), ("gone", "a")..."""
    found: list[tuple[int | None, list[str] | None]] = []
    groups = ConsumerGroups()
    for kind, what in records:
        groups.add(
            stored_record(kind, what),
            1_000,
            lambda _group, _at_ms, epoch, members: found.append((epoch, None if members is None else sorted(members))),
            is_whole=is_whole,
        )
    return found


def stored_record(kind: str, what: object) -> Record:
    number = {"epoch": 3, "deleted": 3, "member": 5, "gone": 5, "target": 6}[kind]
    of_member = kind in ("member", "gone")
    key = number.to_bytes(2) + b"\x00\x01g" + (b"\x00\x01" + str(what).encode() if of_member else b"")
    if kind in ("gone", "deleted"):
        return Record(0, 0, key, None)
    if kind == "member":
        fields = {
            "instance_id": None,
            "rack_id": None,
            "client_id": "",
            "client_host": "",
            "subscribed_topic_names": [],
        }
        rest = {"subscribed_topic_regex": None, "rebalance_timeout_ms": 1, "server_assignor": None}
        return Record(0, 0, key, bytes(2) + encode(ConsumerGroupMember(**fields, **rest), 0))
    assert isinstance(what, int)
    return Record(0, 0, key, bytes(2) + what.to_bytes(4) + b"\x00")


LIFE = [
    *(("member", "a"), ("epoch", 1), ("target", 1)),
    *(("member", "b"), ("epoch", 2), ("target", 2)),
    *(("gone", "a"), ("epoch", 3), ("target", 3)),
    *(("gone", "b"), ("epoch", 4), ("deleted", None)),
]


def test_the_targets_complete_a_generation_of_a_newer_group() -> None:
    assert group_of(*LIFE) == [(1, ["a"]), (2, ["a", "b"]), (3, ["b"]), (4, []), (None, [])]


def test_members_of_a_newer_group_are_not_known_from_its_newest_records_alone() -> None:
    again = [("member", "c"), ("epoch", 5), ("target", 5)]
    assert group_of(*LIFE, *again, is_whole=False) == [(1, None), (2, None), (3, None), (None, []), (5, ["c"])]


def test_events_without_known_members_say_nothing_about_them() -> None:
    unknown = [StoredGeneration("g", 1_000, generation, None) for generation in (7, 7, 8)]
    assert story(*unknown, stored(None)) == [
        ("stable", 7, None, None, None),
        ("stable", 8, None, None, None),
        ("deleted", None, None, None, None),
    ]


def test_a_group_that_changes_its_protocol_is_not_deleted() -> None:
    kept = [stored(3, "a"), stored(None), stored(4, "a", "b")]
    assert without_conversions(kept) == [kept[0], kept[2]]
    later = StoredGeneration("g", 9_000, 1, ("a",))
    assert without_conversions([*kept[:2], later]) == [*kept[:2], later]


def test_damaged_records_are_skipped_and_dates_limited() -> None:
    """Whatever bytes are stored, and whatever time: no exception, and only times that are dates."""
    found: list[int] = []
    metadata = b"\x00\x02" + b"\x00\x01g"
    value = encode_value(GroupMetadataValue(protocol_type="consumer", generation=1, protocol=None, leader=None))
    whole = [stored_record(kind, what) for kind, what in LIFE] + [Record(0, 0, metadata, value)]
    for record in whole:
        for timestamp in (-(1 << 63), -1, 0, (1 << 63) - 1):
            for cut in range(len(record.value or b"") + 1):
                for key in (record.key, (record.key or b"")[:-1], b"", None):
                    damaged = Record(0, timestamp, key, None if record.value is None else record.value[:cut])
                    pass_on(damaged, ConsumerGroups(), lambda _g, at_ms, _e, _m: found.append(at_ms), is_whole=True)
    assert found
    assert all(0 <= at_ms <= LAST_MS for at_ms in found)
    assert all(datetime.fromtimestamp(at_ms / 1000, UTC) for at_ms in set(found))
