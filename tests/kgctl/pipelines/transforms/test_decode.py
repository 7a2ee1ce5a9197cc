"""Records of __consumer_offsets become the rows that the broker's own decoders give, and none is lost."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from broker.protocol.newer_group_records import (
    ConsumerGroupMember,
    CurrentAssignment,
    TopicPartitions,
    encode_newer_key,
    encode_newer_value,
)
from broker.protocol.offsets_topic import GroupMetadataKey, OffsetCommitKey, encode_key
from broker.protocol.share_group_records import ShareGroupMetadata
from broker.protocol.wire_types import Message
from kgctl.pipelines.schemas.groups import COMMITS, GROUP_EVENTS, QUARANTINE
from kgctl.pipelines.schemas.sources import RAW_DDL
from kgctl.pipelines.transforms import decode
from kgctl.pipelines.transforms.key_kinds import KEY_KINDS
from tests.kgctl.pipelines.transforms.oracle_decode import expected
from tests.kgctl.pipelines.transforms.records import RECORDS, Record, damaged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

APPENDED = datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)
COMMIT_KEY = encode_key(OffsetCommitKey("g", "t", 7))
GROUP_KEY = encode_key(GroupMetadataKey("g"))
NAMES = {kind.version: (kind.group_type, kind.name) for kind in KEY_KINDS}


def frame(spark: SparkSession, records: list[Record]) -> DataFrame:
    rows = [(key, value, "__consumer_offsets", 4, offset, APPENDED, 1) for offset, (key, value) in enumerate(records)]
    return spark.createDataFrame(rows, RAW_DDL)


def generated(count: int, number: int) -> list[Record]:
    """2 * `count` records from Hypothesis, reproducible by `number`; every second one is damaged."""
    found: list[Record] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(RECORDS, min_size=2, max_size=2))
    def draw(records: list[Record]) -> None:
        found.extend(records)

    draw()
    randomness = random.Random(number)
    return [damaged(record, randomness) if randomness.random() < 0.5 else record for record in found]


def as_utc(value: object) -> object:
    # Spark returns times in the session's zone, without naming it.
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def plain(value: object) -> object:
    """Rows as nested tuples."""
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    if isinstance(value, list):
        return [plain(part) for part in value]
    return as_utc(value)


# Written by hand from Kafka's OffsetCommitValue.json.
TIME = "0000018bcfe56800"
WHEN = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
GOLDEN = [
    # version, offset, metadata "mé", commit time
    ("0000000000000000000500036dc3a9" + TIME, (5, None, "mé", WHEN, None, 0, False)),
    # with an expiry time
    ("000100000000000000050000" + TIME + TIME, (5, None, "", WHEN, WHEN, 1, False)),
    ("000200000000000000050000" + TIME, (5, None, "", WHEN, None, 2, False)),
    # the leader epoch before the metadata
    ("00037fffffffffffffff0000000200016d" + TIME, (2**63 - 1, 2, "m", WHEN, None, 3, False)),
    ("00030000000000000005ffffffff0000" + TIME, (5, None, "", WHEN, None, 3, False)),
    # the metadata's length plus one as a varint, no tagged fields
    ("0004000000000000000500000002026d" + TIME + "00", (5, 2, "m", WHEN, None, 4, False)),
    # a tagged field 1 of two bytes
    ("000400000000000000050000000201" + TIME + "010102beef", (5, 2, "", WHEN, None, 4, False)),
]


MALFORMED = [
    # metadata that is null
    ("0003000000000000000500000002ffff" + TIME, "malformed value"),
    ("000400000000000000050000000200" + TIME + "00", "malformed value"),
    # half a character
    ("00030000000000000005000000020001c3" + TIME, "malformed value"),
    # a tagged field that is longer than the rest
    ("000400000000000000050000000201" + TIME + "010102be", "malformed value"),
    # a varint of six bytes
    ("0004000000000000000500000002808080808001" + TIME + "00", "malformed value"),
    ("00050000000000000005000000020000" + TIME, "unknown value version"),
    ("ffff0000000000000005000000020000" + TIME, "unknown value version"),
]


EDGES: list[Record] = [(None, None), (b"", b"x"), (b"\0", None), (COMMIT_KEY, b""), (COMMIT_KEY, b"\0")]


@dataclass(frozen=True)
class Decoded:
    """The rows of all tables by log offset; `records` are the input, a record's index is its offset."""

    records: list[Record]
    kinds: Counter[str]
    commits: dict[int, Row]
    events: dict[int, Row]
    bad: dict[int, Row]


