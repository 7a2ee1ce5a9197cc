"""Rebalances from events and from group metadata, as a batch, as a stream, and in the processors alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from broker.cores.groups.records import GenerationFloor, to_row
from broker.protocol.codec import encode
from broker.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_blob
from broker.protocol.offsets_topic import GroupMetadataKey, GroupMetadataValue, encode_key
from kgctl.client.admin.group_records import group_record
from kgctl.pipelines.schemas.groups import MEMBERSHIPS, REBALANCES
from kgctl.pipelines.schemas.sources import RAW_DDL
from kgctl.pipelines.transforms import decode, rebalances
from kgctl.pipelines.transforms.stored_log import StoredLog
from tests.kgctl.watch.group_worlds import consumer_world

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START_MS = 1_700_000_000_000
GROUP = "grüße-\U0001f600"


def when(ms: int) -> datetime:
    """As Spark returns it: in UTC, without the zone."""
    return (EPOCH + timedelta(milliseconds=ms)).replace(tzinfo=None)


def event(name: str, at_ms: int, generation: int = 1, group: str = GROUP, **fields: object) -> bytes:
    event = {
        "version": 1,
        "group": group,
        "group_type": "consumer",
        "event": name,
        "cause": "member joined",
        "reason": None,
        "generation": generation,
        "timestamp": at_ms,
        "members": 1,
        "joined": [],
        "left": [],
        "prepare_ms": None,
        "complete_ms": None,
        "partitions_moved": None,
        "commits_rejected": 0,
        "joined_count": None,
        "left_count": None,
        "left_causes": [],
        "clients": {},
        "something_new": {"a": [1]},
    }
    return json.dumps({**event, **fields}, ensure_ascii=False).encode()


def raw(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    rows = [(b"k", value, "__kgctl_group_events", 0, offset, EPOCH, 0) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, RAW_DDL)


BROKEN: list[tuple[bytes, str]] = [
    (b"", "malformed value"),
    (b"no json", "malformed value"),
    (b"\xff\xfe", "malformed value"),
    (b"[" * 3000, "malformed value"),
    (b"[1, 2]", "malformed value"),
    (b"{}", "malformed value"),
    (event("stable", START_MS, version=0), "malformed value"),
    (event("stable", START_MS, generation=2**31), "malformed value"),
    (event("stable", 2**62), "malformed value"),
    (event("stable", START_MS, version=2), "unknown value version"),
]


def test_events_become_rebalances_and_other_records_go_to_quarantine(spark: SparkSession) -> None:
    values: list[bytes | None] = [
        *(value for value, _ in BROKEN),
        event("rebalance_started", START_MS, 0),
        None,
        event("stable", START_MS + 250, 1, joined=["m-1"], members=1, partitions_moved=0, reason="why"),
        event("stable", START_MS + 9, 5, group="other", prepare_ms=4, complete_ms=2, joined=[], left=["x"]),
        event("empty", START_MS + 900, 2, left=["m-1"], members=0, cause="member left", commits_rejected=3),
    ]
    frame = raw(spark, values)
    rows = rebalances.rebalances(rebalances.from_events(frame)).orderBy("group", "generation").collect()
    end, beginning = when(START_MS + 250), when(START_MS)
    gone, other = when(START_MS + 900), (when(START_MS + 3), when(START_MS + 9))
    known = ("events", "member joined")
    assert [tuple(row) for row in rows] == [
        (GROUP, 1, beginning, end, 250, *known, "why", ["m-1"], [], 1, 0, None, 0, "consumer"),
        (GROUP, 2, None, gone, None, "events", "member left", None, [], ["m-1"], 0, None, None, 3, "consumer"),
        ("other", 5, *other, 6, *known, None, [], ["x"], 1, None, None, 0, "consumer"),
    ]
    assert rows[0].__fields__ == list(REBALANCES.column_names)
    bad = rebalances.quarantine(frame).orderBy("offset").collect()
    assert [(row.value, row.reason) for row in bad] == BROKEN


def test_the_clients_of_a_consumer_group_are_those_of_its_memberships(spark: SparkSession) -> None:
    clients = {"m-1": {"client_id": "app", "host": "/10.0.0.1"}, "m-2": {"client_id": "app", "host": "/10.0.0.2"}}
    frame = raw(spark, [event("stable", START_MS, joined=[*clients], clients=clients, members=2)])
    rows = rebalances.memberships(rebalances.from_events(frame)).collect()
    assert sorted((row.member_id, row.client_id, row.client_host) for row in rows) == [
        ("m-1", "app", "/10.0.0.1"),
        ("m-2", "app", "/10.0.0.2"),
    ]


def member(member_id: str, *parts: int, instance_id: str | None = None) -> GroupMetadataValue.Member:
    row = ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=list(parts))
    return GroupMetadataValue.Member(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id="c",
        client_host="h",
        rebalance_timeout=1,
        session_timeout=1,
        subscription=b"",
        assignment=encode_blob(ConsumerProtocolAssignment(assigned_partitions=[row])),
    )


def metadata(generation: int, *members: GroupMetadataValue.Member) -> bytes:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range",
        leader="a",
        current_state_timestamp=START_MS,
        members=list(members),
    )
    return b"\0\3" + encode(value, 3)


def test_group_metadata_becomes_rebalances(spark: SparkSession) -> None:
    values: list[bytes | None] = [
        metadata(1, member("a", 0, 1, 2)),
        metadata(2, member("a", 0, 1), member("b", 2)),
        metadata(3),
        None,
        metadata(7, member("z", 0)),
    ]
    key = encode_key(GroupMetadataKey(GROUP))
    records = [
        (key, value, "__consumer_offsets", 3, offset, EPOCH + timedelta(milliseconds=START_MS + offset), 0)
        for offset, value in enumerate(values)
    ]
    # The rows are not in log order.
    frame = spark.createDataFrame(records[::-1], RAW_DDL)
    rows = rebalances.rebalances(rebalances.from_log(decode.decode(frame))).orderBy("generation").collect()
    none = (None, "log", None, None)
    assert [tuple(row) for row in rows] == [
        (GROUP, 1, None, when(START_MS), *none, ["a"], [], 1, 0, 1.0, None, "classic"),
        (GROUP, 2, None, when(START_MS + 1), *none, ["b"], [], 2, 1, 4 / 3, None, "classic"),
        (GROUP, 3, None, when(START_MS + 2), *none, [], ["a", "b"], 0, None, None, None, "classic"),
        (GROUP, 7, None, when(START_MS + 4), *none, None, None, 1, None, 1.0, None, "classic"),
    ]


def event_row(name: str, at_ms: int, offset: int) -> Row:
    row = json.loads(event(name, at_ms))
    return Row(**row, log_partition=0, log_offset=offset)


def test_the_start_of_a_rebalance_is_kept_between_batches() -> None:
    tester = TwsTester(rebalances.FromEvents())
    assert tester.test(GROUP, [event_row("rebalance_started", START_MS, 0)]) == []
    assert tester.peekValueState("open", GROUP) == (START_MS, 0)
    # The rows of a batch are in any order.
    unordered = [
        event_row("stable", START_MS + 900, 3),
        event_row("stable", START_MS + 250, 1),
        event_row("rebalance_started", START_MS + 800, 2),
    ]
    assert [row.rebalance.duration_ms for row in tester.test(GROUP, unordered)] == [250, 100]
    assert tester.peekValueState("open", GROUP) is None


def record(generation: int | None, offset: int, *members: GroupMetadataValue.Member) -> Row:
    value = None if generation is None else metadata(generation, *members)
    return Row(
        key=encode_key(GroupMetadataKey(GROUP)), value=value, log_ms=START_MS, log_partition=0, log_offset=offset
    )


def test_the_previous_generation_is_kept_between_batches_until_the_group_is_deleted() -> None:
    tester = TwsTester(rebalances.FromLog())
    first, came = tester.test(GROUP, [record(1, 0, member("a", 0, 1))])
    second, came_next = tester.test(GROUP, [record(2, 1, member("a", 0), member("b", 1))])
    assert [row.membership.member_id for row in (came, came_next)] == ["a", "b"]
    first, second = first.rebalance, second.rebalance
    assert (first.joined, second.group, second.joined, second.moved_parts) == (("a",), GROUP, ("b",), 1)
    assert tester.test(GROUP, [record(None, 2)]) == []
    assert tester.peekValueState("before", GROUP) is None


def test_a_consumer_group_has_causes_and_durations_in_any_batches(spark: SparkSession) -> None:
    """The rows of Spark are those of the rules alone."""
    states = [one for one in consumer_world(3).records if not isinstance(one, GenerationFloor)]
    stored = [to_row(state) for state in states]  # type: ignore[arg-type]
    log = StoredLog()
    records = [group_record(row.key, row.value, row.timestamp_ms) for row in stored]
    wanted = [rebalance for one in records if one is not None for rebalance in log.add(one)]
    assert len({one.cause for one in wanted}) > 2
    rows = [
        (row.key, row.value, "__consumer_offsets", 0, offset, EPOCH + timedelta(milliseconds=row.timestamp_ms), 0)
        for offset, row in enumerate(stored)
    ]
    frame = spark.createDataFrame(rows[::-1], RAW_DDL)
    followed = rebalances.from_log(decode.decode(frame)).persist()
    found = rebalances.rebalances(followed).orderBy("ended", "generation").collect()
    shown = [(one.generation, one.cause, one.duration_ms, tuple(one.joined), one.moved_parts) for one in found]
    assert shown == [(one.generation, one.cause, one.duration_ms, one.joined, one.moved_parts) for one in wanted]
    tester, pieces = TwsTester(rebalances.FromLog()), []
    for at in range(0, len(stored), 7):
        batch = [
            Row(key=one.key, value=one.value, log_ms=one.timestamp_ms, log_partition=0, log_offset=at + place)
            for place, one in enumerate(stored[at : at + 7])
        ]
        pieces += tester.test("g", batch)
    ended = [row.rebalance for row in pieces if row.rebalance is not None]
    assert [(one.generation, one.duration_ms) for one in ended] == [(one.generation, one.duration_ms) for one in wanted]
    members = rebalances.memberships(followed)
    assert members.schema.simpleString() == spark.createDataFrame([], MEMBERSHIPS.ddl).schema.simpleString()
    shown = [(row.member_id, row.event, row.cause, row.client_host) for row in members.collect()]
    known = [(one.member_id, one.event, one.cause, one.client_host) for one in log.memberships]
    assert shown == known
    assert [(row.membership.member_id, row.membership.event) for row in pieces if row.membership is not None] == [
        one[:2] for one in known
    ]


def test_a_stream_keeps_state_between_batches(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "events"
    batches = [
        [event("rebalance_started", START_MS), event("rebalance_started", START_MS + 5, group="other")],
        [event("stable", START_MS + 250, 2), b"no json"],
        [event("stable", START_MS + 500, 3, group="other")],
    ]
    offset = 0
    for number, values in enumerate(batches):
        rows = [(b"k", value, "e", 0, offset + place, EPOCH, 0) for place, value in enumerate(values)]
        offset += len(rows)
        frame = spark.createDataFrame(rows, RAW_DDL)
        frame.coalesce(1).write.mode("append").parquet(str(source / f"batch={number}"))
    stream = spark.readStream.schema(RAW_DDL).option("maxFilesPerTrigger", 1).parquet(str(source / "batch=*"))
    query = (
        rebalances.rebalances(rebalances.from_events(stream))
        .writeStream.format("memory")
        .queryName("rebalances_found")
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        assert query.lastProgress["batchId"] == 2
        rows = spark.table("rebalances_found").orderBy("generation").collect()
    finally:
        query.stop()
        spark.sql("drop view rebalances_found")
    assert [(row.group, row.generation, row.duration_ms) for row in rows] == [(GROUP, 2, 250), ("other", 3, 495)]


def test_the_rows_have_the_schema_of_the_table(spark: SparkSession) -> None:
    wanted = spark.createDataFrame([], REBALANCES.ddl).schema.simpleString()
    for frame in (rebalances.from_events(raw(spark, [])), rebalances.from_log(decode.decode(raw(spark, [])))):
        assert rebalances.rebalances(frame).schema.simpleString() == wanted
