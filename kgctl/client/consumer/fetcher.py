"""Fetch positions: which partitions to request from which leader, and where each continues. No I/O, no clock.

Everything in kgctl that reads records decides here what to fetch: `fetch_loop` carries the requests out over its own
connections, `fetch_steps` as steps of an admin request.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_dataclasses import dataclass
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from kgctl.client.consumer.fetched import AbortedTransaction, Fetched
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Node
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.model.topic_partition import TopicPartition

# Version 13 names topics by id only.
MAX_FETCH_VERSION = 12


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
    """One request in flight, and the offset requested for each partition."""

    node: Node
    request: FetchRequest
    offsets: Mapping[TopicPartition, int]


class Fetcher:
    """Allows one request in flight per node. A partition that has reached its limit is no longer requested.

    `until_end`: the first answer of a partition sets its limit to the log end of that moment.
    """

    def __init__(self, settings: FetchSettings, *, until_end: bool = False) -> None:
        self._settings = settings
        self._until_end = until_end
        self._positions: dict[TopicPartition, int] = {}
        self._limits: dict[TopicPartition, int] = {}
        self._busy: set[Node] = set()
        # For the caller to repair: leaders to look up again, and offsets that the log does not have.
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
        """Replace all partitions. `limits` are offsets to stop before. Answers to older requests are dropped."""
        self._positions = dict(positions)
        self._limits = dict(limits or {})
        self.stale.clear()
        self.out_of_range.clear()
        self.failing.clear()

    def add(self, partition: TopicPartition, offset: int) -> None:
        """Add a partition; one that is assigned already keeps its position."""
        self._positions.setdefault(partition, offset)

    def remove(self, partition: TopicPartition) -> None:
        """Stop fetching a partition."""
        self._positions.pop(partition, None)
        self.stale.discard(partition)
        self.out_of_range.discard(partition)
        self.failing.pop(partition, None)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at that offset. Ignores partitions that are not assigned."""
        if partition in self._positions:
            self._positions[partition] = offset
            self.out_of_range.discard(partition)

    def is_finished(self, partition: TopicPartition) -> bool:
        limit = self._limits.get(partition)
        return limit is not None and self._positions[partition] >= limit

    @property
    def all_finished(self) -> bool:
        """Every partition has reached its limit; false while one has no limit."""
        return all(self.is_finished(partition) for partition in self._positions)

    def next_fetches(self, leaders: Mapping[TopicPartition, Node]) -> list[Fetching]:
        """A request for each node that has none in flight."""
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
        """What arrived, in the order of the answer. Raises BrokerError for an error that cannot pass."""
        self._busy.discard(fetching.node)
        if response.error_code:
            raise BrokerError(response.error_code, f"fetch from {fetching.node.endpoint}")
        arrived = []
        rows = [
            (TopicPartition(topic.topic, row.partition_index), row)
            for topic in response.responses
            for row in topic.partitions
        ]
        is_empty = not any(row.records for _, row in rows)
        for partition, row in rows:
            if self._positions.get(partition) != fetching.offsets.get(partition, -1):
                continue  # reassigned or moved since the request was sent
            if row.error_code:
                self._on_error(partition, row.error_code)
                continue
            self.failing.pop(partition, None)
            if self._until_end:
                self._limits.setdefault(partition, self._log_end(row))
            if row.records:
                arrived.append(self._take(partition, row))
            elif is_empty:
                self._skip_hole(partition, row)
        return arrived

    def on_failure(self, fetching: Fetching) -> None:
        """No answer arrived: the leaders may have moved to another node."""
        self._busy.discard(fetching.node)
        self.stale |= fetching.offsets.keys() & self._positions.keys()

    def healed(self, partition: TopicPartition) -> None:
        """The leader of the partition is known again."""
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
        # Brokers fill an answer in the order of the request: a partition that got records goes to the end of the next one.
        self._positions.pop(partition)
        self._positions[partition] = fetched.next_offset()
        return fetched

    def _skip_hole(self, partition: TopicPartition, row: FetchResponse.Partition) -> None:
        """Go to the limit if the log has no records before it, because compaction removed them."""
        limit = self._limits.get(partition)
        if limit is not None and self._log_end(row) >= limit:
            self._positions[partition] = max(limit, self._positions[partition])

    def _log_end(self, row: FetchResponse.Partition) -> int:
        return row.last_stable_offset if self._settings.committed_only else row.high_watermark

    def _on_error(self, partition: TopicPartition, code: int) -> None:
        error = BrokerError(code, str(partition), asked=Asked(FetchRequest, topic=partition.topic))
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.out_of_range.add(partition)
        elif code == ErrorCode.CORRUPT_MESSAGE or not (error.retriable or is_missing(error)):
            raise error
        else:
            self.stale.add(partition)
            self.failing[partition] = error


def is_missing(error: KgctlError) -> bool:
    """Whether a broker says that the partition does not exist; a new topic may not be known everywhere yet."""
    return isinstance(error, BrokerError) and error.code in _MISSING


_MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
