"""Restarts: acknowledged data survives, groups continue, and a stop answers waiting clients."""

from __future__ import annotations

import os
import time
from pathlib import Path

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.offsets_topic import OffsetCommitKey, decode_key, partition_for
from broker.protocol.record_batch import decode_records
from tests.harness.requests import (
    batch,
    commit_request,
    create_topic,
    fetch,
    fetch_request,
    heartbeat_request,
    join_alone,
    join_request,
    list_offset,
    metadata_of,
    produce,
    produce_request,
    values_of,
)
from tests.harness.running import RunningBroker, until
from tests.harness.wire_client import WireClient


def committed(client: WireClient, group: str) -> dict[str, int]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=group, topics=None)])
    (found,) = client.ask(request, 9).groups
    return {row.name: row.partitions[0].committed_offset for row in found.topics}


def test_topics_records_and_offsets_survive_a_restart(running: RunningBroker) -> None:
    with running.client() as client:
        topic_id = create_topic(client, "t", partitions=2).topic_id
        for number in range(10):
            produce(client, "t", b"%d" % number, partition=number % 2)
        client.ask(commit_request("g", None, "t", 3), 8)
        cluster_id = metadata_of(client).cluster_id
    for _ in range(2):
        running.restart()
        with running.client() as client:
            answer = metadata_of(client, "t", create=False)
            assert (answer.cluster_id, answer.topics[0].topic_id) == (cluster_id, topic_id)
            assert values_of(fetch(client, "t", 0)) == [b"0", b"2", b"4", b"6", b"8"]
            assert list_offset(client, "t", -1, partition=1).offset == 5
            assert committed(client, "g") == {"t": 3}
    with running.client() as client:
        assert produce(client, "t", b"next").base_offset == 5


def test_a_member_continues_in_its_generation_after_a_restart(running: RunningBroker) -> None:
    with running.client() as client:
        create_topic(client, "t")
        joined = join_alone(client, "g")
        client.ask(commit_request("g", joined, "t", 1), 8)
    running.restart()
    with running.client() as client:
        assert client.ask(heartbeat_request("g", joined), 3).error_code == ErrorCode.NONE
        answer = client.ask(commit_request("g", joined, "t", 2), 8)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        (group,) = client.ask(DescribeGroupsRequest(groups=["g"]), 5).groups
        assert (group.group_state, [member.member_id for member in group.members]) == ("Stable", [joined.member_id])
        assert committed(client, "g") == {"t": 2}


def test_groups_with_offsets_only_are_listed_after_a_restart(running: RunningBroker) -> None:
    with running.client() as client:
        create_topic(client, "t")
        for name in ("a", "b"):
            client.ask(commit_request(name, None, "t", 1), 8)
    running.restart()
    with running.client() as client:
        assert sorted(group.group_id for group in client.ask(ListGroupsRequest(), 4).groups) == ["a", "b"]


def test_a_commit_after_a_restart_keeps_the_offsets_that_it_does_not_name(running: RunningBroker) -> None:
    with running.client() as client:
        create_topic(client, "t")
        create_topic(client, "other")
        client.ask(commit_request("g", None, "t", 1), 8)
        client.ask(commit_request("g", None, "other", 2), 8)
    running.restart()
    with running.client() as client:
        client.ask(commit_request("g", None, "t", 3), 8)
        assert committed(client, "g") == {"t": 3, "other": 2}


def test_a_member_without_heartbeats_is_evicted_after_its_session_timeout(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, group_min_session_timeout_ms="100") as running, running.client() as client:
        joined = client.ask(join_request("g", session_timeout_ms=200), 3)

        def heartbeat() -> int:
            return int(client.ask(heartbeat_request("g", joined), 3).error_code)

        assert heartbeat() == ErrorCode.NONE
        until(lambda: client.ask(DescribeGroupsRequest(groups=["g"]), 5).groups[0].members == [])
        assert heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_whose_heartbeats_arrive_while_the_broker_is_stopped_stays(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, group_min_session_timeout_ms="100") as running, running.client() as client:
        joined = client.ask(join_request("g", session_timeout_ms=300), 3)
        sync = SyncGroupRequest(
            group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=[]
        )
        assert client.ask(sync, 2).error_code == ErrorCode.NONE
        running.call_soon(lambda: time.sleep(1.5))
        for _ in range(6):
            client.send(heartbeat_request("g", joined), 3)
            time.sleep(0.2)
        assert [client.receive().error_code for _ in range(6)] == [ErrorCode.NONE] * 6


def test_a_stop_answers_parked_fetches(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    client.send(fetch_request("t", 0, max_wait_ms=600_000), 12)
    until(lambda: len(running.broker.waiters) == 1)

    before = time.monotonic()
    running.stop()

    assert time.monotonic() - before < 5
    assert client.receive().responses[0].partitions[0].error_code == ErrorCode.NONE
    assert client.is_closed()


def test_a_stop_waits_neither_for_joins_nor_for_clients_that_do_not_read(running: RunningBroker) -> None:
    with running.client() as member, running.client() as waiting, running.client() as deaf:
        for number in range(50):
            metadata_of(member, f"t-{number}")
        join_alone(member, "g")
        waiting.send(join_request("g"), 3)
        frame = deaf.frame(fetch_request("t-0", 0), 12) + deaf.frame(fetch_request("t-1", 0), 12)
        deaf.send_bytes(frame)
        before = time.monotonic()
        running.stop()
        assert time.monotonic() - before < 6
        assert waiting.is_closed()


def test_commits_can_be_read_from_the_offsets_topic(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    partition = partition_for("g")
    with running.client() as reader:
        reader.send(fetch_request("__consumer_offsets", 0, partition=partition, max_wait_ms=30_000), 12)
        assert reader.is_quiet()
        client.ask(commit_request("g", None, "t", 5), 8)
        row = reader.receive().responses[0].partitions[0]
    (record,) = decode_records(bytes(row.records))
    assert record.key is not None
    assert decode_key(record.key) == OffsetCommitKey("g", "t", 0)
    again = fetch(client, "__consumer_offsets", 0, partition=partition)
    assert bytes(again.records) == bytes(row.records)
    assert list_offset(client, "__consumer_offsets", -1, partition=partition).offset == 1


def test_a_failed_write_closes_all_connections_and_is_the_reported_failure(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path / "data")
    running.start()
    with running.client() as client, running.client() as other:
        create_topic(client, "t")
        metadata_of(other)

        def fail() -> None:
            # Make the next write fail: its file is open for reading only.
            number = os.open(tmp_path / "data" / "store.db", os.O_RDONLY)
            partition = running.log.partition("t", 0)
            assert partition is not None
            segment = partition.active.file()
            os.dup2(number, segment.fd)
            os.close(number)

        produce(client, "t", b"fine")
        running.run(fail)
        client.send_bytes(client.frame(join_request("g"), 3))
        assert client.receive().error_code == ErrorCode.NONE
        client.send(produce_request("t", batch(b"lost")), 12)
        assert client.is_closed()
        assert other.is_closed()
    until(lambda: running.broker.failed.done())
    assert "data" in str(running.broker.failure)
    running.stop()
