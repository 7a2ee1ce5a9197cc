"""Rounds of Fetch requests: who is asked for what, how an answer moves positions, and which errors pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from broker.protocol.messages.fetch import FetchResponse
from kgctl.client.admin.log_reads import LogReads
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.errors import BrokerError, KgctlError, Unreachable
from kgctl.client.net.steps import Call
from kgctl.model.topic_partition import TopicPartition
from tests.harness.feeding import METADATA, Feeder, cluster, endpoint, metadata
from tests.kgctl.client.consumer.fetching.records import batch, row

FETCH = 1
P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
Rows = list[FetchResponse.Partition]


class Reading:
    """Nodes 1 (t-0, t-1) and 2 (t-2). `answer` gets a node and the offsets that it is asked for, and returns rows."""

    def __init__(
        self,
        answer: Callable[[int, dict[int, int]], Rows],
        positions: Mapping[TopicPartition, int],
        limits: Mapping[TopicPartition, int] | None = None,
        *,
        committed_only: bool = False,
    ) -> None:
        self.leaders = {0: 1, 1: 1, 2: 2}
        self.asked: list[tuple[int, list[tuple[int, int]]]] = []
        self._answer = answer
        self.feeder = Feeder(
            {METADATA: lambda call: metadata({"t": self.leaders}, (1, 2))(call), FETCH: self._on_fetch}
        )
        self.reads = LogReads(cluster(), FetchOptions(committed_only=committed_only), positions, limits)

    def fetch(self) -> list[TopicPartition]:
        return [one.partition for one in self.feeder.run(self.reads.fetch())]

    def _on_fetch(self, call: Call) -> FetchResponse:
        (topic,) = call.request.topics  # type: ignore[attr-defined]
        offsets = {part.partition: part.fetch_offset for part in topic.partitions}
        node = next(n for n in (1, 2) if endpoint(n) == call.endpoint)
        self.asked.append((node, list(offsets.items())))
        return FetchResponse(responses=[FetchResponse.Topic(topic="t", partitions=self._answer(node, offsets))])


def records(node: int, offsets: dict[int, int]) -> Rows:
    """Ten records of each partition, from the offset that was asked for."""
    return [row(batch(offset, 10), partition=number) for number, offset in offsets.items()]


def failing(code: int) -> Callable[[int, dict[int, int]], Rows]:
    return lambda node, offsets: [row(partition=number, error=code) for number in offsets]


def test_each_leader_is_asked_once_for_all_of_its_partitions() -> None:
    reading = Reading(records, {P0: 5, P1: 6, P2: 7}, {P0: 50, P1: 50, P2: 50})
    assert reading.fetch() == [P0, P1, P2]
    assert reading.asked == [(1, [(0, 5), (1, 6)]), (2, [(2, 7)])]
    assert reading.reads.positions == {P0: 15, P1: 16, P2: 17}


def test_a_partition_that_got_records_is_asked_for_last() -> None:
    reading = Reading(lambda node, offsets: [row(batch(0, 3)), row(partition=1)], {P0: 0, P1: 0}, {P0: 9, P1: 9})
    reading.fetch()
    reading.fetch()
    assert [asked for _, asked in reading.asked] == [[(0, 0), (1, 0)], [(1, 0), (0, 3)]]


def test_a_partition_is_read_up_to_its_limit() -> None:
    reading = Reading(records, {P0: 0, P1: 2}, {P0: 2, P1: 2})
    assert reading.fetch() == [P0]
    assert reading.asked == [(1, [(0, 0)])]
    assert reading.reads.positions[P0] == 2
    assert reading.reads.all_finished


def test_without_limits_a_partition_is_read_up_to_the_end_that_its_first_answer_names() -> None:
    ends = iter((15, 99))
    reading = Reading(lambda node, offsets: [row(batch(offsets[0], 10), end=next(ends))], {P0: 0})
    assert not reading.reads.all_finished
    reading.fetch()
    assert not reading.reads.all_finished
    reading.fetch()
    assert reading.reads.all_finished
    assert reading.reads.positions[P0] == 15


def test_a_reader_of_committed_records_stops_at_the_last_stable_offset() -> None:
    reading = Reading(lambda node, offsets: [row(batch(0, 10), end=99, stable=10)], {P0: 0}, committed_only=True)
    reading.fetch()
    assert reading.reads.all_finished


def test_a_log_without_records_before_the_limit_is_finished() -> None:
    ends = iter((8, 9))
    reading = Reading(lambda node, offsets: [row(end=next(ends))], {P0: 3}, {P0: 9})
    assert reading.fetch() == []
    assert not reading.reads.all_finished
    assert reading.fetch() == []
    assert reading.reads.all_finished


def test_a_partition_without_room_in_the_answer_is_not_finished() -> None:
    reading = Reading(lambda node, offsets: [row(), row(batch(0, 1), partition=1)], {P0: 3, P1: 0}, {P0: 9, P1: 9})
    assert reading.fetch() == [P1]
    assert not reading.reads.is_finished(P0)


def test_a_partition_out_of_range_waits_for_a_seek() -> None:
    reading = Reading(
        lambda node, offsets: [row(error=1)] if offsets[0] == 3 else [row(batch(50, 1))], {P0: 3}, {P0: 60}
    )
    assert reading.fetch() == []
    assert reading.reads.out_of_range == {P0}
    assert reading.fetch() == []
    assert len(reading.asked) == 1
    reading.reads.seek(P0, 50)
    assert reading.fetch() == [P0]


@pytest.mark.parametrize("code", [3, 5, 6, 9, 56, 78])
def test_a_leader_that_has_moved_is_looked_up_and_asked(code: int) -> None:
    def answer(node: int, offsets: dict[int, int]) -> Rows:
        reading.leaders[0] = 2
        return failing(code)(node, offsets) if node == 1 else records(node, offsets)

    reading = Reading(answer, {P0: 3}, {P0: 60})
    assert reading.fetch() == [P0]
    assert [node for node, _ in reading.asked] == [1, 2]
    assert len(reading.feeder.pauses) == 1


def test_records_of_others_are_returned_although_a_partition_fails() -> None:
    reading = Reading(
        lambda node, offsets: records(node, offsets) if node == 2 else failing(6)(node, offsets), {P0: 0, P2: 0}, {}
    )
    assert reading.fetch() == [P2]
    assert reading.feeder.pauses == []


@pytest.mark.parametrize("code", [3, 6])
def test_an_error_that_stays_is_raised_after_the_retries(code: int) -> None:
    reading = Reading(failing(code), {P0: 3}, {P0: 60})
    with pytest.raises(KgctlError, match="t-0"):
        reading.fetch()
    assert len(reading.feeder.pauses) > 3


@pytest.mark.parametrize("code", [2, 29, -1])
def test_an_error_that_cannot_pass_is_raised_at_once(code: int) -> None:
    reading = Reading(failing(code), {P0: 3}, {P0: 60})
    with pytest.raises(BrokerError):
        reading.fetch()
    assert reading.feeder.pauses == []


def test_a_partition_without_a_leader_is_an_error_after_the_retries() -> None:
    reading = Reading(records, {P0: 3}, {P0: 60})
    reading.leaders[0] = -1
    with pytest.raises(BrokerError, match=r"t-0.*LEADER_NOT_AVAILABLE"):
        reading.fetch()
    assert reading.asked == []


def test_the_leaders_of_a_node_that_does_not_answer_are_looked_up() -> None:
    reading = Reading(records, {P0: 3, P2: 5}, {P0: 60, P2: 60})
    reading.feeder.down.add(endpoint(1))
    assert reading.fetch() == [P2]
    reading.leaders[0] = 2
    assert sorted(reading.fetch()) == [P0, P2]


def test_a_cluster_that_does_not_answer_is_unreachable() -> None:
    reading = Reading(records, {P0: 3}, {P0: 60})
    reading.fetch()
    reading.feeder.down |= {endpoint(1), endpoint(2)}
    with pytest.raises(Unreachable):
        reading.fetch()
