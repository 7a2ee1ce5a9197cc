"""Fetches ahead of the application: one request per node, sessions, bounded memory. Kafka's FetchRequestManager."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.protocol.wire_types import ZERO_UUID
from kgctl.client.consumer.consumer_record import ConsumerRecord
from kgctl.client.consumer.errors import CorruptRecord
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetching.buffer import FetchBuffer
from kgctl.client.consumer.fetching.completed_fetch import CompletedFetch
from kgctl.client.consumer.fetching.failures import FetchFailures
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.fetching.session import Asked, FetchSession, Rows, Wanted
from kgctl.client.consumer.partition_state import PartitionState
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.net.errors import KgctlError
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.outgoing import Outgoing
from kgctl.model.topic_partition import TopicPartition

# Answers of one partition that wait for the application; the second one is fetched while the first is processed.
_AHEAD = 2


@dataclass(slots=True)
class FetchCounts:
    """Sums since the start. `latency_ms` is of all answers together."""

    requests: int = 0
    responses: int = 0
    failures: int = 0
    bytes: int = 0
    records: int = 0
    latency_ms: int = 0
    throttled_ms: int = 0


class Fetches:
    """A participant of the client's turns. `collect` gives what has arrived, and moves the positions."""

    def __init__(self, network: NetworkClient, subscription: SubscriptionState, options: FetchOptions) -> None:
        self._network, self._subscription, self._options = network, subscription, options
        self._metadata = network.metadata
        self._buffer = FetchBuffer()
        self._failures = FetchFailures(network.metadata, subscription, options)
        self._sessions: dict[int, FetchSession] = {}
        self._pending: set[int] = set()
        self._ending: set[int] = set()
        self._wake_at: int | None = None
        self._assignment_id = -1
        self._is_closing = False
        self.counts = FetchCounts()

    # --- a participant ---

    def advance(self, now_ms: int) -> None:
        """Send a Fetch to each node that has none in flight and leads partitions with room in the buffer."""
        self._wake_at = None
        if self._is_closing:
            return
        if self._assignment_id != self._subscription.assignment_id:
            self._assignment_id = self._subscription.assignment_id
            self._buffer.retain(self._subscription.is_assigned)
            self._failures.retain(self._subscription.is_assigned)
        for node_id, wanted in self._wanted(now_ms).items():
            self._send(node_id, self._session(node_id).ask(wanted), now_ms)

    def wake_at_ms(self) -> int | None:
        return self._wake_at

    def close(self, now_ms: int) -> None:
        """Fetch nothing more, and end the sessions in the brokers that are connected."""
        if self._is_closing:
            return
        self._is_closing = True
        self._buffer.clear()
        for node_id, session in self._sessions.items():
            is_waiting = node_id in self._pending
            if self._network.is_ready(node_id, now_ms) and (asked := session.close()) is not None:
                self._send(node_id, asked, now_ms)
                if not is_waiting:
                    self._ending.add(node_id)

    @property
    def is_ending(self) -> bool:
        """Whether a broker still has to answer that a session has ended; one that answers a Fetch first does not count."""
        return bool(self._ending)

    # --- for the application ---

    @property
    def freed(self) -> int:
        """Grows when an answer was used up: there is room to fetch again."""
        return self._buffer.freed

    @property
    def lost(self) -> dict[TopicPartition, int]:
        """Offsets that their logs no longer have; whoever finds new ones takes them."""
        return self._failures.lost

    def cause(self, partition: TopicPartition) -> KgctlError | None:
        """Why the last Fetch of a partition failed, if it is tried again."""
        return self._failures.cause(partition)

    def has_data(self) -> bool:
        """Whether `collect` gives or raises something."""
        if self._failures.has_errors(self._buffer):
            return True
        find = self._subscription.find
        return any((state := find(one)) is not None and state.is_fetchable for one in self._buffer)

    def collect(self, count: int) -> list[ConsumerRecord]:
        """Up to `count` records, of one partition after the other, and their positions move.

        Raises the error of a partition if there are no records before it.
        """
        out: list[ConsumerRecord] = []
        queue = list(self._buffer)
        for one in queue:  # grows: a partition with another answer has a turn again
            if len(out) >= count:
                break
            found = self._readable(one)
            if found is None:
                continue
            state, fetch = found
            try:
                taken = fetch.take(count - len(out))
            except CorruptRecord:
                if out:
                    break
                raise
            finally:
                self._advance_position(state, fetch)
            if out:
                out.extend(taken)
            else:
                out = taken
            if fetch.is_consumed:
                self._buffer.pop(one)
                queue.append(one)
        self.counts.records += len(out)
        if not out:
            self._failures.raise_first(self._buffer)
        return out

    def collect_raw(self) -> list[Fetched]:
        """Everything that has arrived, undecoded and unchecked; the positions move behind it."""
        out: list[Fetched] = []
        queue = list(self._buffer)
        for one in queue:
            found = self._readable(one)
            if found is None:
                continue
            state, fetch = found
            if not fetch.is_consumed:
                out.append(fetch.take_raw(state.limit))
                self._advance_position(state, fetch)
            self._buffer.pop(one)
            queue.append(one)
        if not out:
            self._failures.raise_first(self._buffer)
        return out

    def _readable(self, one: TopicPartition) -> tuple[PartitionState, CompletedFetch] | None:
        """The next answer of a partition, unless it is paused, or the answer is not the one for its position."""
        fetch, state = self._buffer.first(one), self._subscription.find(one)
        if fetch is None:
            return None
        if state is None or not state.is_fetchable or state.position is None:
            if state is None or not state.paused:
                self._buffer.drop(one)
            return None
        if fetch.next_offset != state.position.offset:
            self._buffer.drop(one)
            return None
        return state, fetch

    @staticmethod
    def _advance_position(state: PartitionState, fetch: CompletedFetch) -> None:
        position = state.position
        if position is not None and fetch.next_offset > position.offset:
            state.advance(position._replace(offset=fetch.next_offset, offset_epoch=fetch.offset_epoch))

    # --- requests ---

    def _session(self, node_id: int) -> FetchSession:
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = FetchSession()
        return session

    def _wanted(self, now_ms: int) -> dict[int, dict[TopicPartition, Wanted]]:
        """What to fetch, by node."""
        out: dict[int, dict[TopicPartition, Wanted]] = {}
        ready: dict[int, bool] = {}
        if self._is_full():
            return out
        for one in self._subscription.fetchable(self._failures.is_free):
            state = self._subscription.state(one)
            position = state.position
            if position is None or (waits_until := self._failures.waits_until(one, now_ms)) is not None:
                self._wake_by(None if position is None else waits_until)
                continue
            offset = self._next_offset(one, position.offset)
            if offset is None or (state.limit is not None and offset >= state.limit):
                continue
            if position.leader is None or position.leader not in self._metadata.nodes():
                self._metadata.request_update()
                continue
            node_id = self._replica(one, state, position.leader, now_ms)
            if node_id in self._pending:
                continue
            if node_id not in ready:
                ready[node_id] = self._is_ready(node_id, now_ms)
            if ready[node_id]:
                if state.topic_id is None:
                    state.topic_id = self._metadata.topic_id(one.topic)
                epoch = -1 if position.leader_epoch is None else position.leader_epoch
                wanted = Wanted(state.topic_id or ZERO_UUID, offset, epoch, self._options.max_partition_bytes)
                out.setdefault(node_id, {})[one] = wanted
        return out

    def _next_offset(self, one: TopicPartition, position: int) -> int | None:
        """Where the next Fetch of a partition begins; None if enough of it waits for the application."""
        first = self._buffer.first(one)
        if first is None:
            return position
        if first.next_offset != position:
            self._buffer.drop(one)  # the application sought another position
            return position
        return self._buffer.end_offset(one) if self._buffer.count(one) < _AHEAD else None

    def _is_full(self) -> bool:
        """Whether answers that the application can take fill the memory; those of paused partitions do not count."""
        limit, size = self._options.max_bytes, self._buffer.size_bytes
        if size < limit:
            return False
        for one in self._buffer:
            state = self._subscription.find(one)
            if state is None or not state.is_fetchable:
                size -= self._buffer.size_of(one)
        return size >= limit

    def _is_ready(self, node_id: int, now_ms: int) -> bool:
        if self._network.is_ready(node_id, now_ms):
            return True
        error = self._network.error_of(node_id)
        if error is not None and error.is_final:
            self._failures.fatal = error
        self._wake_by(self._network.ready_at_ms(node_id, now_ms))
        return False

    def _replica(self, one: TopicPartition, state: PartitionState, leader: int, now_ms: int) -> int:
        """The node to fetch from: the follower that the leader prefers for this client (KIP-392), or the leader."""
        preferred = state.replica(now_ms)
        if preferred is None:
            return leader
        topic = self._metadata.topic(one.topic)
        known = topic.partitions.get(one.partition) if topic is not None else None
        if preferred in self._metadata.nodes() and (known is None or preferred not in known.offline):
            return preferred
        state.clear_preferred_replica()
        self._metadata.request_update()
        return leader

    def _send(self, node_id: int, asked: Asked, now_ms: int) -> None:
        options = self._options
        room = max(options.max_partition_bytes, options.max_bytes - self._buffer.size_bytes)

        def request(version: int) -> FetchRequest:
            return FetchRequest(
                max_wait_ms=options.max_wait_ms if not self._is_closing else 0,
                min_bytes=options.min_bytes,
                max_bytes=min(options.max_bytes, room),
                isolation_level=int(options.committed_only),
                session_id=asked.session_id,
                session_epoch=asked.epoch,
                topics=asked.topics(),
                forgotten_topics_data=asked.forgotten(),
                rack_id=options.rack,
            )

        def done(answer: FetchResponse | KgctlError, at_ms: int) -> None:
            self._pending.discard(node_id)
            self._ending.discard(node_id)
            if isinstance(answer, KgctlError):
                self._failed(node_id, answer, at_ms)
            else:
                self._answered(node_id, asked, answer, outgoing, at_ms)

        outgoing: Outgoing[FetchResponse] = Outgoing(
            request,
            FetchResponse,
            done,
            options.request_timeout_ms + options.max_wait_ms,
            max_version=asked.max_version,
            api=FetchRequest,
        )
        self._pending.add(node_id)
        self.counts.requests += 1
        self._network.send(node_id, outgoing, now_ms)

    # --- answers ---

    def _failed(self, node_id: int, error: KgctlError, now_ms: int) -> None:
        self.counts.failures += 1
        session = self._session(node_id)
        session.failed()
        for one in session.partitions:
            if (state := self._subscription.find(one)) is not None:
                state.clear_preferred_replica()
        self._failures.on_node(error, session.partitions, now_ms)

    def _answered(
        self, node_id: int, asked: Asked, response: FetchResponse, outgoing: Outgoing[FetchResponse], now_ms: int
    ) -> None:
        self.counts.responses += 1
        self.counts.latency_ms += now_ms - outgoing.sent_ms
        self.counts.throttled_ms += response.throttle_time_ms
        session = self._session(node_id)
        rows = session.answered(response, outgoing.version)
        if self._is_closing:
            return
        if rows is None:
            if response.error_code:
                if response.error_code in (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, ErrorCode.UNKNOWN_TOPIC_ID):
                    self._metadata.request_update()
                self._failures.on_answer(response.error_code, asked.session, now_ms)
            return
        for one, row in rows:
            wanted = asked.session.get(one)
            state = self._subscription.find(one)
            if wanted is None or state is None or not state.has_valid_position or state.position is None:
                continue
            end = self._buffer.end_offset(one)
            if wanted.offset != (state.position.offset if end is None else end):
                continue  # the application sought another position since the request
            if wanted.topic_id != (state.topic_id or ZERO_UUID):
                continue  # the same offset of a topic that was deleted and created again
            if row.error_code:
                self._failures.on_row(one, row, wanted.offset, node_id, has_data=end is not None, now_ms=now_ms)
                self._subscription.move_to_end(one)
            else:
                self._take(one, state, row, wanted.offset, now_ms)
        self._failures.note_leaders(rows, response)
        if _says_nothing_is_left(response, rows):
            for one, wanted in asked.session.items():
                if (state := self._subscription.find(one)) is not None:
                    state.saw_nothing(wanted.offset, now_ms)

    def _take(
        self, one: TopicPartition, state: PartitionState, row: FetchResponse.Partition, offset: int, now_ms: int
    ) -> None:
        self._failures.succeeded(one)
        state.saw_ends(
            *(None if end < 0 else end for end in (row.high_watermark, row.last_stable_offset, row.log_start_offset))
        )
        if row.preferred_read_replica >= 0:
            state.prefer_replica(row.preferred_read_replica, now_ms + self._options.metadata_max_age_ms)
        if not row.records:
            return
        options = self._options
        fetch = CompletedFetch(one, row, offset, committed_only=options.committed_only, check_crcs=options.check_crcs)
        self.counts.bytes += fetch.size_bytes
        self._subscription.move_to_end(one)
        if fetch.is_consumed:
            self._failures.no_progress(one, offset)
            return
        self._buffer.append(fetch)

    def _wake_by(self, at_ms: int | None) -> None:
        if at_ms is not None and (self._wake_at is None or at_ms < self._wake_at):
            self._wake_at = at_ms


def _says_nothing_is_left(response: FetchResponse, rows: Rows) -> bool:
    """A broker that throttles leaves out all records (KIP-219), and a leader those that a follower is to send (KIP-392)."""
    if response.throttle_time_ms > 0:
        return False
    return not any(row.records or row.error_code or row.preferred_read_replica >= 0 for _, row in rows)
