"""Events that are derived from what coordinators store in __consumer_offsets: only what the records prove."""

from __future__ import annotations

from datetime import UTC, datetime

from broker.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_blob
from broker.protocol.newer_group_records import (
    ConsumerGroupMember,
    ConsumerGroupMetadata,
    CurrentAssignment,
    RegularExpression,
    TargetAssignment,
    TopicPartitions,
    encode_newer_key,
    encode_newer_value,
)
from broker.protocol.offsets_topic import GroupMetadataKey, GroupMetadataValue, encode_key, encode_value
from broker.protocol.wire_types import Message
from kgctl.client.admin.group_records import CLASSIC, LAST_MS, GroupRecord, group_record
from kgctl.model.groups import TopicPartitions as Owned
from kgctl.model.history import GroupEventRow, MemberClient
from kgctl.watch.derived_events import DerivedEvents, with_names
from kgctl.watch.newer_groups import NewerGroup

ORDERS = bytes(15) + b"o"


def stored(
    generation: int | None, *members: str, group: str = "g", owner: str | None = None, at_ms: int = 1_000
) -> GroupRecord:
    """A generation of a classic group; None: its deletion."""
    if generation is None:
        return GroupRecord(group, CLASSIC, "", None, at_ms)
    row = ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 1])
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol=None,
        leader=None,
        members=[
            GroupMetadataValue.Member(
                member_id=one,
                client_id=f"client-{one}",
                client_host="/h",
                session_timeout=1,
                subscription=b"",
                assignment=encode_blob(ConsumerProtocolAssignment(assigned_partitions=[row] if one == owner else [])),
            )
            for one in members
        ],
    )
    return GroupRecord(group, CLASSIC, "", value, at_ms)


def events(*records: GroupRecord, is_whole: bool = True) -> list[GroupEventRow]:
    derived = DerivedEvents()
    for record in records:
        derived.take(record, is_whole)
    return derived.rows()


def story(*records: GroupRecord) -> list[tuple[str, int | None, int | None, int | None, int | None]]:
    rows = events(*records)
    return [(row.event, row.generation, row.joined_count, row.left_count, row.partitions_moved) for row in rows]


def test_a_group_from_its_first_member_to_its_deletion() -> None:
    assert story(
        stored(1, "a", owner="a"), stored(2, "a", "b", owner="b"), stored(3, "b", owner="b"), stored(4), stored(None)
    ) == [
        ("stable", 1, 1, 0, None),
        ("stable", 2, 1, 0, 2),
        ("stable", 3, 0, 1, 0),
        ("empty", 4, 0, 1, None),
        ("deleted", 4, 0, 0, None),
    ]


def test_who_joined_is_not_known_of_the_first_record_of_an_older_group() -> None:
    assert story(stored(7, "a", "b"), stored(8, "a")) == [("stable", 7, None, None, None), ("stable", 8, 0, 1, 0)]


def test_a_record_that_is_written_again_is_no_event() -> None:
    assert story(stored(3, "a"), stored(3, "a")) == [("stable", 3, None, None, None)]
    assert story(stored(3, "a"), stored(None), stored(None))[1:] == [("deleted", 3, 0, 1, None)]
    assert story(stored(0), stored(None)) == [("deleted", 0, 0, 0, None)]


def test_a_member_that_is_replaced_in_one_generation() -> None:
    assert story(stored(3, "a"), stored(3, "a2"))[1:] == [("member_replaced", 3, 1, 1, None)]


def test_groups_are_kept_apart_and_a_deleted_group_starts_anew() -> None:
    later = stored(1, "c", at_ms=2_000)
    assert story(stored(1, "a"), stored(1, "b", group="h"), stored(None), later) == [
        ("stable", 1, 1, 0, None),
        ("stable", 1, 1, 0, None),
        ("deleted", 1, 0, 1, None),
        ("stable", 1, 1, 0, None),
    ]


def test_clients_of_classic_members_are_known() -> None:
    rows = events(stored(1, "a"), stored(2, "b"))
    assert rows[1].clients == {one: MemberClient(f"client-{one}", "/h") for one in "ab"}


# ---- newer groups


def record(kind: int, name: str = "", value: Message | None = None, at_ms: int = 1_000) -> GroupRecord:
    """As it is read back from its bytes."""
    data = None if value is None else encode_newer_value(value)
    found = group_record(encode_newer_key(kind, "g", name), data, at_ms)
    assert found is not None
    return found


