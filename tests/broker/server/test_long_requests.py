"""Large requests: their entries are limited, they run in slices, and duplicate entries are answered once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from broker.cores.groups.offsets import MAX_COMMITTED_PARTITIONS
from broker.protocol.codec import decode, encode
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_partitions import CreatePartitionsRequest
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_configs import DescribeConfigsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.wire_types import Message
from broker.server.declaration import FEWER_ENTRIES, MAX_ENTRIES, Slicing
from broker.server.handlers import SERVED_KEYS, find_declaration
from broker.server.slices import TURN_S, Slices
from tests.harness.requests import commit_request, create_topic
from tests.harness.running import RunningBroker

TOPIC, BROKER = 2, 4


def names(count: int) -> list[str]:
    return [f"g{number}" for number in range(count)]


def describing(count: int) -> Message:
    return DescribeGroupsRequest(groups=names(count))


def widening(count: int) -> Message:
    topics = [CreatePartitionsRequest.Topic(name=f"/{name}", count=2, assignments=None) for name in names(count)]
    return CreatePartitionsRequest(topics=topics, timeout_ms=1_000, validate_only=False)


def fetching(count: int) -> Message:
    """Three entries for each group but the first: the group, its topic and its partition."""
    asked = [
        OffsetFetchRequest.Group(
            group_id=name, topics=[OffsetFetchRequest.Topic(name="t", partition_indexes=[0] if at else [])]
        )
        for at, name in enumerate(names((count + 3) // 3))
    ]
    return OffsetFetchRequest(groups=asked)


@pytest.mark.parametrize(
    ("make", "limit"), [(describing, MAX_ENTRIES), (widening, FEWER_ENTRIES), (fetching, MAX_ENTRIES - 1)]
)
def test_a_request_at_the_limit_of_entries_is_answered_and_one_more_closes_the_connection(
    running: RunningBroker, make: Callable[[int], Message], limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "broker.server")
    with running.client(timeout_s=30) as client:
        assert client.ask(make(limit)) is not None
        client.send(make(limit + 1))
        assert client.is_closed()
    assert "Request has more than " in caplog.text
    assert f"{FEWER_ENTRIES if make is widening else MAX_ENTRIES} entries" in caplog.text


def test_ten_thousand_groups_in_one_request_are_answered_in_order(running: RunningBroker) -> None:
    asked = names(10_000)
    with running.client(timeout_s=30) as client:
        create_topic(client, "t")
        client.ask(commit_request("g7777", None, "t", 5), 8)
        fetched = client.ask(
            OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=name, topics=None) for name in asked]), 8
        ).groups
        assert [group.group_id for group in fetched] == asked
        assert [group.group_id for group in fetched if group.topics] == ["g7777"]
        described = client.ask(DescribeGroupsRequest(groups=asked), 5).groups
        assert [group.group_id for group in described] == asked
        assert [group.group_id for group in described if group.group_state == "Empty"] == ["g7777"]
        found = client.ask(FindCoordinatorRequest(coordinator_keys=asked), 4).coordinators
        assert [row.key for row in found] == asked
        deleted = client.ask(DeleteGroupsRequest(groups_names=asked), 2).results
        assert [row.group_id for row in deleted if not row.error_code] == ["g7777"]


def test_a_request_behind_a_long_one_is_answered_after_it(running: RunningBroker) -> None:
    with running.client(timeout_s=30) as client:
        client.send(DescribeGroupsRequest(groups=names(1_000)), 5)
        client.send(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
        assert len(client.receive().groups) == 1_000
        assert client.receive().error_code == ErrorCode.UNKNOWN_MEMBER_ID


class Turns:
    """A test double of connection, exchange and runner that records callbacks and the sizes of slices."""

    def __init__(self, asked: list[str], size: int, slice_s: float = TURN_S * 1.01) -> None:
        self.now_s, self.slice_s = 0.0, slice_s
        self.sizes: list[int] = []
        self.answers: list[Any] = []
        self.waiting: list[Callable[[], None]] = []
        self.version, self.client_id, self.connection = 5, "c", self
        self.abandon: Callable[[], None] = lambda: None
        stands_in: Any = self
        slicing = Slicing("groups", "groups", str, size)
        self.slices = Slices(DescribeGroupsRequest(groups=asked), slicing, stands_in, self.run)
        self.slices.resume()

    def run(self, request: Any, waiting: Any) -> None:
        self.sizes.append(len(request.groups))
        self.now_s += self.slice_s
        rows = [
            DescribeGroupsResponse.Group(
                group_id=group_id, group_state="Dead", protocol_type="", protocol_data="", members=[]
            )
            for group_id in request.groups
        ]
        waiting.answer(DescribeGroupsResponse(groups=rows))

    def soon(self, run: Callable[[], None]) -> None:
        self.waiting.append(run)

    def answer(self, response: Any) -> None:
        decoded = decode(DescribeGroupsResponse, encode(response, self.version), self.version)
        self.answers.append([group.group_id for group in decoded.groups])

    def turn(self) -> None:
        due, self.waiting = self.waiting, []
        for run in due:
            run()


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (1, [1]), (10, [10]), (11, [10, 1]), (35, [10, 10, 10, 5])])
def test_a_turn_runs_one_slice_of_at_most_its_size(count: int, sizes: list[int]) -> None:
    turns = Turns(names(count), 10)
    for done in range(1, len(sizes) + 1):
        assert turns.sizes == sizes[:done]
        assert bool(turns.answers) == (done == len(sizes))
        turns.turn()
    (answer,) = turns.answers
    assert answer == names(count)
    assert not turns.waiting


def test_short_slices_share_a_turn() -> None:
    turns = Turns(names(100), 10, TURN_S * 0.3)
    assert turns.sizes == [10] * 4
    turns.turn()
    assert turns.sizes == [10] * 8
    turns.turn()
    assert turns.answers == [names(100)]


def test_duplicate_entries_are_answered_once() -> None:
    turns = Turns([*names(10), *names(10), "g3"] * 50, 10)
    assert turns.sizes == [10]
    assert turns.answers == [names(10)]


def test_a_disconnect_ends_a_long_request() -> None:
    turns = Turns(names(30), 10)
    turns.abandon()
    turns.turn()
    assert (turns.sizes, turns.answers, turns.waiting) == ([10], [], [])


def test_slices_are_small() -> None:
    declared = [find_declaration(key) for key in SERVED_KEYS]
    sizes = {found.request.API_KEY: found.slicing.size for found in declared if found and found.slicing}
    tens = dict.fromkeys((9, 10, 15, 42, 65, 69, 77, 90, 10000, 10001), 10)
    assert sizes == {**tens, 19: 20, 20: 1, 30: 100, 32: 5}


def test_entries_for_the_same_group_or_resource_that_differ_are_all_answered(running: RunningBroker) -> None:
    with running.client() as client:
        create_topic(client, "t", 2)
        for partition in (0, 1):
            client.ask(commit_request("g", None, "t", 5 + partition, partition=partition), 8)
        one, other = ([OffsetFetchRequest.Topic(name="t", partition_indexes=[partition])] for partition in (0, 1))
        asked = [OffsetFetchRequest.Group(group_id="g", topics=topics) for topics in (one, other, one, None, None)]
        groups = client.ask(OffsetFetchRequest(groups=asked), 8).groups
        assert [[p.committed_offset for t in group.topics for p in t.partitions] for group in groups] == [
            [5],
            [6],
            [5, 6],
        ]
        resources = [
            DescribeConfigsRequest.Resource(resource_type=TOPIC, resource_name="t", configuration_keys=keys)
            for keys in (["retention.ms"], ["segment.bytes", "retention.ms"], ["retention.ms", "segment.bytes"])
        ]
        results = client.ask(DescribeConfigsRequest(resources=resources), 4).results
        assert [len(row.configs) for row in results] == [1, 2]


def test_a_long_request_that_fails_closes_its_connection_only(
    running: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    count = 2_000
    asked = [DescribeConfigsRequest.Resource(resource_type=TOPIC, resource_name=f"g{n}") for n in range(count)]
    with running.client() as client, running.client() as other:
        create_topic(client, f"g{count - 1}")
        # A text that is no number stands for any failure.
        running.run(lambda: running.log.topics[f"g{count - 1}"].configs.update({"retention.ms": "x"}))
        client.send(DescribeConfigsRequest(resources=asked), 4)
        assert client.is_closed()
        assert len(other.ask(DescribeConfigsRequest(resources=asked[:-1]), 4).results) == count - 1
    assert "a request from /127.0.0.1 failed" in caplog.text


def test_duplicate_config_resources_are_answered_once_and_a_broker_has_one_name(running: RunningBroker) -> None:
    with running.client() as client:
        create_topic(client, "t")
        asked = [(TOPIC, "t"), (BROKER, "1"), (TOPIC, "t"), (BROKER, "01"), (BROKER, "+1")]
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name) for kind, name in asked]
        )
        results = client.ask(request, 4).results
        assert [(row.resource_type, row.resource_name, bool(row.configs)) for row in results] == [
            (TOPIC, "t", True),
            (BROKER, "1", True),
            (BROKER, "01", False),
            (BROKER, "+1", False),
        ]
        assert {row.error_code for row in results[2:]} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize(("count", "error"), [(0, ErrorCode.NONE), (1, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)])
def test_a_commit_of_too_many_offsets_commits_none(running: RunningBroker, count: int, error: ErrorCode) -> None:
    with running.client(timeout_s=30) as client:
        create_topic(client, "t")
        rows = [
            OffsetCommitRequest.Partition(partition_index=0, committed_offset=at, committed_metadata="")
            for at in range(MAX_COMMITTED_PARTITIONS + count)
        ]
        topic = OffsetCommitRequest.Topic(name="t", partitions=rows)
        request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=[topic])
        (answered,) = client.ask(request, 8).topics
        assert {row.error_code for row in answered.partitions} == {error}
        committed = client.ask(OffsetFetchRequest(group_id="g", topics=None), 7).topics
        assert bool(committed) == (error == ErrorCode.NONE)
