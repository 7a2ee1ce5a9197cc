"""Fetch positions: which requests go to which node, and how an answer changes a position."""

from __future__ import annotations

import pytest

from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.consumer.fetcher import Fetcher, Fetching, FetchSettings
from kgctl.client.net.cluster import Node
from kgctl.client.net.errors import BrokerError
from kgctl.model.topic_partition import TopicPartition

P0, P1, P2 = (TopicPartition("t", n) for n in range(3))
NODE, OTHER = Node(1, "n1", 9092), Node(2, "n2", 9092)
LEADERS = {P0: NODE, P1: NODE, P2: OTHER}


def fetcher(positions: dict[TopicPartition, int], limits: dict[TopicPartition, int] | None = None) -> Fetcher:
    made = Fetcher(FetchSettings())
    made.assign(positions, limits)
    return made


def records(first: int, count: int) -> bytes:
    return build_batch([Record(first + n, 0, None, b"v", ()) for n in range(count)])


def answer(*rows: FetchResponse.Partition) -> FetchResponse:
    return FetchResponse(responses=[FetchResponse.Topic(topic="t", partitions=list(rows))])


def row(index: int, raw: bytes = b"", *, code: int = 0, high_watermark: int = 100) -> FetchResponse.Partition:
    return FetchResponse.Partition(partition_index=index, error_code=code, high_watermark=high_watermark, records=raw)


def asked(fetching: Fetching) -> list[tuple[int, int]]:
    return [(part.partition, part.fetch_offset) for topic in fetching.request.topics for part in topic.partitions]


def test_the_partitions_of_a_node_go_into_one_request() -> None:
    first, second = fetcher({P0: 5, P1: 6, P2: 7}).next_fetches(LEADERS)
    assert (first.node, asked(first)) == (NODE, [(0, 5), (1, 6)])
    assert (second.node, asked(second)) == (OTHER, [(2, 7)])


def test_a_node_has_one_request_at_a_time() -> None:
    made = fetcher({P0: 0})
    (fetching,) = made.next_fetches(LEADERS)
    assert made.next_fetches(LEADERS) == []
    made.on_response(fetching, answer(row(0)))
    assert len(made.next_fetches(LEADERS)) == 1


def test_a_partition_that_got_records_is_requested_last() -> None:
    made = fetcher({P0: 0, P1: 0})
    (fetching,) = made.next_fetches(LEADERS)
    (came,) = made.on_response(fetching, answer(row(0, records(0, 3)), row(1)))
    assert came.partition == P0
    assert asked(made.next_fetches(LEADERS)[0]) == [(1, 0), (0, 3)]


def test_an_answer_for_another_assignment_is_dropped() -> None:
    made = fetcher({P0: 0, P1: 0})
    (fetching,) = made.next_fetches(LEADERS)
    made.assign({P1: 7})
    assert made.on_response(fetching, answer(row(0, records(0, 3)), row(1, records(0, 3)))) == []
    assert made.positions == {P1: 7}


def test_a_partition_at_its_limit_is_no_longer_requested() -> None:
    made = fetcher({P0: 0, P1: 2}, {P0: 2, P1: 2})
    assert not made.all_finished
    (fetching,) = made.next_fetches(LEADERS)
    assert asked(fetching) == [(0, 0)]
    made.on_response(fetching, answer(row(0, records(0, 3))))
    assert made.positions[P0] == 2
    assert made.all_finished
    assert made.next_fetches(LEADERS) == []


def test_without_limits_no_partition_is_ever_finished() -> None:
    assert not fetcher({P0: 5}).all_finished


def test_a_log_without_records_before_the_limit_is_finished() -> None:
    made = fetcher({P0: 3}, {P0: 9})
    (fetching,) = made.next_fetches(LEADERS)
    made.on_response(fetching, answer(row(0, high_watermark=8)))
    assert not made.all_finished
    (fetching,) = made.next_fetches(LEADERS)
    made.on_response(fetching, answer(row(0, high_watermark=9)))
    assert made.all_finished


def test_a_partition_without_room_in_the_response_is_not_finished() -> None:
    made = fetcher({P0: 3, P1: 0}, {P0: 9, P1: 9})
    (fetching,) = made.next_fetches(LEADERS)
    made.on_response(fetching, answer(row(0), row(1, records(0, 1))))
    assert not made.is_finished(P0)


def test_a_partition_out_of_range_waits_for_a_seek() -> None:
    made = fetcher({P0: 3})
    (fetching,) = made.next_fetches(LEADERS)
    made.on_response(fetching, answer(row(0, code=1)))
    assert made.out_of_range == {P0}
    assert made.next_fetches(LEADERS) == []
    made.seek(P0, 50)
    assert asked(made.next_fetches(LEADERS)[0]) == [(0, 50)]


@pytest.mark.parametrize("code", [3, 5, 6, 9, 56, 78])
def test_a_partition_that_has_moved_waits_until_its_leader_is_known(code: int) -> None:
    made = fetcher({P0: 3})
    (fetching,) = made.next_fetches(LEADERS)
    made.on_response(fetching, answer(row(0, code=code)))
    assert made.stale == {P0}
    assert made.next_fetches(LEADERS) == []
    made.healed(P0)
    assert len(made.next_fetches(LEADERS)) == 1


def test_a_partition_without_a_leader_is_looked_up() -> None:
    made = fetcher({P0: 3})
    assert made.next_fetches({}) == []
    assert made.stale == {P0}


def test_after_a_lost_connection_the_leaders_of_all_its_partitions_are_looked_up() -> None:
    made = fetcher({P0: 3, P1: 4, P2: 5})
    first, _ = made.next_fetches(LEADERS)
    made.on_failure(first)
    assert made.stale == {P0, P1}


def test_an_error_is_remembered_until_the_partition_succeeds() -> None:
    made = fetcher({P0: 3})
    (fetching,) = made.next_fetches(LEADERS)
    made.on_response(fetching, answer(row(0, code=6)))
    made.healed(P0)
    assert list(made.failing) == [P0]
    (fetching,) = made.next_fetches(LEADERS)
    made.on_response(fetching, answer(row(0)))
    assert not made.failing


@pytest.mark.parametrize("code", [2, 29, -1])
def test_a_permanent_error_is_raised(code: int) -> None:
    made = fetcher({P0: 3})
    (fetching,) = made.next_fetches(LEADERS)
    with pytest.raises(BrokerError):
        made.on_response(fetching, answer(row(0, code=code)))
