"""The sender against a model broker that checks sequences as Kafka does and loses requests and responses on demand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.produce import ProduceResponse
from broker.protocol.record_batch import Record, build_batch, decode_records, parse_header
from kgctl.client.net.cluster import Node
from kgctl.client.net.errors import BrokerError, TimedOut, Unreachable
from kgctl.client.producer.accumulator import RecordAccumulator
from kgctl.client.producer.records import Batch, OutgoingRecord
from kgctl.client.producer.sender import Sender, SenderSettings, Sending
from kgctl.exit_codes import exit_code_of
from kgctl.model.topic_partition import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
NODE, OTHER = Node(1, "n1", 9092), Node(2, "n2", 9092)
LEADERS = {P0: NODE, P1: NODE}
LOST = Unreachable("the connection broke")


def encode(batch: Batch) -> bytes:
    records = [Record(n, 0, None, record.value, ()) for n, record in enumerate(batch.records)]
    return build_batch(records, producer_id=1, producer_epoch=0, base_sequence=batch.base_sequence)


def make(batch_bytes: int = 100, **options: int | bool) -> tuple[RecordAccumulator, Sender]:
    gathered = RecordAccumulator(batch_bytes, linger_ms=0, buffer_bytes=1 << 20)
    return gathered, Sender(gathered, SenderSettings(retry_backoff_ms=10, **options), encode)  # type: ignore[arg-type]


def append(gathered: RecordAccumulator, *values: str, partition: TopicPartition = P0, now_ms: int = 0) -> None:
    for number, value in enumerate(values, 1):
        gathered.append(partition, OutgoingRecord(value.encode(), number=number), now_ms)


@dataclass
class ModelBroker:
    """One log per partition, shared by all nodes, and the last five batches of the only producer."""

    logs: dict[TopicPartition, list[str]] = field(default_factory=dict)
    recent: dict[TopicPartition, list[tuple[int, int, int]]] = field(default_factory=dict)
    max_records: int = 1000

    def answer(self, sending: Sending, *, code: int = 0) -> ProduceResponse:
        """Append the batches of the request, or refuse them with `code`."""
        topic = sending.request.topic_data[0]
        rows = []
        for row in topic.partition_data:
            partition = TopicPartition(topic.name, row.index)
            found, offset = (code, -1) if code else self.append(partition, bytes(row.records or b""))
            rows.append(ProduceResponse.Partition(index=row.index, error_code=found, base_offset=offset))
        return ProduceResponse(responses=[ProduceResponse.Topic(name=topic.name, partition_responses=rows)])

    def append(self, partition: TopicPartition, batch: bytes) -> tuple[int, int]:
        header = parse_header(batch)
        log, recent = self.logs.setdefault(partition, []), self.recent.setdefault(partition, [])
        for sequence, count, offset in recent[-5:]:
            if (sequence, count) == (header.base_sequence, header.record_count):
                return 0, offset
        if header.record_count > self.max_records:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        # An unknown producer may start at any sequence.
        expected = sum(recent[-1][:2]) if recent else header.base_sequence
        if header.base_sequence < expected:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1
        if header.base_sequence > expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        recent.append((header.base_sequence, header.record_count, len(log)))
        log += [(record.value or b"").decode() for record in decode_records(batch)]
        return 0, recent[-1][2]


def values_of(sending: Sending) -> list[list[str]]:
    return [[(record.value or b"").decode() for record in batch.records] for batch in sending.batches]


def test_a_request_carries_one_batch_of_each_partition() -> None:
    gathered, sender = make()
    append(gathered, "a")
    append(gathered, "b", partition=P1)
    (sending,) = sender.next_sends(LEADERS, 0)
    assert values_of(sending) == [["a"], ["b"]]


def begin(gathered: RecordAccumulator, sender: Sender, broker: ModelBroker) -> None:
    """Get one record acknowledged, so that the broker knows the producer."""
    append(gathered, "first")
    (sending,) = sender.next_sends(LEADERS, 0)
    sender.on_response(sending, broker.answer(sending), 0)


def test_until_the_broker_knows_the_producer_a_partition_has_one_request_in_flight() -> None:
    gathered, sender = make()
    append(gathered, *(f"{n}{'x' * 30}" for n in range(3)))
    broker = ModelBroker()
    (first,) = sender.next_sends(LEADERS, 0)
    sender.on_response(first, broker.answer(first, code=ErrorCode.NOT_ENOUGH_REPLICAS), 0)
    (again,) = sender.next_sends(LEADERS, 10)
    sender.on_response(again, broker.answer(again), 10)
    for sending in sender.next_sends(LEADERS, 10):
        sender.on_response(sending, broker.answer(sending), 10)
    assert [value[0] for value in broker.logs[P0]] == ["0", "1", "2"]


def test_a_request_built_while_another_fails_is_sent_after_it() -> None:
    gathered, sender = make()
    broker = ModelBroker()
    begin(gathered, sender, broker)
    append(gathered, "0" * 60, "1" * 60)
    append(gathered, "other", partition=P1)
    first, second = sender.next_sends({P0: NODE, P1: NODE}, 0)
    assert sender.may_send(first)
    sender.on_failure(first, LOST, 0)
    assert not sender.may_send(second)
    sender.hold_back(second, 0)
    assert sender.in_flight == 0
    assert sender.next_sends(LEADERS, 9) == []
    again = sender.next_sends(LEADERS, 10)
    assert [values_of(sending)[0][0][0] for sending in again] == ["0", "1"]
    assert [batch.attempts for sending in again for batch in sending.batches if batch.partition == P0] == [2, 1]
    for sending in again:
        assert sender.may_send(sending)
        sender.on_response(sending, broker.answer(sending), 10)
    assert [value[0] for value in broker.logs[P0]] == ["f", "0", "1"]
    assert sender.is_idle


def test_a_failure_does_not_delay_other_partitions() -> None:
    gathered, sender = make()
    append(gathered, "a")
    append(gathered, "b", partition=P1)
    first, second = sender.next_sends({P0: NODE, P1: OTHER}, 0)
    sender.on_failure(first, LOST, 0)
    assert sender.may_send(second)


def test_at_most_five_requests_are_in_flight() -> None:
    gathered, sender = make()
    begin(gathered, sender, ModelBroker())
    append(gathered, *(f"{n}{'x' * 30}" for n in range(7)))
    sends = sender.next_sends(LEADERS, 0)
    assert len(sends) == 5
    assert sender.next_sends(LEADERS, 0) == []
    broker = ModelBroker()
    sender.on_response(sends[0], broker.answer(sends[0]), 0)
    assert len(sender.next_sends(LEADERS, 0)) == 1


def test_without_sequences_a_partition_has_one_request_in_flight() -> None:
    gathered, sender = make(idempotent=False)
    append(gathered, *(f"{n}{'x' * 30}" for n in range(3)))
    (sending,) = sender.next_sends(LEADERS, 0)
    sender.on_response(sending, ModelBroker().answer(sending), 0)
    assert len(sender.next_sends(LEADERS, 0)) == 1


def test_after_a_lost_response_the_same_sequences_are_sent_again_before_new_records() -> None:
    gathered, sender = make()
    broker = ModelBroker()
    begin(gathered, sender, broker)
    append(gathered, *(f"{n}{'x' * 30}" for n in range(3)))
    sends = sender.next_sends(LEADERS, 0)
    broker.answer(sends[0])
    sender.on_failure(sends[0], LOST, 0)
    append(gathered, "new")
    assert sender.next_sends(LEADERS, 50) == []  # two are still in flight
    for sending in sends[1:]:
        sender.on_failure(sending, LOST, 50)
    assert sender.next_sends(LEADERS, 59) == []
    again = sender.next_sends(LEADERS, 60)
    assert [parse_header(sending.batches[0].encoded or b"").base_sequence for sending in again] == [1, 2, 3, 4]
    for sending in again:
        sender.on_response(sending, broker.answer(sending), 60)
    assert [value[0] for value in broker.logs[P0]] == ["f", "0", "1", "2", "n"]
    assert [delivery.base_offset for delivery in sender.delivered] == [0, 1, 2, 3, 4]
    assert sender.is_idle
    assert gathered.used_bytes == 0


def test_a_batch_after_a_failed_one_is_sent_again_after_it() -> None:
    gathered, sender = make()
    broker = ModelBroker()
    begin(gathered, sender, broker)
    append(gathered, "0" * 60, "1" * 60)
    first, second = sender.next_sends(LEADERS, 0)
    sender.on_response(first, broker.answer(first, code=ErrorCode.NOT_ENOUGH_REPLICAS), 0)
    sender.on_response(second, broker.answer(second), 0)
    assert sender.failure is None
    for sending in sender.next_sends(LEADERS, 20):
        sender.on_response(sending, broker.answer(sending), 20)
    assert [value[0] for value in broker.logs[P0]] == ["f", "0", "1"]


def test_a_sequence_error_of_the_first_batch_is_permanent() -> None:
    gathered, sender = make()
    append(gathered, "a")
    (sending,) = sender.next_sends(LEADERS, 0)
    sender.on_response(sending, ModelBroker().answer(sending, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    assert isinstance(sender.failure, BrokerError)
    assert "record 1 to t-0" in str(sender.failure)


def test_a_batch_that_is_too_large_for_the_topic_is_split_until_it_fits() -> None:
    gathered, sender = make(batch_bytes=10_000)
    append(gathered, *map(str, range(10)))
    broker = ModelBroker(max_records=3)
    for now_ms in range(0, 100, 10):
        for sending in sender.next_sends(LEADERS, now_ms):
            sender.on_response(sending, broker.answer(sending), now_ms)
    assert broker.logs[P0] == [str(n) for n in range(10)]
    assert sender.failure is None
    assert gathered.used_bytes == 0


def test_the_first_half_of_a_split_batch_is_retried_before_the_second() -> None:
    gathered, sender = make(batch_bytes=10_000, idempotent=False)
    append(gathered, "a", "b")
    (whole,) = sender.next_sends(LEADERS, 0)
    sender.on_response(whole, ModelBroker().answer(whole, code=ErrorCode.MESSAGE_TOO_LARGE), 0)
    (part,) = sender.next_sends(LEADERS, 0)
    sender.on_response(part, ModelBroker().answer(part, code=ErrorCode.NOT_LEADER_OR_FOLLOWER), 0)
    assert [values_of(sending) for sending in sender.next_sends(LEADERS, 10)] == [[["a"]]]


def test_a_record_that_is_too_large_is_reported_with_its_number() -> None:
    gathered, sender = make()
    append(gathered, "a", "b")
    broker = ModelBroker(max_records=0)
    for now_ms in range(0, 50, 10):
        for sending in sender.next_sends(LEADERS, now_ms):
            sender.on_response(sending, broker.answer(sending), now_ms)
    assert "record 1 to t-0" in str(sender.failure)
    assert "MESSAGE_TOO_LARGE" in str(sender.failure)


def test_after_a_failure_nothing_new_is_sent_but_answers_count() -> None:
    gathered, sender = make()
    append(gathered, "a")
    append(gathered, "b", partition=P1)
    leaders = {P0: NODE, P1: OTHER}
    refused, accepted = sender.next_sends(leaders, 0)
    sender.on_response(refused, ModelBroker().answer(refused, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED), 0)
    append(gathered, "c")
    assert sender.next_sends(leaders, 0) == []
    sender.on_response(accepted, ModelBroker().answer(accepted), 0)
    assert [delivery.batch.partition for delivery in sender.delivered] == [P1]


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_moved_partition_is_looked_up_and_the_batch_is_retried(code: int) -> None:
    gathered, sender = make()
    append(gathered, "a")
    (sending,) = sender.next_sends(LEADERS, 0)
    sender.on_response(sending, ModelBroker().answer(sending, code=code), 0)
    assert sender.stale == {P0}
    (again,) = sender.next_sends({P0: OTHER}, 10)
    assert again.node == OTHER


def test_a_topic_that_stays_unknown_is_a_not_found_error() -> None:
    gathered, sender = make()
    append(gathered, "a")
    for now_ms in range(0, 6000, 100):
        for sending in sender.next_sends(LEADERS, now_ms):
            sender.on_response(sending, ModelBroker().answer(sending, code=3), now_ms)
    assert sender.failure is not None
    assert exit_code_of(sender.failure) == 5


def test_a_partition_does_not_move_while_a_batch_is_in_flight_to_the_old_leader() -> None:
    gathered, sender = make()
    append(gathered, "a")
    (first,) = sender.next_sends({P0: NODE}, 0)
    append(gathered, "b")
    assert sender.next_sends({P0: OTHER}, 0) == []
    sender.on_response(first, ModelBroker().answer(first), 0)
    assert [sending.node for sending in sender.next_sends({P0: OTHER}, 0)] == [OTHER]


@pytest.mark.parametrize(
    ("reason", "kind"), [(LOST, Unreachable), (TimedOut("no answer"), TimedOut)], ids=["unreachable", "silent"]
)
def test_a_batch_that_is_not_acknowledged_in_time_fails_as_possibly_written(
    reason: Unreachable | TimedOut, kind: type[Exception]
) -> None:
    gathered, sender = make(delivery_timeout_ms=100)
    append(gathered, "a")
    (sending,) = sender.next_sends(LEADERS, 0)
    sender.on_failure(sending, reason, 50)
    assert sender.next_sends({}, 99) == []
    assert sender.failure is None
    sender.next_sends({}, 100)
    assert isinstance(sender.failure, kind)
    assert "may have been written" in str(sender.failure)


def test_a_batch_that_was_never_sent_fails_as_not_written() -> None:
    gathered, sender = make(delivery_timeout_ms=100)
    append(gathered, "a")
    sender.next_sends({}, 100)
    assert sender.failure is not None
    assert "may have been" not in str(sender.failure)


def test_sequences_wrap_around() -> None:
    assert Batch(P0, 0, position=2**31 - 1).base_sequence == 2**31 - 1
    assert Batch(P0, 0, position=2**31).base_sequence == 0


def test_with_acks_0_a_batch_counts_as_soon_as_it_is_sent() -> None:
    gathered, sender = make(acks=0, idempotent=False)
    append(gathered, "a")
    (sending,) = sender.next_sends(LEADERS, 0)
    assert sending.request.acks == 0
    sender.on_sent_without_answer(sending)
    assert [delivery.base_offset for delivery in sender.delivered] == [-1]
    assert sender.is_idle


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_every_record_arrives_once_and_in_order_whatever_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    gathered, sender = make(
        batch_bytes=chance.choice([100, 200, 1000]), delivery_timeout_ms=1 << 40, max_in_flight=chance.choice([1, 2, 5])
    )
    broker = ModelBroker(max_records=chance.choice([2, 1000]))
    wanted: dict[TopicPartition, list[str]] = {P0: [], P1: []}
    for now_ms, quiet in clock(chance):
        if not quiet:
            for _ in range(chance.randrange(6)):
                partition = chance.choice([P0, P1])
                wanted[partition].append(f"{len(wanted[partition])}")
                append(gathered, wanted[partition][-1], partition=partition, now_ms=now_ms)
        leaders = {P0: NODE, P1: chance.choice([NODE, OTHER]) if not quiet else NODE}
        one_round(chance, sender, broker, leaders, now_ms, quiet)
        assert sender.failure is None
    assert sender.is_idle
    assert gathered.is_empty
    assert gathered.used_bytes == 0
    assert {partition: log for partition, log in broker.logs.items() if log} == {
        partition: log for partition, log in wanted.items() if log
    }
    assert sum(len(delivery.batch.records) for delivery in sender.delivered) == sum(map(len, wanted.values()))


def clock(chance: random.Random) -> Iterator[tuple[int, bool]]:
    """Times of a phase with faults, then of a phase without, in which all batches settle."""
    now_ms = 0
    for step in range(120):
        now_ms += chance.randrange(15)
        yield now_ms, step >= 40


def one_round(
    chance: random.Random,
    sender: Sender,
    broker: ModelBroker,
    leaders: dict[TopicPartition, Node],
    now_ms: int,
    quiet: bool,
) -> None:
    """Handle the requests of one connection in order; after the first that is lost, all later ones are lost too.

    If the connection breaks before a request is sent, the later ones may use a new connection.
    """
    broken: set[Node] = set()
    for sending in sender.next_sends(leaders, now_ms, flush=quiet):
        fate = 1.0 if quiet else chance.random()
        if not sender.may_send(sending):
            sender.hold_back(sending, now_ms)
        elif sending.node in broken or fate < 0.08:
            sender.on_failure(sending, LOST, now_ms)
        elif fate < 0.15:
            broken.add(sending.node)
            sender.on_failure(sending, LOST, now_ms)
        elif fate < 0.3:
            broker.answer(sending)
            broken.add(sending.node)
            sender.on_failure(sending, LOST, now_ms)
        elif fate < 0.4:
            sender.on_response(sending, broker.answer(sending, code=ErrorCode.NOT_ENOUGH_REPLICAS), now_ms)
        else:
            sender.on_response(sending, broker.answer(sending), now_ms)


def test_what_an_abort_drops_is_not_sent_again_and_costs_its_sequences() -> None:
    gathered, sender = make()
    append(gathered, "a")
    assert sender.discard() is False
    assert gathered.used_bytes == 0
    append(gathered, "b")
    (sending,) = sender.next_sends(LEADERS, 0)
    sender.on_failure(sending, LOST, 0)
    append(gathered, "c", partition=P1)
    assert sender.discard() is True
    assert (gathered.used_bytes, sender.is_idle, sender.next_sends(LEADERS, 100)) == (0, True, [])


def test_a_new_epoch_starts_at_sequence_zero() -> None:
    gathered, sender = make()
    broker = ModelBroker()
    begin(gathered, sender, broker)
    for is_known in (True, False):
        sender.restart_sequences(is_known=is_known)
        append(gathered, *(f"{n}{'x' * 60}" for n in range(2)))
        first, *others = sender.next_sends(LEADERS, 0)
        assert first.batches[0].base_sequence == 0
        # Only a producer that the broker knows may have several batches in flight: it would refuse the second without the first.
        assert len(others) == is_known
        for sending in (first, *others, *sender.next_sends(LEADERS, 0)):
            sender.on_response(sending, broker.answer(sending), 0)
        for sending in sender.next_sends(LEADERS, 0):
            sender.on_response(sending, broker.answer(sending), 0)


def test_each_request_of_a_transaction_names_it() -> None:
    gathered, sender = make(transactional_id="tx")  # type: ignore[arg-type]
    append(gathered, "a")
    (sending,) = sender.next_sends(LEADERS, 0)
    assert sending.request.transactional_id == "tx"
