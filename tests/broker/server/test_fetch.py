"""Fetch: what it reads, how much, and when it waits."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.record_batch import HEADER_BYTES
from broker.storage.segments import segment
from tests.harness.requests import (
    batch,
    create_topic,
    fetch,
    fetch_request,
    list_offset,
    produce,
    produce_request,
    values_of,
)
from tests.harness.running import DEADLINE_S, RunningBroker, until
from tests.harness.wire_client import WireClient


def test_every_version_reads_what_was_produced(client: WireClient) -> None:
    topic_id = create_topic(client, "t").topic_id
    produce(client, "t", b"a", b"b")
    request = fetch_request("t", 0)
    request.topics[0].topic_id = topic_id
    for version in FetchRequest.VERSIONS:
        answer = client.ask(request, version)
        (topic,) = answer.responses
        assert topic.topic_id == topic_id if version >= 13 else topic.topic == "t"
        (row,) = topic.partitions
        assert values_of(row) == [b"a", b"b"]
        assert (row.error_code, row.high_watermark, row.last_stable_offset) == (ErrorCode.NONE, 2, 2)
        assert answer.session_id == 0


def test_a_fetch_starts_with_the_batch_that_holds_its_offset(client: WireClient) -> None:
    create_topic(client, "t")
    produce(client, "t", b"a", b"b")
    produce(client, "t", b"c")

    assert values_of(fetch(client, "t", 1)) == [b"a", b"b", b"c"]
    assert values_of(fetch(client, "t", 2)) == [b"c"]
    assert values_of(fetch(client, "t", 3)) == []


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_an_offset_outside_the_log_is_out_of_range(client: WireClient, offset: int) -> None:
    create_topic(client, "t")
    produce(client, "t", b"a", b"b", b"c")

    row = fetch(client, "t", offset, max_wait_ms=10_000)

    assert (row.error_code, row.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_unknown_topics_partitions_and_ids_are_errors(client: WireClient) -> None:
    topic_id = create_topic(client, "t").topic_id

    assert fetch(client, "absent", 0, max_wait_ms=10_000).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(client, "t", 0, partition=1, max_wait_ms=10_000).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    request = fetch_request("", 0)
    request.topics[0].topic_id = bytes(15) + b"\1"
    assert client.ask(request, 17).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    request.topics[0].topic_id = topic_id
    assert client.ask(request, 17).responses[0].partitions[0].error_code == ErrorCode.NONE


def test_a_leader_epoch_that_is_not_ours_is_refused(client: WireClient) -> None:
    create_topic(client, "t")
    request = fetch_request("t", 0)
    for epoch, code in (
        (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (0, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
    ):
        request.topics[0].partitions[0].current_leader_epoch = epoch
        assert client.ask(request, 12).responses[0].partitions[0].error_code == code


def test_the_first_batch_is_returned_whole_whatever_the_limits(client: WireClient) -> None:
    create_topic(client, "t")
    produce(client, "t", b"x" * 1000)
    produce(client, "t", b"y" * 1000)

    assert values_of(fetch(client, "t", 0, max_bytes=10)) == [b"x" * 1000]
    assert values_of(fetch(client, "t", 0, partition_max_bytes=10)) == [b"x" * 1000]
    assert values_of(fetch(client, "t", 0, max_bytes=0)) == [b"x" * 1000]
    assert len(values_of(fetch(client, "t", 0, partition_max_bytes=3000))) == 2


def test_max_bytes_limits_all_partitions_together(client: WireClient) -> None:
    create_topic(client, "t", partitions=3)
    for partition in range(3):
        produce(client, "t", b"x" * 1000, partition=partition)
    request = fetch_request("t", 0, max_bytes=2500)
    request.topics[0].partitions = [
        FetchRequest.Partition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
        for partition in (2, 0, 1)
    ]

    rows = client.ask(request, 12).responses[0].partitions

    assert [len(values_of(row)) for row in rows] == [1, 1, 0]
    assert [row.partition_index for row in rows] == [2, 0, 1]


def test_read_committed_returns_an_empty_list_of_aborted_transactions(client: WireClient) -> None:
    create_topic(client, "t")
    assert fetch(client, "t", 0).aborted_transactions is None
    assert fetch(client, "t", 0, isolation_level=1).aborted_transactions == []


def test_a_fetch_that_finds_nothing_ends_after_max_wait(client: WireClient) -> None:
    create_topic(client, "t")

    before = time.monotonic()
    row = fetch(client, "t", 0, max_wait_ms=150)

    assert 0.15 <= time.monotonic() - before < 2
    assert (row.error_code, values_of(row)) == (ErrorCode.NONE, [])


def test_a_fetch_of_no_partitions_does_not_wait(client: WireClient) -> None:
    before = time.monotonic()
    assert client.ask(FetchRequest(max_wait_ms=5000, min_bytes=1, topics=[]), 12).responses == []
    assert time.monotonic() - before < 2


def test_a_produce_wakes_the_fetches_of_its_partition(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t", partitions=2)
    readers = [running.client() for _ in range(3)]
    for reader in readers:
        reader.send(fetch_request("t", 0, max_wait_ms=60_000), 12)
    until(lambda: len(running.broker.waiters) == 3)

    produce(client, "t", b"elsewhere", partition=1)
    assert len(running.broker.waiters) == 3
    produce(client, "t", b"here")

    for reader in readers:
        assert values_of(reader.receive().responses[0].partitions[0]) == [b"here"]
        reader.close()


def test_a_fetch_pipelined_behind_a_produce_does_not_wait(client: WireClient) -> None:
    create_topic(client, "t")
    for offset in range(5):
        before = time.monotonic()
        produced = client.frame(produce_request("t", batch(b"here")), 12)
        client.send_bytes(produced + client.frame(fetch_request("t", offset, max_wait_ms=8000), 12))
        client.receive()
        assert values_of(client.receive().responses[0].partitions[0]) == [b"here"]
        assert time.monotonic() - before < 4


def hold(held: threading.Event, resumed: threading.Event) -> None:
    held.set()
    resumed.wait(DEADLINE_S)


def test_a_fetch_read_in_the_same_loop_turn_as_a_produce_does_not_wait(
    running: RunningBroker, client: WireClient
) -> None:
    create_topic(client, "t")
    with running.client() as reader:
        for offset in range(5):
            held, resumed = threading.Event(), threading.Event()
            running.call_soon(partial(hold, held, resumed))
            assert held.wait(DEADLINE_S)
            # The next turn of the loop reads what both clients send while it is held.
            client.send(produce_request("t", batch(b"here")), 12)
            reader.send(fetch_request("t", offset, max_wait_ms=8000), 12)
            before = time.monotonic()
            resumed.set()
            assert values_of(reader.receive().responses[0].partitions[0]) == [b"here"]
            assert time.monotonic() - before < 4
            client.receive()


def test_a_fetch_waits_for_min_bytes(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    with running.client() as reader:
        reader.send(fetch_request("t", 0, max_wait_ms=60_000, min_bytes=2500), 12)
        produce(client, "t", b"x" * 1000)
        produce(client, "t", b"y" * 1000)
        assert reader.is_quiet()
        produce(client, "t", b"z" * 1000)
        assert len(values_of(reader.receive().responses[0].partitions[0])) == 3


def test_a_fetch_returns_fewer_than_min_bytes_after_max_wait(client: WireClient) -> None:
    create_topic(client, "t")
    produce(client, "t", b"x")
    assert values_of(fetch(client, "t", 0, max_wait_ms=100, min_bytes=1 << 20)) == [b"x"]


@pytest.mark.parametrize(("limit", "value"), [("SLICE_BATCHES", 3), ("SLICE_BYTES", 3 * (1000 + HEADER_BYTES + 20))])
def test_a_fetch_reads_no_more_than_is_checked_quickly(
    client: WireClient, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(segment, limit, value)
    create_topic(client, "t")
    values = [bytes([number]) * 1000 for number in range(8)]
    for each in values:
        produce(client, "t", each)

    # It does not wait for the bytes that it left out.
    for first in (0, 3):
        assert values_of(fetch(client, "t", first, max_wait_ms=60_000, min_bytes=5000)) == values[first : first + 3]
    assert values_of(fetch(client, "t", 6)) == values[6:]
    monkeypatch.setattr(segment, limit, 1)
    assert values_of(fetch(client, "t", 6)) == values[6:7]


def test_deleting_a_topic_ends_the_fetches_that_wait_for_it(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    with running.client() as reader:
        reader.send(fetch_request("t", 0, max_wait_ms=60_000), 12)
        until(lambda: len(running.broker.waiters) == 1)
        client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        assert reader.receive().responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_large_answer_holds_the_bytes_that_were_produced(client: WireClient) -> None:
    create_topic(client, "t")
    value = bytes(range(256)) * 3000
    for _ in range(5):
        assert produce(client, "t", value).error_code == ErrorCode.NONE

    row = fetch(client, "t", 0, max_bytes=8 << 20, partition_max_bytes=8 << 20)

    assert values_of(row) == [value] * 5


def test_concurrent_readers_and_writers_lose_nothing(running: RunningBroker) -> None:
    with running.client() as maker:
        create_topic(maker, "t")
    read: list[Any] = []

    def consume() -> None:
        with running.client() as reader:
            while len(read) < 400:
                read.extend(values_of(fetch(reader, "t", len(read), max_wait_ms=5000)))

    def write(writer: int) -> None:
        with running.client() as client:
            frames = [
                client.frame(produce_request("t", batch(b"%d-%d" % (writer, number))), 12) for number in range(100)
            ]
            client.send_bytes(b"".join(frames))
            for _ in frames:
                client.receive()

    threads = [threading.Thread(target=consume)]
    threads += [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert len(read) == 400
    for writer in range(4):
        mine = [value for value in read if value.startswith(b"%d-" % writer)]
        assert mine == [b"%d-%d" % (writer, number) for number in range(100)]


def test_a_fetch_does_not_wait_at_the_end_of_a_file(client: WireClient) -> None:
    create_topic(client, "t", segment_bytes="1048576")
    for _ in range(12):
        produce(client, "t", b"x" * 100_000)
    row = fetch(client, "t", 8, max_wait_ms=600_000, min_bytes=900_000)
    # The first file has ten of the batches.
    assert len(values_of(row)) == 2


@pytest.mark.parametrize("size", [1000, 300_000])
def test_a_damaged_record_is_an_error_of_its_partition_only(running: RunningBroker, size: int) -> None:
    with running.client() as client:
        create_topic(client, "damaged")
        create_topic(client, "whole")
        produce(client, "whole", b"fine")
        produce(client, "damaged", b"x" * size, timestamp=1)
    directory = running.log.topics["damaged"].topic_id.hex()
    running.stop()
    (path,) = (path for path in running.data_dir.rglob("*.log") if directory in str(path))
    with path.open("r+b") as segment:
        segment.seek(path.stat().st_size // 2)
        segment.write(b"y")
    running.start()
    with running.client() as client:
        row = fetch(client, "damaged", 0)
        assert (row.error_code, values_of(row)) == (ErrorCode.CORRUPT_MESSAGE, [])
        assert list_offset(client, "damaged", 0).error_code in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE)
        assert values_of(fetch(client, "whole", 0)) == [b"fine"]
    assert not running.broker.failed.done()


def test_a_cut_segment_takes_no_records_and_stops_no_other_partition(
    running: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with running.client() as client:
        for topic in ("cut", "whole"):
            create_topic(client, topic)
            produce(client, topic, b"x" * 500)
    directory = running.log.topics["cut"].topic_id.hex()
    running.stop()
    running.start()
    (path,) = (path for path in running.data_dir.rglob("*.log") if directory in str(path))
    os.truncate(path, 100)
    with running.client() as client:
        answer = client.ask(produce_request("cut", batch(b"more")), 12)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert any(f"{path} is truncated: it has 100 bytes" in message for message in caplog.messages)
        produce(client, "whole", b"fine")
        assert values_of(fetch(client, "whole", 0)) == [b"x" * 500, b"fine"]
        assert fetch(client, "cut", 0).error_code == ErrorCode.CORRUPT_MESSAGE
    assert not running.broker.failed.done()
