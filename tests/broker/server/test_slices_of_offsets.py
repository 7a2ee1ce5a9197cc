"""Requests about many offsets or groups run in slices, and their answers are as complete as short ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.cores.groups.offsets import FETCHED_AT_ONCE
from broker.cores.groups.records import OffsetCommitRecord, to_row
from broker.protocol.codec import decode, encode
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from broker.protocol.wire_types import Gradual
from broker.server.declaration import Slicing
from broker.server.gradual import Turns, encoded
from broker.server.handlers.fetch import TURN_S, fetch
from broker.server.handlers.offset_delete import PART, parts
from broker.server.slices import Slices
from broker.storage import OFFSETS_TOPIC, RowPartition, TopicRow
from broker.storage.rows.row_topic import TIMESTAMPS_AT_ONCE
from tests.harness.requests import create_topic, list_offset
from tests.harness.running import RunningBroker, until
from tests.harness.stores import NOW, open_log
from tests.harness.wire_client import WireClient

MANY = 2 * FETCHED_AT_ONCE + 500


def commit(client: WireClient, group: str, topic: str, count: int, offset: int = 7) -> None:
    rows = [
        OffsetCommitRequest.Partition(partition_index=at, committed_offset=offset + at, committed_metadata="")
        for at in range(count)
    ]
    topics = [OffsetCommitRequest.Topic(name=topic, partitions=rows)]
    request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
    assert not any(row.error_code for row in client.ask(request, 8).topics[0].partitions)


def fetch_all(client: WireClient, group: str, version: int = 8) -> dict[str, dict[int, int]]:
    if version < 8:
        topics = client.ask(OffsetFetchRequest(group_id=group, topics=None), version).topics
    else:
        asked = [OffsetFetchRequest.Group(group_id=name, topics=None) for name in (group, "nobody")]
        found, nobody = client.ask(OffsetFetchRequest(groups=asked), version).groups
        assert nobody.topics == []
        topics = found.topics
    return {topic.name: {p.partition_index: p.committed_offset for p in topic.partitions} for topic in topics}


@pytest.mark.parametrize("version", [2, 7, 8, 9])
def test_all_offsets_of_a_large_group_are_fetched(running: RunningBroker, version: int) -> None:
    expected = {"t": {at: 7 + at for at in range(MANY)}, "u": {0: 7}}
    with running.client(timeout_s=30) as client:
        create_topic(client, "t", MANY)
        create_topic(client, "u")
        commit(client, "g", "t", MANY)
        commit(client, "g", "u", 1)
        assert fetch_all(client, "g", version) == expected
        running.restart()
    with running.client(timeout_s=30) as client:
        assert fetch_all(client, "g", version) == expected


def test_a_gradual_answer_has_the_same_bytes_and_one_slice_for_each_chunk() -> None:
    def response() -> OffsetFetchResponse:
        def topic(name: str) -> OffsetFetchResponse.Topic:
            partitions: Any = Gradual(range(25), partition, 10)
            return OffsetFetchResponse.Topic(name=name, partitions=partitions)

        def partition(at: int) -> OffsetFetchResponse.Partition:
            return OffsetFetchResponse.Partition(partition_index=at, committed_offset=at, metadata="m")

        topics: Any = Gradual(["a", "b", "c"], topic, 2)
        return OffsetFetchResponse(groups=[OffsetFetchResponse.Group(group_id="g", topics=topics)])

    whole = encode(response(), 8)
    in_slices = response()
    slices = sum(1 for _ in encoded(in_slices, 8))
    assert encode(in_slices, 8) == whole
    assert slices == 3 * 3 + 2
    assert [len(topic.partitions) for topic in decode(OffsetFetchResponse, whole, 8).groups[0].topics] == [25] * 3


def test_turns_give_way_and_end_with_their_client() -> None:
    waiting: list[Any] = []
    answers: list[Any] = []
    exchange: Any = SimpleNamespace(
        connection=SimpleNamespace(now_s=0.0, soon=waiting.append), answer=answers.append, abandon=None, complete=None
    )
    made: list[int] = []

    def steps() -> Any:
        for number in range(4):
            made.append(number)
            exchange.connection.now_s += 1
            yield
        return ListGroupsResponse(groups=[])

    Turns(exchange, steps()).resume()
    for turn in range(1, 4):
        assert len(made) == turn
        assert not answers
        waiting.pop()()
    waiting.pop()()
    assert len(answers) == 1
    Turns(exchange, steps()).resume()
    exchange.abandon()
    waiting.pop()()
    assert (len(made), len(answers), waiting) == (5, 1, [])


def test_a_slice_that_takes_several_turns_ends_with_its_client() -> None:
    ended: list[bool] = []
    exchange: Any = SimpleNamespace(
        version=5, client_id="", connection=SimpleNamespace(now_s=0.0, soon=None), abandon=None, complete=None
    )

    def run(_: Any, answerable: Any) -> None:
        answerable.abandon = lambda: ended.append(True)

    slicing = Slicing("groups", "groups", lambda name: name, 1)
    Slices(DescribeGroupsRequest(groups=["a", "b"]), slicing, exchange, run).resume()
    exchange.abandon()
    assert ended == [True]


def test_many_groups_are_listed(tmp_path: Path) -> None:
    names = {f"g{number}" for number in range(1_200)}
    log = open_log(tmp_path, durability="process")
    log.append_rows(OFFSETS_TOPIC, [to_row(OffsetCommitRecord(name, "t", 0, 1, -1, "", NOW)) for name in names])
    log.flush()
    log.close()
    with RunningBroker(tmp_path) as running, running.client() as client:
        for version in (0, 4, 5):
            assert {group.group_id for group in client.ask(ListGroupsRequest(), version).groups} == names
        assert client.ask(ListGroupsRequest(states_filter=["Stable"]), 4).groups == []


def deletion(count: int) -> OffsetDeleteRequest:
    rows = [OffsetDeleteRequest.Partition(partition_index=at) for at in range(count)]
    topics = [OffsetDeleteRequest.Topic(name="t", partitions=rows), OffsetDeleteRequest.Topic(name="e", partitions=[])]
    return OffsetDeleteRequest(group_id="g", topics=topics)


def test_a_long_deletion_of_offsets_is_cut_into_parts() -> None:
    cut = list(parts(deletion(2 * PART + 1)))
    assert [sum(len(topic.partitions) for topic in part.topics) for part in cut] == [PART, PART, 1]
    assert [[topic.name for topic in part.topics] for part in cut] == [["t"], ["t"], ["t", "e"]]


def test_many_offsets_are_deleted_by_one_request(running: RunningBroker) -> None:
    count = 2 * PART + 1
    with running.client(timeout_s=30) as client:
        create_topic(client, "t", count)
        commit(client, "g", "t", count)
        # The last partition does not exist.
        answered = client.ask(deletion(count + 1), 0)
        found, empty = answered.topics
        assert (found.name, empty.name, empty.partitions) == ("t", "e", [])
        assert [row.partition_index for row in found.partitions] == list(range(count + 1))
        codes = [row.error_code for row in found.partitions]
        assert codes == [ErrorCode.NONE] * count + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert fetch_all(client, "g") == {}
        unknown = deletion(count)
        unknown.group_id = "nobody"
        refused = client.ask(unknown, 0)
        assert (refused.error_code, refused.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


@pytest.mark.parametrize("restart", [False, True])
def test_a_topic_that_is_created_again_has_no_old_offsets_and_keeps_new_ones(
    running: RunningBroker, restart: bool
) -> None:
    with running.client(timeout_s=30) as client:
        create_topic(client, "t", MANY)
        for group in ("g", "h", "gone"):
            commit(client, group, "t", MANY)
    if restart:
        running.restart()
    with running.client(timeout_s=30) as client:
        assert client.ask(DeleteGroupsRequest(groups_names=["gone"]), 2).results[0].error_code == ErrorCode.NONE
        topics = [DeleteTopicsRequest.Topic(name="t", topic_id=bytes(16))]
        assert client.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1), 6).responses[0].error_code == ErrorCode.NONE
        create_topic(client, "t", MANY)
        commit(client, "g", "t", 2, offset=100)
        assert (fetch_all(client, "g"), fetch_all(client, "h")) == ({"t": {0: 100, 1: 101}}, {})
        running.restart()
    with running.client(timeout_s=30) as client:
        assert "gone" not in {group.group_id for group in client.ask(ListGroupsRequest(), 4).groups}
        assert (fetch_all(client, "g"), fetch_all(client, "h")) == ({"t": {0: 100, 1: 101}}, {})
        until(lambda: running.run(lambda: not running.log.groups.has_removals))
        assert (fetch_all(client, "g"), fetch_all(client, "h")) == ({"t": {0: 100, 1: 101}}, {})
        ends = [list_offset(client, OFFSETS_TOPIC, -1, partition=at).offset for at in range(50)]
        # Each offset has a tombstone, a successor or both, and the deleted group a tombstone.
        assert 6 * MANY + 1 <= sum(ends) <= 6 * MANY + 3


def test_a_search_by_time_reads_a_slice_of_rows_at_a_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, durability="process")
    count = 3 * TIMESTAMPS_AT_ONCE + 1
    log.append_rows(OFFSETS_TOPIC, [TopicRow(1, b"key", b"value", NOW + at) for at in range(count)])
    log.flush()
    partition = log.partition(OFFSETS_TOPIC, 1)
    assert isinstance(partition, RowPartition)
    assert sum(1 for _ in partition.search_max_timestamp()) == 4
    assert sum(1 for _ in partition.search_timestamp(NOW + TIMESTAMPS_AT_ONCE)) == 1
    assert partition.offset_for_timestamp(NOW + TIMESTAMPS_AT_ONCE) == (TIMESTAMPS_AT_ONCE, NOW + TIMESTAMPS_AT_ONCE)
    assert partition.offset_of_max_timestamp() == (count - 1, NOW + count - 1)
    assert partition.offset_for_timestamp(NOW + count) is None
    log.close()


class Slow:
    """A connection on which each look at the clock takes more than a turn."""

    def __init__(self) -> None:
        self._now_s = 0.0

    @property
    def now_s(self) -> float:
        self._now_s += 1.1 * TURN_S
        return self._now_s


def test_a_fetch_that_reads_for_long_is_answered_with_what_it_has(tmp_path: Path) -> None:
    log = open_log(tmp_path, durability="process")
    log.append_rows(OFFSETS_TOPIC, [TopicRow(at % 4, b"key", b"value", NOW) for at in range(40)])
    log.flush()
    asked = [
        FetchRequest.Partition(partition=at, fetch_offset=0, partition_max_bytes=1 << 20) for at in (9, 0, 1, 2, 3)
    ]
    request = FetchRequest(
        max_wait_ms=10_000,
        min_bytes=1 << 20,
        max_bytes=1 << 20,
        topics=[FetchRequest.Topic(topic=OFFSETS_TOPIC, partitions=asked)],
    )
    answers: list[Any] = []
    exchange: Any = SimpleNamespace(connection=Slow(), version=11, answer=answers.append, work=None)
    resources: Any = SimpleNamespace(log=log, config=SimpleNamespace(fetch_max_bytes=1 << 20), authorizer=None)
    fetch(request, exchange, resources)
    (answer,) = answers
    rows = answer.responses[0].partitions
    assert [row.partition_index for row in rows if len(row.records)] == [0]
    assert all(row.error_code == ErrorCode.NONE and row.high_watermark == 10 for row in rows[1:])
    log.close()
