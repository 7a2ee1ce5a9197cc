"""`kgctl groups lag` on running clusters: lag in time, rates and retention headroom of real logs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill, member_of

HOUR_MS = 3_600_000


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Three partitions: 100 records from two hours ago and 50 that are new, 50 from one hour ago, none."""
    name = fresh("orders")
    done = kgctl("topics", "create", name, "--partitions", 3, "--config", f"retention.ms={3 * HOUR_MS}")
    assert done.exit_code == 0, done.output
    now_ms = int(time.time() * 1000)
    fill(kgctl, name, [100, 50], now_ms - 2 * HOUR_MS)
    fill(kgctl, name, [50])
    return name


def about(milliseconds: int | None, expected: int) -> bool:
    return milliseconds is not None and abs(milliseconds - expected) < 120_000


def test_one_snapshot_shows_lag_in_time_and_retention_headroom(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=10, p1=50, p2=0)
    old, read, empty = kgctl.rows("groups", "lag", group)
    assert (old["partition"], old["lag"], old["rate_in"], old["eta_s"]) == (0, 140, None, None)
    assert about(old["time_lag_ms"], 2 * HOUR_MS)
    assert about(old["span_ms"], 2 * HOUR_MS)
    assert about(old["headroom_ms"], HOUR_MS)
    assert old["confidence"] == {"time_lag_ms": "medium", "span_ms": "medium", "headroom_ms": "medium"}
    for row in (read, empty):
        assert (row["lag"], row["time_lag_ms"], row["eta_s"], row["headroom_ms"]) == (0, 0, 0.0, None)


def test_two_groups_on_one_partition_have_their_own_lag_in_time(kgctl: Kgctl, topic: str) -> None:
    one, two = sorted([fresh("one"), fresh("two")])
    kgctl.commit(one, topic, p0=10)
    kgctl.commit(two, topic, p0=120)
    first, second = kgctl.rows("groups", "lag", one, two)
    assert (first["group"], first["lag"], second["group"], second["lag"]) == (one, 140, two, 30)
    assert about(first["time_lag_ms"], 2 * HOUR_MS)
    assert about(second["time_lag_ms"], 0)


def test_sums_by_topic_member_and_group(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=10, p1=40)
    with member_of(kgctl, group, {topic: [0]}) as member_id:
        (total,) = kgctl.rows("groups", "lag", group, "--by", "group")
        assert (total["partitions"], total["lag"]) == (2, 150)
        assert about(total["time_lag_ms"], 2 * HOUR_MS)
        (of_topic,) = kgctl.rows("groups", "lag", group, "--by", "topic")
        assert (of_topic["topic"], of_topic["lag"]) == (topic, 150)
        of_members = {row["consumer_id"]: row["lag"] for row in kgctl.rows("groups", "lag", group, "--by", "member")}
        assert of_members == {member_id: 140, None: 10}


def test_a_commit_past_the_end_and_lost_records_are_noted(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p1=50)
    assert kgctl("topics", "delete", topic, "--execute").exit_code == 0
    deadline = time.monotonic() + 20
    while (made := kgctl("topics", "create", topic, "--partitions", 3)).exit_code and time.monotonic() < deadline:
        time.sleep(0.1)
    assert made.exit_code == 0, made.output
    rows = [row for row in kgctl.rows("groups", "lag", group) if row["lag"] is not None]
    # Kafka deletes the commits of a deleted topic, ours too: then there is nothing past the end.
    assert all((row["lag"], row["time_lag_ms"], row["headroom_ms"]) == (-50, None, None) for row in rows)


@pytest.fixture
def reading(kgctl: Kgctl, topic: str) -> Iterator[str]:
    """A group whose consumer reads about 100 records/s and commits twice a second."""
    group, over = fresh("g"), threading.Event()
    consumer = Consumer(
        {
            "bootstrap.servers": kgctl.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    has_committed = threading.Event()

    def consume() -> None:
        while not over.is_set():
            if consumer.consume(10, 0.5):
                consumer.commit(asynchronous=False)
                has_committed.set()
            over.wait(0.4)
        consumer.close()

    thread = threading.Thread(target=consume, daemon=True)
    thread.start()
    try:
        assert has_committed.wait(30)
        yield group
    finally:
        over.set()
        thread.join(10)


def test_a_sample_shows_rates_and_the_time_to_drain(kgctl: Kgctl, topic: str, reading: str) -> None:
    (total,) = kgctl.rows("groups", "lag", reading, "--sample", "2s", "--by", "topic")
    by_partition = kgctl.rows("groups", "lag", reading, "--sample", "2s")
    rated = [row for row in [*by_partition, total] if row["rate_out"]]
    assert rated
    assert all(0 < row["rate_out"] < 500 and row["rate_in"] == 0 for row in rated)
    assert all(row["confidence"]["rate_out"] in ("low", "medium") for row in rated)
    assert all(row["eta_s"] is not None for row in by_partition if row["rate_out"] and row["lag"])


def test_the_table_fits_eighty_columns(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=10)
    header, row = kgctl("groups", "lag", group).stdout.splitlines()
    assert header.split() == ["GROUP", "TOPIC", "PARTITION", "LAG", "IN", "OUT", "TIME-LAG", "ETA", "DELETED-IN"]
    assert row.split()[:6] == [group, topic, "0", "140", "-", "-"]
    assert row.split()[6:] == ["2", "h", "-", "60", "min"]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "Name groups, or give --all."),
        (["g", "--all"], 2, "Give GROUP or --all, not both."),
        (["g", "--by", "moon"], 2, "'moon' is not one of partition, topic, member, group."),
        (["g", "--sample", "soon"], 2, "'soon' is not a duration"),
        (["g", "--sample", "2h"], 2, "'2h' is not between 1s and 1h."),
        (["no-such-group"], 5, "Consumer group 'no-such-group' does not exist."),
    ],
)
def test_what_cannot_work_is_refused(kgctl: Kgctl, arguments: list[str], code: int, sentence: str) -> None:
    result = kgctl("groups", "lag", *arguments)
    assert (result.exit_code, sentence in result.stderr) == (code, True), result.stderr
