"""Transactions over raw sockets: producers that commit one transaction after another, and a read_committed reader.

Each producer works as a client does: it produces, waits for the acknowledgement, then ends the transaction. With the second
version of transactions (KIP-890) Produce adds the partition and EndTxn gives a new epoch; with the first one,
AddPartitionsToTxn comes before. A broker that still completes the last transaction answers CONCURRENT_TRANSACTIONS: the
request is repeated after a millisecond, where clients wait for 20 to 100.
"""

from __future__ import annotations

import contextlib
import heapq
import selectors
import struct
import time
from collections.abc import Generator, Sequence
from typing import Any

import google_crc32c

from bench import wire
from bench.wire import Refused
from broker.protocol import frames
from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.record_batch import Record, batches, build_batch
from broker.protocol.wire_types import Message

VALUE = bytes(100)
TIMEOUT_MS, ANSWER_WITHIN_S = 30_000, 20.0
REPEATED_AFTER_S = 0.001
TRANSACTION, READ_COMMITTED, LATEST, LONGEST_FETCH_MS = 1, 1, -1, 10_000
# Versions of Produce, EndTxn and InitProducerId, by version of the transactions.
VERSIONS = {1: (9, 3, 4), 2: (12, 5, 5)}
_PRODUCER_AT, _CRC_AT, _CHECKED_FROM = 43, 17, 21
_PRODUCER, _CRC = struct.Struct(">qhi"), struct.Struct(">I")
_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
Conversation = Generator[tuple[Message, int, float], Any, None]
"""Yields requests with their version and the seconds to wait before, and receives the answers."""


def supports(address: tuple[str, int], version: int) -> bool:
    """Whether the broker serves this version of transactions."""
    with wire.connect(address) as sock:
        answer = _ask(sock, ApiVersionsRequest(client_software_name="bench", client_software_version="1"), 3)
    newest = {api.api_key: api.max_version for api in answer.api_keys}
    needed = zip((ProduceRequest, EndTxnRequest, InitProducerIdRequest), VERSIONS[version], strict=True)
    return all(newest.get(request.API_KEY, -1) >= wanted for request, wanted in needed)


class Producer:
    """A transactional producer that writes to one partition, on its own connection."""

    def __init__(
        self, address: tuple[str, int], name: str, place: tuple[str, int], *, records: int, version: int
    ) -> None:
        self.sock = wire.connect(address)
        self.sock.settimeout(ANSWER_WITHIN_S)
        self.committed = 0
        self._name, (self._topic, self._partition), self._version = name, place, version
        self._produce, self._end, initialize = VERSIONS[version]
        self._records, self._sequence = records, 0
        now_ms = int(time.time() * 1000)
        stored = [Record(n, now_ms, None, VALUE) for n in range(records)]
        self._batch = bytearray(
            build_batch(stored, producer_id=0, producer_epoch=0, base_sequence=0, is_transactional=True)
        )
        # A broker may create the topic of its transactions at the first lookup.
        _until_served(self.sock, FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[name]), 4)
        answer = _until_served(
            self.sock,
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS),
            initialize,
        )
        self._id, self._epoch = answer.producer_id, answer.producer_epoch

    def transaction(self) -> Conversation:
        if self._version < 2:
            yield from self._repeated(self._add_request(), 3)
        yield from self._repeated(self._produce_request(), self._produce)
        self._sequence += self._records
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=self._id, producer_epoch=self._epoch, committed=True
        )
        ended = yield from self._repeated(request, self._end)
        if self._version >= 2:
            self._id, self._epoch, self._sequence = ended.producer_id, ended.producer_epoch, 0
        self.committed += 1

    def _repeated(self, request: Message, version: int) -> Generator[tuple[Message, int, float], Any, Any]:
        wait_s = 0.0
        while True:
            answer = yield request, version, wait_s
            code = _error_code(answer)
            if code == ErrorCode.NONE:
                return answer
            if code not in _AGAIN:
                raise Refused(f"{type(request).__name__}: error {code}")
            wait_s = REPEATED_AFTER_S

    def _add_request(self) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnRequest.Topic(name=self._topic, partitions=[self._partition])],
        )

    def _produce_request(self) -> ProduceRequest:
        batch = self._batch
        _PRODUCER.pack_into(batch, _PRODUCER_AT, self._id, self._epoch, self._sequence)
        _CRC.pack_into(batch, _CRC_AT, google_crc32c.value(bytes(batch[_CHECKED_FROM:])))
        part = ProduceRequest.Partition(index=self._partition, records=bytes(batch))
        topic = ProduceRequest.Topic(name=self._topic, partition_data=[part])
        return ProduceRequest(transactional_id=self._name, acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic])


def rate(producers: Sequence[Producer], seconds: float) -> float:
    """Transactions per second of producers that work at the same time."""
    for producer in producers:
        producer.committed = 0
    began = time.perf_counter()
    if len(producers) == 1:
        while time.perf_counter() < began + seconds:
            transact(producers[0])
    else:
        _Crowd(producers).run(began + seconds)
    return sum(producer.committed for producer in producers) / (time.perf_counter() - began)


