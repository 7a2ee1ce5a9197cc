"""What the sender makes of answers: done, again in order, or failed; after Kafka's SenderTest."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from kgctl.client.producer.core.batch import Delivery, ProducerIdentity
from tests.harness.client_script import Request
from tests.harness.producing import NOT_LEADER, PRODUCER_ID, Scene, code_name

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
RETRIABLE = ErrorCode.NOT_ENOUGH_REPLICAS


def pipelined(**options: int | bool) -> Scene:
    """A partition of which the broker has one record: its next sequences are in flight together."""
    scene = Scene(batch_bytes=1, delivery_timeout_ms=options.pop("delivery_timeout_ms", 60_000), **options)  # type: ignore[arg-type]
    scene.batch_of(b"first")
    scene.answer()
    return scene


def codes(deliveries: list[Delivery]) -> list[str | None]:
    assert all(one.done() for one in deliveries)
    return [code_name(one.error()) for one in deliveries]


# --- plain ---


def test_an_acknowledged_record_has_its_offset_and_the_time_of_the_broker() -> None:
    scene = Scene()
    (delivery,) = scene.batch_of(b"a")
    scene.answer(offset=42, log_append_time_ms=1234)
    assert delivery.result(0) == ("orders", 0, 42, 1234)


def test_each_record_of_a_batch_has_an_offset() -> None:
    scene = Scene(linger_ms=5)
    deliveries = [scene.send(b"%d" % number) for number in range(3)]
    scene.sleep(5)
    scene.answer(offset=7)
    assert [one.result(0).offset for one in deliveries] == [7, 8, 9]


def test_a_lost_connection_is_retried_until_retries_are_used_up() -> None:
    scene = Scene(idempotent=False, retries=1, delivery_timeout_ms=60_000)
    (delivery,) = scene.batch_of(b"a")
    scene.disconnect()
    scene.sleep(500)
    scene.disconnect()
    scene.sleep(500)
    assert codes([delivery]) == ["UNREACHABLE"]
    assert scene.produced == []


def test_an_error_that_no_retry_helps_fails_the_batch() -> None:
    scene = Scene(idempotent=False)
    (delivery,) = scene.batch_of(b"a")
    scene.answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert codes([delivery]) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert "not authorised for WRITE on topic orders" in str(delivery.error())


def test_without_acknowledgements_a_record_is_done_once_it_is_written() -> None:
    scene = Scene(idempotent=False, acks=0)
    (delivery,) = scene.batch_of(b"a")
    assert delivery.result(0).offset == -1
    (request,) = scene.script.sent(ProduceRequest)
    assert request.acks == 0


def test_without_sequences_a_partition_has_one_batch_in_flight_and_stays_in_order() -> None:
    scene = Scene(idempotent=False, keeps_order=True, batch_bytes=1, nodes=2, delivery_timeout_ms=60_000)
    scene.batch_of(b"a")
    scene.batch_of(b"b")
    scene.script.leaders["orders", 0] = (2, 1)
    scene.answer(NOT_LEADER)
    scene.sleep(200)
    assert [(one.values, one.request.endpoint.host) for one in scene.produced] == [([b"a"], "host2")]
    scene.answer()
    assert scene.values == [[b"b"]]


def test_a_refused_record_fails_with_its_own_error_and_the_others_with_a_hint() -> None:
    scene = Scene(linger_ms=5)
    deliveries = [scene.send(b"%d" % number) for number in range(2)]
    scene.sleep(5)
    rows = [ProduceResponse.RecordError(batch_index=1, batch_index_error_message="too sour")]
    scene.answer(ErrorCode.INVALID_RECORD, record_errors=rows)
    assert "another record of the batch" in str(deliveries[0].error())
    assert "too sour" in str(deliveries[1].error())
    assert codes(deliveries) == ["INVALID_RECORD", "INVALID_RECORD"]


def test_the_message_of_the_broker_is_in_the_error() -> None:
    scene = Scene()
    (delivery,) = scene.batch_of(b"a")
    scene.answer(ErrorCode.INVALID_REQUEST, error_message="bad moon")
    assert "bad moon" in str(delivery.error())


def test_a_node_that_is_not_ready_gets_its_records_later() -> None:
    scene = Scene(delivery_timeout_ms=60_000)
    scene.script.down.add(scene.script.endpoint(1))
    scene.script.break_node(scene.script.endpoint(1))
    scene.batch_of(b"a")
    scene.sleep(200)
    assert scene.produced == []
    scene.script.down.clear()
    scene.sleep(2000)
    assert scene.values == [[b"a"]]


def test_no_more_requests_are_in_flight_than_allowed() -> None:
    scene = pipelined(max_in_flight=3)
    for number in range(6):
        scene.batch_of(b"%d" % number)
    assert scene.sequences == [1, 2, 3]
    scene.answer()
    assert scene.sequences == [2, 3, 4]


def test_a_topic_without_use_is_forgotten_and_asked_for_again() -> None:
    scene = Scene()
    scene.sleep(400_000)
    assert scene.core.metadata.partition_count("orders") is None
    scene.send()
    scene.turn()
    scene.sleep(100)
    assert scene.values == [[b"value"]]


def test_a_partition_without_a_leader_waits_for_one() -> None:
    scene = Scene(delivery_timeout_ms=60_000)
    scene.script.leaders["orders", 0] = (-1, 1)
    scene.core.metadata.request_update()
    scene.sleep(100)
    scene.batch_of(b"a")
    assert scene.produced == []
    scene.script.leaders["orders", 0] = (1, 2)
    scene.sleep(5000)
    assert scene.values == [[b"a"]]


# --- idempotence ---


def test_a_producer_id_is_asked_for_before_the_first_record_leaves() -> None:
    scene = Scene(answers_initialization=False)
    assert scene.script.sent(InitProducerIdRequest) == []
    scene.batch_of(b"a")
    assert scene.produced == []
    (request,) = scene.script.requests(InitProducerIdRequest)
    scene.script.answer(request, InitProducerIdResponse(producer_id=9, producer_epoch=1))
    scene.turn()
    (sent,) = scene.produced
    assert (sent.header.producer_id, sent.header.producer_epoch, sent.sequence) == (9, 1, 0)


def test_a_refused_initialization_fails_what_waits_and_the_next_record_asks_again() -> None:
    scene = Scene(answers_initialization=False)
    refused = InitProducerIdResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_id=-1, producer_epoch=-1
    )
    (first,) = scene.batch_of(b"a")
    (request,) = scene.script.requests(InitProducerIdRequest)
    scene.script.answer(request, refused)
    scene.turn()
    assert codes([first]) == ["CLUSTER_AUTHORIZATION_FAILED"]
    scene.batch_of(b"b")
    (request,) = scene.script.requests(InitProducerIdRequest)
    scene.script.answer(request, InitProducerIdResponse(producer_id=9, producer_epoch=0))
    scene.turn()
    assert scene.values == [[b"b"]]


def test_until_the_broker_knows_the_producer_a_partition_has_one_batch_in_flight() -> None:
    scene = Scene(batch_bytes=1)
    for value in (b"a", b"b", b"c"):
        scene.batch_of(value)
    assert scene.sequences == [0]
    scene.answer()
    assert scene.sequences == [1, 2]


def test_batches_in_flight_that_fail_are_sent_again_one_by_one_in_order() -> None:
    scene = pipelined()
    for value in (b"a", b"b", b"c"):
        scene.batch_of(value)
    scene.answer(NOT_LEADER)
    scene.answer(OUT_OF_ORDER)
    scene.answer(OUT_OF_ORDER)
    sent = []
    for _ in range(3):
        scene.sleep(300)
        sent.append((scene.sequences, scene.values))
        scene.answer()
    assert sent == [([1], [[b"a"]]), ([2], [[b"b"]]), ([3], [[b"c"]])]


def test_answers_out_of_order_leave_the_records_in_order() -> None:
    scene = pipelined()
    deliveries = [scene.batch_of(value)[0] for value in (b"a", b"b", b"c")]
    scene.answer(RETRIABLE)
    scene.answer(OUT_OF_ORDER)
    scene.answer(OUT_OF_ORDER)
    scene.sleep(300)
    assert scene.sequences == [1]
    new = scene.batch_of(b"d")
    assert scene.sequences == [1]
    for _ in range(4):
        scene.answer()
        scene.sleep(300)
    assert codes(deliveries + new) == [None] * 4


def test_a_refused_batch_moves_the_sequences_of_those_after_it_to_a_new_epoch() -> None:
    scene = pipelined()
    first, second = scene.batch_of(b"a") + scene.batch_of(b"b")
    scene.answer(ErrorCode.MESSAGE_TOO_LARGE)
    scene.answer(OUT_OF_ORDER)
    scene.sleep(300)
    (again,) = scene.produced
    assert (again.header.producer_epoch, again.sequence, again.values) == (1, 0, [b"b"])
    scene.answer()
    assert codes([first, second]) == ["MESSAGE_TOO_LARGE", None]


def test_a_gap_in_the_log_begins_a_new_epoch() -> None:
    scene = pipelined()
    (delivery,) = scene.batch_of(b"a")
    scene.answer(OUT_OF_ORDER)
    scene.sleep(300)
    (again,) = scene.produced
    assert (again.header.producer_epoch, again.sequence) == (1, 0)
    scene.answer()
    assert codes([delivery]) == [None]


def test_an_epoch_that_is_used_up_is_followed_by_a_new_producer_id() -> None:
    scene = pipelined()
    assert scene.core.producer is not None
    scene.core.producer.identity = ProducerIdentity(PRODUCER_ID, 32_767)
    (delivery,) = scene.batch_of(b"a")
    scene.epoch = 40
    scene.answer(OUT_OF_ORDER)
    scene.sleep(300)
    (again,) = scene.produced
    assert (again.header.producer_epoch, again.sequence) == (41, 0)
    scene.answer()
    assert codes([delivery]) == [None]


def test_a_duplicate_that_the_broker_no_longer_remembers_is_a_success_without_an_offset() -> None:
    scene = pipelined()
    (delivery,) = scene.batch_of(b"a")
    scene.answer(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert delivery.result(0).offset == -1


def test_a_producer_that_retention_has_removed_begins_a_new_epoch() -> None:
    scene = pipelined()
    (delivery,) = scene.batch_of(b"a")
    scene.answer(ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset=10)
    scene.sleep(300)
    (again,) = scene.produced
    assert (again.header.producer_epoch, again.sequence) == (1, 0)
    scene.answer()
    assert codes([delivery]) == [None]


def test_an_unknown_producer_without_a_log_start_is_asked_again() -> None:
    scene = pipelined()
    scene.batch_of(b"a")
    scene.answer(ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset=-1)
    scene.sleep(300)
    (again,) = scene.produced
    assert (again.header.producer_epoch, again.sequence) == (0, 1)


def test_sequences_count_the_records_of_each_partition() -> None:
    scene = Scene(partitions=2, linger_ms=5)
    for partition in (0, 0, 1):
        scene.send(partition=partition)
    scene.sleep(5)
    scene.answer_all()
    for partition in (0, 1):
        scene.send(partition=partition)
    scene.sleep(5)
    assert {one.partition: one.sequence for one in scene.produced} == {0: 2, 1: 1}


def test_sequences_wrap_around_to_zero() -> None:
    scene = pipelined()
    assert scene.core.producer is not None
    lane = next(iter(scene.core.producer.lanes.values()))
    lane.next_position = lane.acked_end = 2**31 - 1
    scene.batch_of(b"a")
    scene.batch_of(b"b")
    assert scene.sequences == [2**31 - 1, 0]


# --- expiry ---


def test_a_batch_that_was_never_sent_leaves_no_doubt_about_sequences() -> None:
    scene = Scene(delivery_timeout_ms=1000, request_timeout_ms=60_000, batch_bytes=1)
    scene.batch_of(b"first")
    scene.answer()
    scene.script.down.add(scene.script.endpoint(1))
    scene.script.break_node(scene.script.endpoint(1))
    (lost,) = scene.batch_of(b"lost")
    scene.sleep(1000)
    assert codes([lost]) == ["TIMED_OUT"]
    scene.script.down.clear()
    scene.sleep(3000)
    scene.batch_of(b"next")
    (sent,) = scene.produced
    assert (sent.header.producer_epoch, sent.sequence) == (0, 1)


def test_after_an_expired_batch_that_was_sent_a_later_success_shows_that_it_was_written() -> None:
    scene = pipelined(delivery_timeout_ms=1000, request_timeout_ms=900)
    (lost,) = scene.batch_of(b"lost")
    scene.sleep(500)
    (kept,) = scene.batch_of(b"kept")
    scene.sleep(200)
    scene.disconnect()
    scene.script.down.add(scene.script.endpoint(1))
    scene.sleep(300)
    assert codes([lost]) == ["UNREACHABLE"]
    scene.script.down.clear()
    while not scene.produced:
        scene.sleep(20)
    assert (scene.sequences, scene.values) == ([2], [[b"kept"]])
    scene.answer()
    assert codes([kept]) == [None]
    scene.batch_of(b"next")
    assert [(one.header.producer_epoch, one.sequence) for one in scene.produced] == [(0, 3)]


def test_nothing_new_is_sent_while_the_fate_of_an_expired_batch_is_open() -> None:
    scene = pipelined(delivery_timeout_ms=1000, request_timeout_ms=60_000)
    (lost,) = scene.batch_of(b"lost")
    scene.sleep(500)
    scene.batch_of(b"kept")
    scene.sleep(500)
    assert codes([lost]) == ["TIMED_OUT"]
    scene.batch_of(b"new")
    assert scene.values == [[b"lost"], [b"kept"]]
    scene.answer()
    assert scene.values == [[b"kept"]]
    scene.answer()
    assert (scene.sequences, scene.values) == ([3], [[b"new"]])


def test_after_an_expired_batch_a_gap_begins_a_new_epoch() -> None:
    scene = pipelined(delivery_timeout_ms=1000, request_timeout_ms=900)
    (lost,) = scene.batch_of(b"lost")
    scene.sleep(100)
    scene.answer(RETRIABLE)
    scene.script.down.add(scene.script.endpoint(1))
    scene.script.break_node(scene.script.endpoint(1))
    scene.sleep(1000)
    assert codes([lost]) == ["NOT_ENOUGH_REPLICAS"] or codes([lost]) == ["TIMED_OUT"]
    (new,) = scene.batch_of(b"new")
    scene.script.down.clear()
    while not scene.produced:
        scene.sleep(20)
    (sent,) = scene.produced
    assert (sent.header.producer_epoch, sent.sequence) == (1, 0)
    scene.answer()
    assert codes([new]) == [None]


def test_a_late_answer_to_an_expired_batch_changes_nothing() -> None:
    scene = Scene(delivery_timeout_ms=500, request_timeout_ms=60_000)
    (delivery,) = scene.batch_of(b"a")
    scene.sleep(500)
    assert codes([delivery]) == ["TIMED_OUT"]
    assert "it may have been written nevertheless" in str(delivery.error())
    scene.answer(offset=5)
    assert codes([delivery]) == ["TIMED_OUT"]
    assert scene.core.buffer.free_bytes == scene.core.buffer.total_bytes


def test_an_expired_batch_is_neither_retried_nor_split() -> None:
    for code in (RETRIABLE, ErrorCode.MESSAGE_TOO_LARGE):
        scene = Scene(delivery_timeout_ms=500, request_timeout_ms=60_000, linger_ms=1)
        deliveries = [scene.send(b"a"), scene.send(b"b")]
        scene.sleep(600)
        scene.answer(code)
        scene.sleep(500)
        assert scene.produced == []
        assert codes(deliveries) == ["TIMED_OUT"] * 2


def test_the_halves_of_a_batch_expire_with_it_and_not_with_a_later_one() -> None:
    scene = Scene(delivery_timeout_ms=1000, request_timeout_ms=60_000, partitions=2)
    halves = scene.batch_of(b"a", b"b")
    scene.sleep(500)
    (later,) = scene.batch_of(b"later", partition=1)
    scene.answer(ErrorCode.MESSAGE_TOO_LARGE)
    scene.sleep(499)
    assert not any(one.done() for one in [*halves, later])
    scene.sleep(1)
    assert codes(halves) == ["TIMED_OUT"] * 2
    assert not later.done()


def test_a_retry_behind_a_later_batch_in_flight_expires_on_time() -> None:
    scene = pipelined(delivery_timeout_ms=1000, request_timeout_ms=60_000)
    (first,) = scene.batch_of(b"first")
    scene.sleep(500)
    (later,) = scene.batch_of(b"later")
    scene.answer(RETRIABLE)
    scene.sleep(100)
    assert scene.values == [[b"later"], [b"first"]]
    scene.sleep(400)
    assert codes([first]) == ["TIMED_OUT"]
    assert not later.done()


# --- everything at once ---


@dataclass
class ModelBroker:
    """A log that checks sequences as Kafka does, and remembers the last five batches of the producer."""

    log: list[bytes] = field(default_factory=list)
    recent: list[tuple[int, int, int]] = field(default_factory=list)
    epoch: int = -1

    def append(self, scene: Scene, request: Request) -> tuple[int, int]:
        (sent,) = [one for one in scene.produced if one.request is request]
        header = sent.header
        if header.producer_epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if header.producer_epoch > self.epoch:
            if header.base_sequence and self.epoch >= 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self.epoch, self.recent = header.producer_epoch, []
        for sequence, count, offset in self.recent[-5:]:
            if (sequence, count) == (header.base_sequence, header.record_count):
                return 0, offset
        # An unknown producer may start at any sequence.
        expected = sum(self.recent[-1][:2]) if self.recent else header.base_sequence
        if header.base_sequence < expected:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1
        if header.base_sequence > expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        self.recent.append((header.base_sequence, header.record_count, len(self.log)))
        self.log += [record.value or b"" for record in sent.records]
        return 0, self.recent[-1][2]


@given(st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None)
def test_whatever_is_lost_each_record_is_written_once_and_in_order(seed: int) -> None:
    draw = random.Random(seed)
    scene = Scene(batch_bytes=120, linger_ms=3, delivery_timeout_ms=10**7, seed=seed)
    broker = ModelBroker()
    deliveries = []
    for number in range(40):
        deliveries.append(scene.send(b"%d" % number))
        if draw.random() < 0.7:
            scene.sleep(draw.randrange(10))
        _disturb(scene, broker, draw)
    for _ in range(400):
        scene.sleep(50)
        for request in list(scene.script.requests(ProduceRequest)):
            if request in scene.script.pending:
                _respond(scene, request, *broker.append(scene, request))
        if all(one.done() for one in deliveries):
            break
    assert [one.result(0).offset for one in deliveries if one.result(0).offset >= 0]
    assert broker.log == [b"%d" % number for number in range(40)]


def _disturb(scene: Scene, broker: ModelBroker, draw: random.Random) -> None:
    requests = scene.script.requests(ProduceRequest)
    if not requests:
        return
    # A connection answers in order; different ones do not.
    request, fate = requests[0], draw.random()
    if fate < 0.5:
        _respond(scene, request, *broker.append(scene, request))
    elif fate < 0.65:
        _respond(scene, request, draw.choice([NOT_LEADER, RETRIABLE]), -1)
    elif fate < 0.8:
        broker.append(scene, request)
        scene.disconnect()
    elif fate < 0.9:
        scene.disconnect()


def _respond(scene: Scene, request: Request, code: int, offset: int) -> None:
    scene.answer(code, offset, at=scene.script.requests(ProduceRequest).index(request))


def test_the_metadata_is_asked_again_after_an_error_of_leadership() -> None:
    scene = Scene()
    scene.batch_of(b"a")
    before = len(scene.script.sent(MetadataRequest))
    scene.answer(NOT_LEADER)
    scene.sleep(200)
    assert len(scene.script.sent(MetadataRequest)) > before


# --- topic ids (KIP-516) ---


def ids_asked(scene: Scene) -> list[bytes]:
    return [topic.topic_id for request in scene.script.requests(ProduceRequest) for topic in request.message.topic_data]


def test_topics_are_named_by_id_and_answers_find_their_batches() -> None:
    scene = Scene(partitions=2)
    deliveries = [scene.send(partition=partition) for partition in (0, 1)]
    scene.turn()
    (request,) = scene.script.requests(ProduceRequest)
    assert (request.version, [topic.name for topic in request.message.topic_data]) == (13, [""])
    assert ids_asked(scene) == [scene.script.topic_ids["orders"]]
    scene.answer(offset=4)
    assert [one.result(0)[:3] for one in deliveries] == [("orders", 0, 4), ("orders", 1, 4)]


def test_topics_are_named_by_name_while_one_has_no_id() -> None:
    scene = Scene()
    scene.script.partitions["old"] = 1
    scene.script.topic_ids["old"] = bytes(16)
    deliveries = [scene.send(topic=topic) for topic in ("orders", "old")]
    scene.sleep(20)
    requests = scene.script.requests(ProduceRequest)
    assert (requests[-1].version, [topic.name for topic in requests[-1].message.topic_data][-1]) == (12, "old")
    for _ in requests:
        scene.answer(offset=4)
    assert [one.result(0).topic for one in deliveries] == ["orders", "old"]


def test_a_broker_without_ids_gets_names() -> None:
    offered = {key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()} | {0: (3, 12)}
    scene = Scene(offered=offered)
    (delivery,) = scene.batch_of(b"a")
    (request,) = scene.script.requests(ProduceRequest)
    assert [topic.name for topic in request.message.topic_data] == ["orders"]
    scene.answer(offset=4)
    assert delivery.result(0).offset == 4


def test_records_follow_a_topic_that_was_deleted_and_created_again() -> None:
    scene = pipelined()
    deliveries = scene.batch_of(b"a")
    old, new = scene.script.topic_ids["orders"], b"another topic id"
    assert ids_asked(scene) == [old]
    scene.script.topic_ids["orders"] = new
    scene.answer(ErrorCode.UNKNOWN_TOPIC_ID)
    scene.sleep(200)
    deliveries += scene.batch_of(b"b")
    # The new log has no sequence of this producer: it would take a batch that overtakes another one.
    assert (ids_asked(scene), scene.values) == ([new], [[b"a"]])
    scene.answer_all()
    assert codes(deliveries) == [None, None]


def test_an_answer_about_the_old_id_counts_after_the_metadata_has_the_new_one() -> None:
    scene = Scene(partitions=2, nodes=2)
    scene.batch_of(b"first", partition=1)
    scene.answer()
    (delivery,) = scene.batch_of(b"a")
    scene.script.topic_ids["orders"] = b"another topic id"
    scene.core.metadata.request_update()
    scene.sleep(200)  # the node without a request in flight answers
    assert scene.core.metadata.topic_id("orders") == b"another topic id"
    scene.answer(offset=4)
    assert delivery.result(0).offset == 4


# --- several partitions, and the end ---


def test_other_partitions_finish_in_their_epoch_while_one_begins_another() -> None:
    scene = Scene(partitions=2, batch_bytes=1, delivery_timeout_ms=60_000)
    for partition in (0, 1):
        scene.batch_of(b"first", partition=partition)
        scene.answer()
    healthy, broken = scene.batch_of(b"h", partition=1) + scene.batch_of(b"b", partition=0)
    scene.answer(RETRIABLE)
    scene.answer(OUT_OF_ORDER)
    (new,) = scene.batch_of(b"n", partition=1)
    seen = {}
    for _ in range(4):
        scene.sleep(300)
        for one in scene.produced:
            seen[one.values[0]] = (one.header.producer_epoch, one.sequence)
            scene.answer()
    assert seen == {b"h": (0, 1), b"b": (1, 0), b"n": (1, 0)}
    assert codes([healthy, broken, new]) == [None, None, None]


def test_batches_in_several_partitions_expire() -> None:
    scene = Scene(partitions=2, delivery_timeout_ms=500, request_timeout_ms=60_000)
    sent = scene.batch_of(b"a", partition=0) + scene.batch_of(b"b", partition=1)
    scene.sleep(500)
    assert codes(sent) == ["TIMED_OUT"] * 2
    assert not scene.core.accumulator.incomplete


def test_a_callback_of_an_expired_record_may_send_another() -> None:
    scene = Scene(delivery_timeout_ms=500, request_timeout_ms=60_000, linger_ms=1)
    again: list[Delivery] = []
    for _ in range(3):
        scene.send().add_done_callback(lambda _: again.append(scene.send(b"again")))
    scene.sleep(600)
    assert len(again) == 3
    scene.disconnect()
    scene.sleep(300)
    assert [b"again"] * 3 in scene.values


def test_when_order_counts_the_next_batch_waits_for_the_one_that_expires() -> None:
    scene = Scene(
        idempotent=False, keeps_order=True, batch_bytes=1, delivery_timeout_ms=1000, request_timeout_ms=60_000
    )
    (first,) = scene.batch_of(b"a")
    scene.sleep(500)
    scene.batch_of(b"b")
    assert scene.values == [[b"a"]]
    scene.sleep(500)
    assert codes([first]) == ["TIMED_OUT"]
    assert scene.values[-1] == [b"b"]


def test_the_longest_delivery_timeout_never_expires() -> None:
    scene = Scene(delivery_timeout_ms=2**31 - 1)
    scene.script.down.add(scene.script.endpoint(1))
    scene.script.break_node(scene.script.endpoint(1))
    scene.batch_of(b"a")
    scene.sleep(100_000)
    assert scene.core.accumulator.incomplete


@pytest.mark.parametrize(
    ("code", "is_fatal"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, True),
        (ErrorCode.UNSUPPORTED_VERSION, True),
        (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, False),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
    ],
)
def test_an_error_of_the_producer_ends_it_and_cancels_what_is_in_flight(code: ErrorCode, is_fatal: bool) -> None:
    scene = pipelined()
    sent = scene.batch_of(b"a") + scene.batch_of(b"b")
    scene.answer(code)
    assert code_name(sent[0].error()) == code.name
    assert sent[1].done() is is_fatal
    scene.answer(OUT_OF_ORDER)
    (later,) = scene.batch_of(b"c")
    scene.sleep(300)
    assert later.done() is is_fatal
    if is_fatal:
        assert codes([*sent, later]) == [code.name] * 3
        assert scene.core.buffer.free_bytes == scene.core.buffer.total_bytes


def test_a_close_sends_what_is_left_even_while_the_producer_id_is_asked_for() -> None:
    scene = Scene(answers_initialization=False, linger_ms=60_000)
    delivery = scene.send(b"a")
    scene.core.close()
    scene.turn()
    (request,) = scene.script.requests(InitProducerIdRequest)
    assert scene.core.has_work
    scene.script.answer(request, InitProducerIdResponse(producer_id=9, producer_epoch=0))
    scene.turn()
    scene.answer()
    assert codes([delivery]) == [None]
    assert not scene.core.has_work


def test_a_node_that_leads_nothing_gets_nothing() -> None:
    scene = Scene(linger_ms=1000)
    scene.send()
    assert scene.core.accumulator.drain([99], scene.script.now_ms) == {}
