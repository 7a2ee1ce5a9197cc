"""Reads parts of logs as steps: rounds of Fetch requests without sessions, for operations that read a bounded number of records.

A consumer fetches ahead with connections of its own; an operation of the admin client asks, and uses what it gets.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.protocol.wire_types import ZERO_UUID
from kgctl.client.consumer.fetched import Fetched, fetched_row
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.fetching.session import FINAL_EPOCH, MAX_VERSION_BY_NAME, NO_SESSION, Asked, Wanted
from kgctl.client.net import authorization
from kgctl.client.net.cluster import Ask, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError, is_missing
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.topic_partition import TopicPartition


def may_pass(error: KgctlError) -> bool:
    """Whether another attempt may succeed. A topic may be missing only in old metadata."""
    return not is_damage(error) and (error.retriable or is_missing(error))


def is_damage(error: KgctlError) -> bool:
    """Whether the broker cannot read its log."""
    return isinstance(error, BrokerError) and error.code == ErrorCode.CORRUPT_MESSAGE


class LogReads:
    """Call `fetch` until `all_finished`. Positions move behind what it returns.

    `limits` are offsets to stop before; without them, each partition is read up to the log end in its first answer.
    """

    def __init__(
        self,
        cluster: Cluster,
        options: FetchOptions,
        positions: Mapping[TopicPartition, int],
        limits: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self._cluster, self._options = cluster, options
        self._until_end = limits is None
        self._limits = dict(limits or {})
        self.positions = dict(positions)
        # Offsets that the log does not have: remove the partition, or seek.
        self.out_of_range: set[TopicPartition] = set()
        # The errors of the last round.
        self.failed: dict[TopicPartition, KgctlError] = {}

    def is_finished(self, partition: TopicPartition) -> bool:
        limit = self._limits.get(partition)
        return limit is not None and self.positions[partition] >= limit

    @property
    def all_finished(self) -> bool:
        return all(map(self.is_finished, self.positions))

    def remove(self, partition: TopicPartition) -> None:
        self.positions.pop(partition, None)
        self.out_of_range.discard(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset
        self.out_of_range.discard(partition)

    def fetch(self) -> Steps[list[Fetched]]:
        """Ask each leader once, in parallel; [] if no partition has records now.

        Retries as `Cluster` does while nothing arrives and a partition fails; then raises its error.
        """
        for wait in (*self._cluster.retry_waits, None):
            arrived = yield from self.ask_leaders()
            for error in self.failed.values():
                if not may_pass(error):
                    raise error
            if arrived or self.out_of_range or not self.failed:
                return arrived
            error = [*self.failed.values()][-1]
            if wait is not None:
                yield Pause(wait, str(error))
        raise error

    def ask_leaders(self) -> Steps[list[Fetched]]:
        """Ask each leader once, in parallel. `failed` has the partitions that gave no answer."""
        by_node: dict[Node, list[TopicPartition]] = {}
        self.failed = {}
        open_ones = [one for one in self.positions if one not in self.out_of_range and not self.is_finished(one)]
        leaders = yield from self._cluster.leaders(open_ones)
        for one, leader in leaders.items():
            if isinstance(leader, Node):
                by_node.setdefault(leader, []).append(one)
            else:
                self.failed[one] = leader
        answers = yield from self._cluster.ask_each([self._ask(node, some) for node, some in by_node.items()])
        arrived: list[Fetched] = []
        for (node, some), answer in zip(by_node.items(), answers, strict=True):
            if not isinstance(answer, KgctlError) and answer.error_code:
                answer = BrokerError(answer.error_code, f"fetch from {node.endpoint}")
            if not isinstance(answer, KgctlError):
                self._take(answer, arrived)
                continue
            for one in some:
                self.failed[one] = answer
                self._cluster.forget_leader(one)
        return arrived

    def _ask(self, node: Node, partitions: list[TopicPartition]) -> Ask[FetchResponse]:
        options = self._options
        wanted = {one: Wanted(ZERO_UUID, self.positions[one], -1, options.max_partition_bytes) for one in partitions}
        topics = Asked(NO_SESSION, FINAL_EPOCH, wanted, (), wanted, by_id=False).topics()
        request = FetchRequest(
            max_wait_ms=options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=options.max_bytes,
            isolation_level=int(options.committed_only),
            topics=topics,
        )
        return Ask(node.endpoint, request, FetchResponse, max_version=MAX_VERSION_BY_NAME)

    def _take(self, response: FetchResponse, arrived: list[Fetched]) -> None:
        """Add the records of one answer, and its errors."""
        rows = [
            (TopicPartition(topic.topic, row.partition_index), row)
            for topic in response.responses
            for row in topic.partitions
        ]
        is_empty = not any(row.records for _, row in rows)
        for one, row in rows:
            if one not in self.positions:
                continue
            if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self.out_of_range.add(one)
            elif row.error_code:
                self._cluster.forget_leader(one)
                asked = authorization.Asked(FetchRequest, topic=one.topic)
                self.failed[one] = BrokerError(row.error_code, str(one), asked=asked)
            else:
                self._note(one, row, arrived, is_empty=is_empty)

    def _note(
        self, one: TopicPartition, row: FetchResponse.Partition, arrived: list[Fetched], *, is_empty: bool
    ) -> None:
        end = row.last_stable_offset if self._options.committed_only else row.high_watermark
        if self._until_end:
            self._limits.setdefault(one, end)
        limit = self._limits.get(one)
        if row.records:
            fetched = fetched_row(one, row, self.positions.pop(one), limit, committed_only=self._options.committed_only)
            arrived.append(fetched)
            # Brokers fill an answer in the order of the request: who got records is asked for last.
            self.positions[one] = fetched.next_offset()
        elif is_empty and limit is not None and end >= limit:
            # Compaction removed the records before the limit.
            self.positions[one] = max(limit, self.positions[one])