def transact(producer: Producer) -> None:
    """One transaction."""
    conversation = producer.transaction()
    with contextlib.suppress(StopIteration):
        request, version, wait_s = next(conversation)
        while True:
            time.sleep(wait_s) if wait_s else None
            request, version, wait_s = conversation.send(_ask(producer.sock, request, version))


class _Crowd:
    """Producers of one thread, each with a request in flight or waiting to be repeated."""

    def __init__(self, producers: Sequence[Producer]) -> None:
        self._selector = selectors.DefaultSelector()
        self._sent: dict[Producer, tuple[Conversation, Message, int]] = {}
        self._waiting: list[tuple[float, int, Producer]] = []
        self._producers = producers

    def run(self, until: float) -> None:
        for producer in self._producers:
            self._selector.register(producer.sock, selectors.EVENT_READ, producer)
            self._begin(producer)
        left = len(self._producers)
        while left:
            now = time.perf_counter()
            while self._waiting and self._waiting[0][0] <= now:
                self._send(heapq.heappop(self._waiting)[2])
            timeout = self._waiting[0][0] - now if self._waiting else ANSWER_WITHIN_S
            ready = self._selector.select(timeout)
            if not ready and not self._waiting:
                raise Refused(f"no response within {ANSWER_WITHIN_S:.0f} s")
            for key, _ in ready:
                producer = key.data
                conversation, request, version = self._sent[producer]
                try:
                    self._continue(producer, conversation, conversation.send(_answer(producer.sock, request, version)))
                except StopIteration:
                    if time.perf_counter() < until:
                        self._begin(producer)
                    else:
                        left -= 1
        self._selector.close()

    def _begin(self, producer: Producer) -> None:
        conversation = producer.transaction()
        self._continue(producer, conversation, next(conversation))

    def _continue(self, producer: Producer, conversation: Conversation, step: tuple[Message, int, float]) -> None:
        request, version, wait_s = step
        self._sent[producer] = conversation, request, version
        if wait_s:
            heapq.heappush(self._waiting, (time.perf_counter() + wait_s, id(producer), producer))
        else:
            self._send(producer)

    def _send(self, producer: Producer) -> None:
        _, request, version = self._sent[producer]
        producer.sock.sendall(frames.request_frame(request, version, 1, wire.CLIENT_ID))


class Reader:
    """A read_committed reader whose Fetch waits for the next transaction."""

    def __init__(self, address: tuple[str, int], place: tuple[str, int]) -> None:
        self.sock = wire.connect(address)
        self.sock.settimeout(ANSWER_WITHIN_S)
        self._topic, self._partition = place
        self._request: FetchRequest
        at = ListOffsetsRequest.Partition(partition_index=self._partition, timestamp=LATEST)
        topics = [ListOffsetsRequest.Topic(name=self._topic, partitions=[at])]
        (found,) = _ask(self.sock, ListOffsetsRequest(isolation_level=READ_COMMITTED, topics=topics), 6).topics
        self._offset = found.partitions[0].offset

    def ask(self) -> None:
        part = FetchRequest.Partition(partition=self._partition, fetch_offset=self._offset, partition_max_bytes=1 << 20)
        self._request = FetchRequest(
            max_wait_ms=LONGEST_FETCH_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=READ_COMMITTED,
            topics=[FetchRequest.Topic(topic=self._topic, partitions=[part])],
        )
        self.sock.sendall(frames.request_frame(self._request, 11, 1, wire.CLIENT_ID))

    def wait(self) -> None:
        """Wait for the answer, and for another one if it has no records of transactions."""
        while True:
            (topic,) = _answer(self.sock, self._request, 11).responses
            (part,) = topic.partitions
            if part.error_code:
                raise Refused(f"Fetch: error {part.error_code}")
            found = [header for _, header in batches(bytes(part.records or b""), partial_tail=True)]
            self._offset = max([self._offset, *(header.next_offset for header in found)])
            if any(not header.is_control for header in found):
                return
            self.ask()


def seconds_to_reader(producer: Producer, reader: Reader, count: int) -> list[float]:
    """The time from the first request of each transaction until the reader has its record."""
    found = []
    for _ in range(count):
        reader.ask()
        began = time.perf_counter()
        transact(producer)
        reader.wait()
        found.append(time.perf_counter() - began)
    return found


def _until_served(sock: Any, request: Message, version: int) -> Any:
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while _error_code(answer := _ask(sock, request, version)) in _AGAIN and time.monotonic() < deadline:
        time.sleep(0.02)
    if code := _error_code(answer):
        raise Refused(f"{type(request).__name__}: error {code}")
    return answer


def _ask(sock: Any, request: Message, version: int) -> Any:
    sock.sendall(frames.request_frame(request, version, 1, wire.CLIENT_ID))
    return _answer(sock, request, version)


def _answer(sock: Any, request: Message, version: int) -> Any:
    return frames.decode_response(APIS[request.API_KEY].response, wire.read_frame(sock), version)[1]


def _error_code(answer: Any) -> int:
    match type(answer).__name__:
        case "ProduceResponse":
            return int(answer.responses[0].partition_responses[0].error_code)
        case "AddPartitionsToTxnResponse":
            return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
        case "FindCoordinatorResponse":
            return int(answer.coordinators[0].error_code)
    return int(answer.error_code)
