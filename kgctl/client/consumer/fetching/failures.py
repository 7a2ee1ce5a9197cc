"""Errors of fetching: which ones pass, which ones reach the application, and when a partition is fetched again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from kgctl.client.consumer.errors import CorruptRecord, OffsetOutOfRange
from kgctl.client.consumer.fetching.buffer import FetchBuffer
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.fetching.session import Rows
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable
from kgctl.client.network.metadata import Metadata
from kgctl.client.network.nodes import Node
from kgctl.model.topic_partition import TopicPartition

# The leader may have moved: ask for metadata, then fetch again.
_MOVED = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
}
_PASSING = {ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR}
# The session is out of step: it begins again at once.
_SESSION = {
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
}


class _Failure(NamedTuple):
    offset: int
    error: KgctlError


class _Waiting(NamedTuple):
    until_ms: int
    failures: int
    cause: KgctlError


class FetchFailures:
    """`fatal`: the cluster does not let the client in; raised with the next `raise_first`."""

    def __init__(self, metadata: Metadata, subscription: SubscriptionState, options: FetchOptions) -> None:
        self._metadata, self._subscription, self._options = metadata, subscription, options
        self.fatal: KgctlError | None = None
        # Offsets that their logs no longer have; whoever finds new ones takes them.
        self.lost: dict[TopicPartition, int] = {}
        self._errors: dict[TopicPartition, _Failure] = {}
        self._waits: dict[TopicPartition, _Waiting] = {}

    # --- what may be fetched ---

    def is_free(self, one: TopicPartition) -> bool:
        """No error of the partition waits for the application."""
        return one not in self._errors

    def waits_until(self, one: TopicPartition, now_ms: int) -> int | None:
        """When to fetch a failing partition again; None: now."""
        waiting = self._waits.get(one)
        return waiting.until_ms if waiting is not None and waiting.until_ms > now_ms else None

    def cause(self, one: TopicPartition) -> KgctlError | None:
        """Why a partition is tried again; None if its last Fetch succeeded."""
        waiting = self._waits.get(one)
        return None if waiting is None else waiting.cause

    def succeeded(self, one: TopicPartition) -> None:
        self._waits.pop(one, None)

    def retain(self, is_wanted: Callable[[TopicPartition], bool]) -> None:
        for one in [one for one in self._errors if not is_wanted(one)]:
            del self._errors[one]
        for one in [one for one in self._waits if not is_wanted(one)]:
            del self._waits[one]

    # --- what the application gets ---

    def has_errors(self, buffer: FetchBuffer) -> bool:
        return self.fatal is not None or any(not buffer.count(one) for one in self._errors)

    def raise_first(self, buffer: FetchBuffer) -> None:
        """Raise an error whose partition has no records left before it. It is fetched again afterwards."""
        if self.fatal is not None:
            error, self.fatal = self.fatal, None
            raise error
        for one in [one for one in self._errors if not buffer.count(one)]:
            offset, error = self._errors.pop(one)
            state = self._subscription.find(one)
            if state is None or state.position is None or state.position.offset != offset:
                continue  # the application sought another position
            raise error

    # --- what failed ---

    def on_node(self, error: KgctlError, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """A node gave no answer. The network backs off and asks for metadata."""
        if not (error.retriable or isinstance(error, TimedOut | Unreachable)):
            self.fatal = error
        for one in partitions:
            self._wait(one, error, now_ms)

    def on_answer(self, code: int, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """A whole answer is an error. Sessions begin again at once; everything else waits."""
        if code not in _SESSION:
            for one in partitions:
                self._wait(one, BrokerError(code, str(one)), now_ms)

    def on_row(
        self,
        one: TopicPartition,
        row: FetchResponse.Partition,
        offset: int,
        node_id: int,
        *,
        has_data: bool,
        now_ms: int,
    ) -> None:
        """`has_data`: records before this offset wait for the application, so that the error can come again."""
        code = row.error_code
        state = self._subscription.state(one)
        error = BrokerError(code, str(one), asked=Asked(FetchRequest, topic=one.topic))
        self._wait(one, error, now_ms)
        if code in _MOVED:
            state.clear_preferred_replica()
            self._metadata.request_update()
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if has_data or state.clear_preferred_replica() is not None:
                return  # a follower may be behind its leader
            if self._subscription.has_default_reset:
                self.lost[one] = offset
                self._subscription.request_reset(one)
                self._waits.pop(one, None)
            else:
                self._errors[one] = _Failure(offset, OffsetOutOfRange(one, offset))
        elif code == ErrorCode.CORRUPT_MESSAGE:
            reason = f"{one}, offset {offset}: the broker says that the records are corrupt"
            self._errors[one] = _Failure(offset, CorruptRecord(one, offset, None, reason))
        elif code not in _PASSING:
            self._errors[one] = _Failure(offset, error)

    def no_progress(self, one: TopicPartition, offset: int) -> None:
        """An answer has bytes, but no complete batch. Brokers send at least one, whatever its size (KIP-74)."""
        reason = f"{one}, offset {offset}: the broker sent no complete batch"
        self._errors[one] = _Failure(offset, CorruptRecord(one, offset, None, reason))

    def note_leaders(self, rows: Rows, response: FetchResponse) -> None:
        """Take over the new leaders that an answer names (KIP-951)."""
        leaders: Mapping[TopicPartition, tuple[int, int]] = {
            one: (row.current_leader.leader_id, row.current_leader.leader_epoch)
            for one, row in rows
            if row.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
            and row.current_leader is not None
            and row.current_leader.leader_id >= 0
            and row.current_leader.leader_epoch >= 0
        }
        if leaders:
            nodes = [Node(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
            for one in self._metadata.note_leaders(leaders, nodes):
                self._waits.pop(one, None)

    def _wait(self, one: TopicPartition, cause: KgctlError, now_ms: int) -> None:
        waiting, options = self._waits.get(one), self._options
        failures = 0 if waiting is None else waiting.failures
        delay = min(options.retry_backoff_max_ms, options.retry_backoff_ms << min(failures, 10))
        self._waits[one] = _Waiting(now_ms + delay, failures + 1, cause)
