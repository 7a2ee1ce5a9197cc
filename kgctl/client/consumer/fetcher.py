"""Fetch positions: which partitions to ask which node for, and where each goes on after an answer. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from kgctl.client.consumer.fetched import AbortedTransaction, Fetched
from kgctl.client.net.cluster import Node
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Kafka's consumer options: fetch.max.wait.ms, fetch.min.bytes, fetch.max.bytes, max.partition.fetch.bytes, ..."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 16_777_216
    max_partition_bytes: int = 1_048_576
    committed_only: bool = False


@dataclass(frozen=True, slots=True)
class Fetching:
    """One request under way, and the offset asked for in each partition."""

    node: Node
    request: FetchRequest
    offsets: Mapping[TopicPartition, int]


class Fetcher:
    """One request per node at a time; a partition that has reached its limit is asked for no more."""

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._positions: dict[TopicPartition, int] = {}
        self._limits: dict[TopicPartition, int] = {}
        self._busy: set[Node] = set()
        # What the caller has to heal: leaders to look up again, offsets that the log does not have (any more).
        self.stale: set[TopicPartition] = set()
        self.out_of_range: set[TopicPartition] = set()
        # Partitions whose last answer was an error that may pass.
        self.failing: dict[TopicPartition, KgctlError] = {}

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The offset to fetch next, per partition."""
        return self._positions

    def assign(
        self, positions: Mapping[TopicPartition, int], limits: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """These partitions and no others; `limits` are offsets to stop before. Answers to older requests are dropped."""
        self._positions = dict(positions)
        self._limits = dict(limits or {})
        self.stale.clear()
        self.out_of_range.clear()
        self.failing.clear()

    def add(self, partition: TopicPartition, offset: int) -> None:
        """One partition more."""
        self._positions.setdefault(partition, offset)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        if partition in self._positions:
            self._positions[partition] = offset
            self.out_of_range.discard(partition)

    def is_finished(self, partition: TopicPartition) -> bool:
        limit = self._limits.get(partition)
        return limit is not None and self._positions[partition] >= limit

    @property
    def all_finished(self) -> bool:
        """Every partition has reached its limit; false while one has none."""
        return all(self.is_finished(partition) for partition in self._positions)

    def next_fetches(self, leaders: Mapping[TopicPartition, Node]) -> list[Fetching]:
        """A request for each node that has none under way."""
        wanted: dict[Node, list[TopicPartition]] = {}
        for partition in self._positions:
            if partition in self.stale or partition in self.out_of_range or self.is_finished(partition):
                continue
            node = leaders.get(partition)
            if node is None:
                self.stale.add(partition)
            elif node not in self._busy:
                wanted.setdefault(node, []).append(partition)
        self._busy |= wanted.keys()
        return [self._fetching(node, partitions) for node, partitions in wanted.items()]

    def on_response(self, fetching: Fetching, response: FetchResponse) -> list[Fetched]:
        """What came, in the order of the answer. BrokerError for what will not heal by itself."""
        self._busy.discard(fetching.node)
        if response.error_code:
            raise BrokerError(response.error_code, f"fetch from {fetching.node.endpoint}")
        came = []
        rows = [
            (TopicPartition(topic.topic, row.partition_index), row)
            for topic in response.responses
            for row in topic.partitions
        ]
        nothing_left = not any(row.records for _, row in rows)
        for partition, row in rows:
            if self._positions.get(partition) != fetching.offsets.get(partition, -1):
                continue  # assigned anew or moved since the request went out
            if row.error_code:
                self._on_error(partition, row.error_code)
                continue
            self.failing.pop(partition, None)
            if row.records:
                came.append(self._take(partition, row))
            elif nothing_left:
                self._pass_hole(partition, row)
        return came

    def on_failure(self, fetching: Fetching) -> None:
        """No answer came: the node may have moved away."""
        self._busy.discard(fetching.node)
        self.stale |= fetching.offsets.keys() & self._positions.keys()

    def healed(self, partition: TopicPartition) -> None:
        """Its leader is known again."""
        self.stale.discard(partition)

    def _fetching(self, node: Node, partitions: list[TopicPartition]) -> Fetching:
        topics: dict[str, FetchRequest.Topic] = {}
        for partition in partitions:
            topic = topics.setdefault(partition.topic, FetchRequest.Topic(topic=partition.topic, partitions=[]))
            topic.partitions.append(
                FetchRequest.Partition(
                    partition=partition.partition,
                    fetch_offset=self._positions[partition],
                    partition_max_bytes=self._settings.max_partition_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.max_bytes,
            isolation_level=int(self._settings.committed_only),
            topics=list(topics.values()),
        )
        return Fetching(node, request, {partition: self._positions[partition] for partition in partitions})

    def _take(self, partition: TopicPartition, row: FetchResponse.Partition) -> Fetched:
        aborted = [AbortedTransaction(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()]
        fetched = Fetched(
            partition,
            row.records,
            self._positions[partition],
            self._limits.get(partition),
            aborted if self._settings.committed_only else None,
        )
        # Brokers fill an answer in the order of the request: who got something stands behind the others next time.
        self._positions.pop(partition)
        self._positions[partition] = fetched.next_offset()
        return fetched

    def _pass_hole(self, partition: TopicPartition, row: FetchResponse.Partition) -> None:
        """Compaction may have taken the records before the limit: what the log does not have cannot be waited for."""
        limit = self._limits.get(partition)
        readable = row.last_stable_offset if self._settings.committed_only else row.high_watermark
        if limit is not None and readable >= limit:
            self._positions[partition] = limit

    def _on_error(self, partition: TopicPartition, code: int) -> None:
        error = BrokerError(code, str(partition))
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.out_of_range.add(partition)
        elif code == ErrorCode.CORRUPT_MESSAGE or not (error.retriable or code in _UNKNOWN):
            raise error
        else:
            self.stale.add(partition)
            self.failing[partition] = error


_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
