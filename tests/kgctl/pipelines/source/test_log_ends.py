"""Partitions, log ends and offsets by time on a running broker."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source.log_ends import LogEnds, within
from kgctl.pipelines.source.losses import DataLoss
from kgctl.pipelines.source.option_names import BadOption
from kgctl.pipelines.source.options import read_options
from tests.harness.feeding import METADATA
from tests.harness.scripted_node import ScriptedNode, one_partition
from tests.kgctl.pipelines.source.topics import Topics


def ends_of(topics: Topics, **options: str) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    read = read_options({"kafka.bootstrap.servers": topics.bootstrap_servers, **options})
    with LogEnds(read.connection, committed_only=read.fetch.committed_only) as log_ends:
        bounds = log_ends.bounds(log_ends.partitions(read.selection))
        starting = log_ends.resolve(-2 if read.starting is None else read.starting, bounds, "startingOffsets")
        return starting, log_ends.resolve(read.ending, bounds, "endingOffsets")


def test_the_whole_topic_is_selected_by_default(topics: Topics) -> None:
    name = topics.make(partitions=2)
    topics.count(name, 5, partitions=2)
    zero, one = TopicPartition(name, 0), TopicPartition(name, 1)
    assert ends_of(topics, subscribe=name) == ({zero: 0, one: 0}, {zero: 3, one: 2})
    assert ends_of(topics, assign=f'{{"{name}": [1]}}') == ({one: 0}, {one: 2})


def test_offsets_by_partition_and_by_time(topics: Topics) -> None:
    name = topics.make()
    topics.fill(name, [{"value": b"x", "timestamp": 1000 * n, "partition": 0} for n in range(1, 11)])
    zero = TopicPartition(name, 0)
    assert ends_of(topics, subscribe=name, startingOffsets=f'{{"{name}": {{"0": -1}}}}')[0] == {zero: 10}
    given = {"startingTimestamp": "3000", "endingTimestamp": "7001"}
    assert ends_of(topics, subscribe=name, **given) == ({zero: 2}, {zero: 7})
    late = {"startingOffsetsByTimestampStrategy": "latest", "startingTimestamp": "99000"}
    assert ends_of(topics, subscribe=name, **late) == ({zero: 10}, {zero: 10})
    each = f'{{"{name}": {{"0": 2500}}}}'
    assert ends_of(topics, subscribe=name, startingOffsetsByTimestamp=each)[0] == {zero: 2}
    with pytest.raises(NotFound, match=f"{name}-0 has no record at or after 99000 ms"):
        ends_of(topics, subscribe=name, startingTimestamp="99000")


def test_offsets_must_name_exactly_the_selected_partitions(topics: Topics) -> None:
    name = topics.make(partitions=2)
    with pytest.raises(BadOption, match=f"leaves out {name}-1"):
        ends_of(topics, subscribe=name, startingOffsets=f'{{"{name}": {{"0": 0}}}}')
    with pytest.raises(BadOption, match=f"names {name}-2"):
        ends_of(topics, subscribe=name, startingOffsets=f'{{"{name}": {{"0": 0, "1": 0, "2": 0}}}}')


def test_a_missing_topic_or_partition_is_reported_and_not_created(topics: Topics) -> None:
    name = topics.make()
    with pytest.raises(NotFound, match="topic 'no-such-topic' does not exist"):
        ends_of(topics, subscribe=f"{name},no-such-topic")
    with pytest.raises(NotFound, match=f"partition {name}-1 does not exist"):
        ends_of(topics, assign=f'{{"{name}": [0, 1]}}')
    with topics.admin() as admin:
        assert "no-such-topic" not in [row.topic for row in admin.list_topics()]


def test_a_pattern_matches_whole_names_and_no_internal_topic(topics: Topics) -> None:
    name = topics.make()
    other = name + "-more"
    with topics.admin() as admin:
        admin.create_topics([other])
        admin.committed(["a-group"])
    starting, _ = ends_of(topics, subscribePattern=name)
    assert {one.topic for one in starting} == {name}
    starting, _ = ends_of(topics, subscribePattern=name + ".*")
    assert {one.topic for one in starting} == {name, other}
    with pytest.raises(NotFound, match="internal topics are read with subscribe"):
        ends_of(topics, subscribePattern="__consumer_.*")


@pytest.mark.parametrize("choice", [{"subscribe": "old,new"}, {"subscribePattern": "old|new"}])
def test_a_topic_that_is_being_created_is_waited_for(choice: dict[str, str]) -> None:
    node, codes = ScriptedNode(), iter((ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE))

    def metadata(request: MetadataRequest) -> MetadataResponse:
        answer, code = of_old(request), next(codes)
        assert isinstance(answer, MetadataResponse)
        partitions = [] if code else answer.topics[0].partitions
        answer.topics.append(MetadataResponse.Topic(name="new", error_code=code, partitions=partitions))
        return answer

    with node.listening() as endpoint:
        one_partition(node, endpoint, "old")
        of_old, node.answers[METADATA] = node.answers[METADATA], metadata
        read = read_options({"kafka.bootstrap.servers": str(endpoint), **choice})
        with LogEnds(read.connection) as ends:
            assert ends.partitions(read.selection) == (TopicPartition("new", 0), TopicPartition("old", 0))


def test_offsets_outside_the_log_are_data_loss_or_moved_inside(topics: Topics) -> None:
    name = topics.make()
    topics.count(name, 5)
    zero = TopicPartition(name, 0)
    with LogEnds(
        read_options({"kafka.bootstrap.servers": topics.bootstrap_servers, "subscribe": name}).connection
    ) as ends:
        bounds = ends.bounds([zero])
    with pytest.raises(DataLoss, match=f"{name}-0: there is no offset 8.*failOnDataLoss=false"):
        within({zero: 9}, bounds, fail_on_data_loss=True)
    assert within({zero: 9}, bounds, fail_on_data_loss=False) == {zero: 5}


def test_an_unreachable_address_is_reported_at_once() -> None:
    with (
        pytest.raises(KgctlError, match="nothing listens there"),
        LogEnds(read_options({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}).connection) as ends,
    ):
        ends.find(read_options({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}).selection)