@pytest.fixture(scope="module")
def decoded(spark: SparkSession) -> Decoded:
    """All records of these tests, decoded at once; those by hand come first."""
    by_hand = [(COMMIT_KEY, bytes.fromhex(value)) for value, _ in (*GOLDEN, *MALFORMED)]
    records = [*by_hand, *EDGES, *generated(900, 1)]
    rows = decode.decode(frame(spark, records)).persist()
    try:
        return Decoded(
            records,
            Counter(row.kind for row in rows.select("kind").collect()),
            {row.log_offset: row for row in decode.commits(rows).collect()},
            {row.log_offset: row for row in decode.group_events(rows).collect()},
            {row.offset: row for row in decode.quarantine(rows).collect()},
        )
    finally:
        rows.unpersist()


def test_decode_agrees_with_the_brokers_decoders(decoded: Decoded) -> None:
    wanted = expected(decoded.records)
    commits, events, bad = decoded.commits, decoded.events, decoded.bad
    assert {offset: row.reason for offset, row in bad.items()} == wanted.quarantine
    assert all((row.key, row.value) == decoded.records[offset] for offset, row in bad.items())
    assert {offset: plain(tuple(row)[:10]) for offset, row in commits.items()} == wanted.commits
    found = {
        offset: plain((row.group, (row.group_type, row.kind), *tuple(row)[3:12])) for offset, row in events.items()
    }
    assert found == {offset: (row[0], NAMES[row[1]], *row[2:]) for offset, row in wanted.group_events.items()}
    for row in [*commits.values(), *events.values()]:
        assert (row.log_partition, as_utc(row.log_ts)) == (4, APPENDED)
    kinds = {"commit": len(commits), "group": len(events), "bad": len(bad), "skipped": len(wanted.skipped)}
    assert decoded.kinds == kinds
    assert decoded.kinds.total() == len(decoded.records)
    # Every case occurs often.
    assert min(len(commits), len(events), len(bad)) > 200
    assert set(wanted.quarantine.values()) == {
        "malformed key",
        "unknown key version",
        "malformed value",
        "unknown value version",
    }


def test_values_encoded_by_hand_are_decoded(decoded: Decoded) -> None:
    rows = [decoded.commits[offset] for offset in range(len(GOLDEN))]
    assert [plain(tuple(row)[:10]) for row in rows] == [("g", "t", 7, *row) for _, row in GOLDEN]


def test_malformed_commits_go_to_quarantine_with_the_reason(decoded: Decoded) -> None:
    rows = [decoded.bad[len(GOLDEN) + number] for number in range(len(MALFORMED))]
    assert [(row.key, row.value.hex(), row.reason) for row in rows] == [(COMMIT_KEY, *wanted) for wanted in MALFORMED]


def test_values_of_consumer_and_share_groups_are_json(spark: SparkSession) -> None:
    places = [TopicPartitions(topic_id=bytes(16), partitions=[1, 2])]
    member = ConsumerGroupMember(
        instance_id="i",
        rack_id=None,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["orders"],
        subscribed_topic_regex="o.*",
        rebalance_timeout_ms=7,
        server_assignor="uniform",
    )
    current = CurrentAssignment(
        member_epoch=4, previous_member_epoch=3, state=1, assigned_partitions=[], partitions_pending_revocation=places
    )
    share = ShareGroupMetadata(epoch=9, metadata_hash=1)
    values: list[tuple[int, Message]] = [(5, member), (8, current), (11, share)]
    records = [(encode_newer_key(kind, "g", "m"), encode_newer_value(value)) for kind, value in values]
    broken = (encode_newer_key(8, "g", "m"), records[1][1][:-1])
    rows = decode.group_events(decode.decode(frame(spark, [*records, broken, (records[0][0], None)]))).collect()
    found = [
        None if row.content is None else json.loads(row.content) for row in sorted(rows, key=lambda r: r.log_offset)
    ]
    assert (found[0]["subscribed_topic_names"], found[0]["subscribed_topic_regex"]) == (["orders"], "o.*")
    pending = [{"topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": [1, 2]}]
    assert (found[1]["member_epoch"], found[1]["partitions_pending_revocation"]) == (4, pending)
    assert found[2]["epoch"] == 9
    assert found[3:] == [None, None]


def test_tables_without_rows_have_their_schemas(spark: SparkSession) -> None:
    decoded = decode.decode(frame(spark, []))
    for table, rows in [
        (COMMITS, decode.commits(decoded)),
        (GROUP_EVENTS, decode.group_events(decoded)),
        (QUARANTINE, decode.quarantine(decoded)),
    ]:
        wanted = spark.createDataFrame([], table.ddl).schema
        assert rows.schema.simpleString() == wanted.simpleString()