def member(name: str, *topics: str, at_ms: int = 1_000, **fields: object) -> GroupRecord:
    nothing: dict[str, object] = {
        "instance_id": None,
        "rack_id": None,
        "subscribed_topic_regex": None,
        "server_assignor": None,
    }
    value = ConsumerGroupMember(
        **{
            **nothing,
            "client_id": f"client-{name}",
            "client_host": "/h",
            "subscribed_topic_names": list(topics or ("orders",)),
            "rebalance_timeout_ms": 1,
            **fields,
        }
    )
    return record(5, name, value, at_ms)


def epoch(number: int, hashed: int = 1, at_ms: int = 1_000) -> GroupRecord:
    return record(3, "", ConsumerGroupMetadata(epoch=number, metadata_hash=hashed), at_ms)


def target(number: int, at_ms: int = 1_000) -> GroupRecord:
    return record(6, "", TargetAssignment(assignment_epoch=number), at_ms)


def current(name: str, number: int, *owned: int, state: int = 0, at_ms: int = 1_000) -> GroupRecord:
    topics = [TopicPartitions(topic_id=ORDERS, partitions=list(owned))] if owned else []
    value = CurrentAssignment(
        member_epoch=number,
        previous_member_epoch=0,
        state=state,
        assigned_partitions=topics,
        partitions_pending_revocation=[],
    )
    return record(8, name, value, at_ms)


def left(name: str, at_ms: int = 1_000) -> list[GroupRecord]:
    return [record(kind, name, at_ms=at_ms) for kind in (8, 7, 5)]


LIFE = [
    *(member("a"), epoch(1), target(1), current("a", 1, 0, 1)),
    *(member("b"), epoch(2, at_ms=2_000), target(2), current("b", 2, state=2), current("a", 1, 0, state=1)),
    *(current("a", 2, 0, at_ms=2_500), current("b", 2, 1, at_ms=2_700)),
    *(*left("a"), epoch(3, at_ms=3_000), target(3), current("b", 3, 0, 1, at_ms=3_100)),
    *(*left("b"), epoch(4, at_ms=4_000), record(6, at_ms=4_100), record(3, at_ms=4_100)),
]


def test_a_rebalance_lasts_from_its_epoch_to_the_last_member_that_reaches_it() -> None:
    rows = events(*LIFE)
    assert [
        (row.event, row.generation, row.cause, row.members, row.prepare_ms, row.partitions_moved) for row in rows
    ] == [
        ("rebalance_started", 1, "member joined", 1, None, None),
        ("stable", 1, "member joined", 1, 0, 0),
        ("rebalance_started", 2, "member joined", 2, None, None),
        ("stable", 2, "member joined", 2, 700, 1),
        ("rebalance_started", 3, "member left or timed out", 1, None, None),
        ("stable", 3, "member left or timed out", 1, 100, 1),
        ("empty", 4, "member left or timed out", 0, None, None),
        ("deleted", 4, "group deleted", 0, None, None),
    ]
    assert rows[3].clients == {"b": MemberClient("client-b", "/h")}
    assert rows[5].left == ("a",)
    named = with_names(rows[5], {ORDERS.hex(): "orders"})
    assert named.assignment == {"b": (Owned("orders", (0, 1)),)}
    assert with_names(rows[5], {}).assignment is None


def test_what_is_remembered_is_json() -> None:
    """Wherever a pipeline stops and continues."""
    for stop in range(len(LIFE)):
        group = NewerGroup("g", "consumer", is_whole=True)
        rows = [row for one in LIFE[:stop] for row in group.add(one)]
        group = NewerGroup.from_json(group.to_json())
        rows += [row for one in LIFE[stop:] for row in group.add(one)]
        assert rows == sorted(rows, key=lambda row: row.generation)
        assert sorted(map(repr, rows)) == sorted(map(repr, events(*LIFE)))


def test_the_cause_of_an_epoch_is_what_changed_before_it() -> None:
    regex = RegularExpression(topics=["orders", "late"], version=1, timestamp=1)
    changes = [
        ([member("a", "orders", "clicks"), epoch(2)], ("subscription changed", None)),
        ([epoch(3, hashed=9)], ("topics changed", None)),
        ([record(16, "o.*", regex), epoch(4, hashed=10)], ("subscription changed", None)),
        (
            [member("a", "orders", "clicks", server_assignor="range"), epoch(5, hashed=10)],
            (None, "a member prefers the assignor range"),
        ),
        ([epoch(6, hashed=10)], (None, None)),
    ]
    records = [member("a"), epoch(1), target(1), current("a", 1, 0)]
    for number, (some, _) in enumerate(changes, 2):
        records += [*some, target(number), current("a", number, 0)]
    starts = [(row.cause, row.reason) for row in events(*records) if row.event == "rebalance_started"]
    assert starts == [("member joined", None), *(cause for _, cause in changes)]


