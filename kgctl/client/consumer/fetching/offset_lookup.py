"""ListOffsets of many partitions: one request per leader, repeated for what fails until a deadline. Kafka's OffsetFetcher."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.outgoing import Outgoing
from kgctl.model.topic_partition import TopicPartition


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a timestamp. At an end of the log, the timestamp is -1."""

    offset: int
    timestamp_ms: int = -1
    leader_epoch: int | None = None


# What a lookup finds of a partition: an offset, None if there is none, or an error.
Result = OffsetAndTimestamp | KgctlError | None

_FINAL = {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def ask_leader(
    network: NetworkClient,
    node_id: int,
    timestamps: Mapping[TopicPartition, tuple[int, int | None]],
    done: Callable[[dict[TopicPartition, Result], int], None],
    now_ms: int,
    *,
    committed_only: bool,
    request_timeout_ms: int,
) -> None:
    """One ListOffsets for partitions of one leader: timestamp and leader epoch of each. The node is ready."""
    topics: dict[str, ListOffsetsRequest.Topic] = {}
    for one, (timestamp, epoch) in timestamps.items():
        topic = topics.setdefault(one.topic, ListOffsetsRequest.Topic(name=one.topic, partitions=[]))
        topic.partitions.append(
            ListOffsetsRequest.Partition(
                partition_index=one.partition,
                current_leader_epoch=-1 if epoch is None else epoch,
                timestamp=timestamp,
            )
        )
    request = ListOffsetsRequest(
        isolation_level=int(committed_only), topics=list(topics.values()), timeout_ms=request_timeout_ms
    )

    def answered(answer: ListOffsetsResponse | KgctlError, at_ms: int) -> None:
        if isinstance(answer, KgctlError):
            done(dict.fromkeys(timestamps, answer), at_ms)
        else:
            done(_results(timestamps, answer), at_ms)

    network.send(
        node_id,
        Outgoing(request, ListOffsetsResponse, answered, request_timeout_ms, min_version=2 if committed_only else 1),
        now_ms,
    )


def is_final(error: KgctlError) -> bool:
    """Whether asking again cannot help. A topic that does not exist may be new."""
    if isinstance(error, BrokerError):
        return error.code in _FINAL
    return not (error.retriable or isinstance(error, TimedOut))


def _results(asked: Iterable[TopicPartition], answer: ListOffsetsResponse) -> dict[TopicPartition, Result]:
    out: dict[TopicPartition, Result] = {}
    for topic in answer.topics:
        for row in topic.partitions:
            one = TopicPartition(topic.name, row.partition_index)
            if row.error_code and row.error_code != ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                out[one] = BrokerError(
                    row.error_code, str(one), asked=Asked(ListOffsetsRequest, topic=one.topic), by_leader=True
                )
            elif row.error_code or row.offset < 0:
                out[one] = None
            else:
                epoch = row.leader_epoch if row.leader_epoch >= 0 else None
                out[one] = OffsetAndTimestamp(row.offset, row.timestamp, epoch)
    for one in asked:
        if one not in out:
            out[one] = TimedOut(f"{one}: the answer of the broker does not contain it")
    return {one: out[one] for one in asked}


class OffsetLookup:
    """A lookup for the application. A participant until it is `done`; then `offsets` or `error` has the result."""

    def __init__(
        self,
        network: NetworkClient,
        timestamps: Mapping[TopicPartition, int],
        deadline_ms: int,
        *,
        committed_only: bool,
        seen: Callable[[TopicPartition, OffsetAndTimestamp], None] = lambda one, found: None,
    ) -> None:
        self._network, self._deadline_ms, self._committed_only = network, deadline_ms, committed_only
        self._timestamps = dict(timestamps)
        self._seen = seen
        self._waiting = dict.fromkeys(self._timestamps, 0)  # not in flight: when to ask again
        self._in_flight = 0
        self._reason: KgctlError | None = None
        self._wake_at: int | None = None
        self.offsets: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        self.error: KgctlError | None = None
        self.done = not self._timestamps

    def advance(self, now_ms: int) -> None:
        """Ask the leaders that are ready."""
        if self.done:
            return
        if now_ms >= self._deadline_ms:
            self._end(self._timed_out())
            return
        self._wake_at = self._deadline_ms
        by_node: dict[int, dict[TopicPartition, tuple[int, int | None]]] = {}
        for one, at_ms in self._waiting.items():
            if at_ms > now_ms:
                self._wake_at = min(self._wake_at, at_ms)
                continue
            leader = self._network.metadata.leader(one)
            if leader is None:
                self._without_leader(one)
                if self.error is not None:
                    return
            elif self._is_ready(leader.node.node_id, now_ms):
                epoch = leader.epoch if leader.epoch >= 0 else None
                by_node.setdefault(leader.node.node_id, {})[one] = (self._timestamps[one], epoch)
        for node_id, rows in by_node.items():
            for one in rows:
                del self._waiting[one]
            self._in_flight += 1
            ask_leader(
                self._network,
                node_id,
                rows,
                self._answered,
                now_ms,
                committed_only=self._committed_only,
                request_timeout_ms=self._network.settings.request_timeout_ms,
            )

    def wake_at_ms(self) -> int | None:
        return None if self.done else self._wake_at

    def _is_ready(self, node_id: int, now_ms: int) -> bool:
        if self._network.is_ready(node_id, now_ms):
            return True
        self._reason = self._network.error_of(node_id) or self._reason
        if self._reason is not None and self._reason.is_final:
            self._end(self._reason)
        at_ms = self._network.ready_at_ms(node_id, now_ms)
        if at_ms is not None and self._wake_at is not None:
            self._wake_at = min(self._wake_at, at_ms)
        return False

    def _without_leader(self, one: TopicPartition) -> None:
        error = self._network.metadata.error_of(one.topic)
        self._network.metadata.request_update()
        if error is not None:
            self._reason = error
            if is_final(error):
                self._end(error)

    def _answered(self, results: dict[TopicPartition, Result], now_ms: int) -> None:
        self._in_flight -= 1
        if self.done:
            return
        for one, result in results.items():
            if isinstance(result, KgctlError):
                if is_final(result):
                    self._end(result)
                    return
                self._reason = result
                self._waiting[one] = now_ms + self._network.settings.retry_backoff_ms
                self._network.metadata.request_update()
            else:
                self.offsets[one] = result
                if result is not None:
                    self._seen(one, result)
        if len(self.offsets) == len(self._timestamps):
            self.done = True

    def _end(self, error: KgctlError) -> None:
        self.error, self.done = error, True

    def _timed_out(self) -> KgctlError:
        missing = ", ".join(str(one) for one in self._timestamps if one not in self.offsets)
        reason = f": {self._reason}" if self._reason is not None else ""
        return TimedOut(f"no offsets of {missing} in time{reason}")