def test_the_counts_that_kafka_4_0_stores_show_topics_that_change() -> None:
    def counts(text: bytes | None) -> GroupRecord:
        return GroupRecord("g", 4, "", text, 1_000)

    base = [member("a"), counts(b"1"), epoch(1), target(1), current("a", 1, 0)]
    rows = events(*base, counts(b"2"), epoch(2), target(2), current("a", 2, 0), counts(None), epoch(3), target(3))
    assert [row.cause for row in rows if row.event == "rebalance_started"] == ["member joined", "topics changed", None]


def test_who_joined_is_not_known_of_the_first_epoch_of_an_older_group() -> None:
    """Records before it may have been compacted. Later epochs are as known as any."""
    rows = events(member("a"), member("b"), epoch(7), target(7), current("a", 7, 0), current("b", 7))
    assert [(row.event, row.cause, row.joined_count, row.prepare_ms, row.members) for row in rows] == [
        ("stable", None, None, None, 2)
    ]


def test_members_are_not_known_from_the_newest_records_alone() -> None:
    again = [member("c"), epoch(1), target(1), current("c", 1, 0)]
    rows = events(*LIFE[4:], *again, is_whole=False)
    assert [(row.event, row.generation, row.members, row.joined_count) for row in rows if row.event != "deleted"] == [
        ("stable", 2, None, None),
        ("stable", 3, None, None),
        ("rebalance_started", 1, 1, 1),
        ("stable", 1, 1, 1),
    ]


def test_a_group_that_changes_its_type_is_not_deleted() -> None:
    classic_member = ConsumerGroupMember.ClassicMember(session_timeout_ms=1, supported_protocols=[])
    upgrade = [
        stored(None, at_ms=5_000),
        *(member("a", classic_member=classic_member, at_ms=5_000), epoch(3, at_ms=5_000), target(3, at_ms=5_000)),
        current("a", 3, 0, at_ms=5_000),
        *(member("b", at_ms=5_000), epoch(4, at_ms=5_000), target(4, at_ms=5_000), current("b", 4, at_ms=5_000)),
        current("a", 4, 0, at_ms=6_000),
    ]
    ends = [
        record(kind, name, at_ms=7_000) for kind, name in ((8, "a"), (8, "b"), (6, ""), (5, "a"), (5, "b"), (3, ""))
    ]
    downgrade = [*ends, stored(4, "a", at_ms=7_000), stored(5, "a", at_ms=8_000)]
    rows = events(stored(3, "a"), *upgrade, *downgrade)
    assert [(row.group_type, row.event, row.generation, row.joined, row.left, row.prepare_ms) for row in rows] == [
        ("classic", "stable", 3, (), (), None),
        ("consumer", "rebalance_started", 4, ("b",), (), None),
        ("consumer", "stable", 4, ("b",), (), 1_000),
        ("classic", "stable", 5, (), ("b",), None),
    ]
    assert [row.event for row in events(stored(3, "a"), stored(None, at_ms=5_000), member("b", at_ms=9_000))] == [
        "stable",
        "deleted",
    ]


def test_damaged_records_are_skipped_and_dates_limited() -> None:
    """Whatever bytes are stored, and whatever time: no exception, and only times that are dates."""
    value = encode_value(GroupMetadataValue(protocol_type="consumer", generation=1, protocol=None, leader=None))
    whole = [(encode_key(GroupMetadataKey("g")), value)]
    for one in LIFE:
        assert not isinstance(one.value, bytes)
        whole.append(
            (encode_newer_key(one.kind, "g", one.name), None if one.value is None else encode_newer_value(one.value))
        )
    found = DerivedEvents()
    dates = set()
    for timestamp in (-(1 << 63), -1, 0, (1 << 63) - 1):
        for key, data in whole:
            for cut in range(len(data or b"") + 1):
                for shown in (key, key[:-1], b""):
                    read = group_record(shown, None if data is None else data[:cut], timestamp)
                    if read is not None:
                        found.take(read, True)
                        dates.add(read.timestamp)
    rows = found.rows()
    assert rows
    assert dates == {0, LAST_MS}
    assert all(datetime.fromtimestamp(row.timestamp / 1000, UTC) for row in rows)
