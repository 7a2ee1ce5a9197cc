"""Transactions in both protocols: order of requests, and which errors mean abort and which the end; after TransactionManagerTest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from broker.protocol.wire_types import Message
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.net.errors import KgctlError
from kgctl.client.producer.core.batch import Delivery
from kgctl.client.producer.core.errors import (
    ProducerFenced,
    TransactionAbortable,
    TransactionAborted,
    TransactionFailed,
    WrongState,
)
from kgctl.client.producer.core.states import State
from kgctl.client.producer.record_path import Blocked, RecordPath
from kgctl.model.topic_partition import TopicPartition
from tests.harness.client_script import Request
from tests.harness.producing import PRODUCER_ID, Scene, added_partitions, code_name, committed_offsets

GROUP = ConsumerGroupMetadata("group", 5, "member", "instance")
OFFSETS = {TopicPartition("input", 0): OffsetAndMetadata(11, 3, "m")}
both_protocols = pytest.mark.parametrize("version_2", [False, True], ids=["explicit", "implicit"])


def ready(**options: Any) -> Scene:
    """A producer that has its id."""
    scene = Scene(transactional=True, delivery_timeout_ms=options.pop("delivery_timeout_ms", 60_000), **options)
    scene.initialize()
    assert scene.transactions.state is State.READY
    return scene


def in_transaction(**options: Any) -> Scene:
    scene = ready(**options)
    scene.begin()
    scene.ends()
    return scene


def kinds(scene: Scene) -> list[str]:
    """The requests of the producer so far, without those of the network and of the initialization."""
    skipped = ("ApiVersions", "Metadata", "FindCoordinator")
    names = [type(request.message).__name__.removesuffix("Request") for request in scene.script.received]
    return [name for name in names if name not in skipped]


def refuse(scene: Scene, kind: type[Message], make: Callable[[Request], Message | None], times: int = 1) -> None:
    """Answer the next requests of a kind in this way, and the later ones as before."""
    before = scene.script.answers.get(kind)
    left = [times]

    def answer(request: Request) -> Message | None:
        if left[0]:
            left[0] -= 1
            return make(request)
        return before(request) if before is not None else None

    scene.script.answers[kind] = answer


def failure(scene: Scene) -> str:
    """What a commit says."""
    with pytest.raises(TransactionFailed) as raised:
        scene.transactions.begin_commit()
    assert raised.value.is_fatal is (scene.transactions.state is State.FATAL)
    return raised.value.name


# --- a transaction ---


@both_protocols
def test_a_committed_transaction_takes_these_requests(version_2: bool) -> None:
    scene = in_transaction(version_2=version_2)
    (delivery,) = scene.batch_of(b"a")
    outcome = scene.transactions.begin_commit()
    scene.turn()
    assert not outcome.is_done
    scene.answer(offset=4)
    assert scene.settle(outcome) is None
    assert delivery.result(0).offset == 4
    steps = (
        ["InitProducerId", "Produce", "EndTxn"]
        if version_2
        else ["InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn"]
    )
    assert kinds(scene) == steps
    (produce,) = [request for request in scene.script.received if isinstance(request.message, ProduceRequest)]
    assert (produce.version, produce.message.transactional_id) == (13 if version_2 else 11, "tx")
    (end,) = scene.script.sent(EndTxnRequest)
    assert (end.committed, end.producer_id) == (True, PRODUCER_ID)
    assert scene.transactions.state is State.READY


@both_protocols
def test_each_transaction_of_the_newer_protocol_has_an_epoch_of_its_own(version_2: bool) -> None:
    scene = in_transaction(version_2=version_2)
    seen = []
    for number in range(2):
        if number:
            scene.begin()
        scene.batch_of(b"a")
        (sent,) = scene.produced
        assert sent.header.is_transactional
        seen.append((sent.header.producer_epoch, sent.sequence))
        scene.answer()
        assert scene.settle(scene.transactions.begin_commit()) is None
    assert seen == ([(0, 0), (1, 0)] if version_2 else [(0, 0), (0, 1)])


@both_protocols
def test_nothing_is_ended_that_the_coordinator_does_not_have(version_2: bool) -> None:
    scene = in_transaction(version_2=version_2)
    assert scene.settle(scene.transactions.begin_commit()) is None
    scene.begin()
    assert scene.settle(scene.transactions.begin_abort()) is None
    assert scene.script.sent(EndTxnRequest) == []


@both_protocols
def test_offsets_are_part_of_the_transaction(version_2: bool) -> None:
    scene = in_transaction(version_2=version_2)
    scene.takes_offsets()
    assert scene.settle(scene.transactions.send_offsets(OFFSETS, GROUP)) is None
    (request,) = scene.script.sent(TxnOffsetCommitRequest)
    assert (request.group_id, request.generation_id, request.member_id, request.group_instance_id) == (
        "group",
        5,
        "member",
        "instance",
    )
    row = request.topics[0].partitions[0]
    assert (row.committed_offset, row.committed_leader_epoch, row.committed_metadata) == (11, 3, "m")
    assert len(scene.script.sent(AddOffsetsToTxnRequest)) == (0 if version_2 else 1)
    assert scene.settle(scene.transactions.begin_commit()) is None
    assert len(scene.script.sent(EndTxnRequest)) == 1


@both_protocols
def test_an_abort_drops_what_was_not_sent_and_awaits_what_was(version_2: bool) -> None:
    scene = in_transaction(version_2=version_2, batch_bytes=1)
    (sent,) = scene.batch_of(b"sent")
    unsent = scene.send(b"unsent")
    outcome = scene.transactions.begin_abort()
    scene.turn()
    assert isinstance(unsent.exception(0), TransactionAborted)
    assert not outcome.is_done
    scene.answer(offset=1)
    assert sent.result(0).offset == 1
    assert scene.settle(outcome) is None
    (end,) = scene.script.sent(EndTxnRequest)
    assert not end.committed


def test_a_partition_is_added_once_and_before_its_records_leave() -> None:
    scene = in_transaction(partitions=2, batch_bytes=1)
    scene.script.answers[AddPartitionsToTxnRequest] = None
    scene.batch_of(b"a", partition=0)
    assert scene.produced == []
    (request,) = scene.script.requests(AddPartitionsToTxnRequest)
    scene.send(b"b", partition=1)
    scene.turn()
    scene.script.answer(request, added_partitions(request.message))
    scene.turn()
    assert len(scene.script.requests(AddPartitionsToTxnRequest)) == 1
    scene.adds()
    scene.turn()
    scene.answer_all()
    scene.batch_of(b"c", partition=0)
    added = [
        row.partitions
        for request in scene.script.sent(AddPartitionsToTxnRequest)
        for row in request.v3_and_below_topics
    ]
    assert added == [[0], [1]]


def test_a_lingering_batch_leaves_at_once_when_the_transaction_ends() -> None:
    scene = in_transaction(linger_ms=50_000)
    scene.batch_of(b"a")
    assert scene.produced == []
    scene.transactions.begin_commit()
    scene.turn()
    assert scene.values == [[b"a"]]


# --- calls that do not fit ---


def test_calls_out_of_order_are_refused_and_change_nothing() -> None:
    scene = Scene(transactional=True)
    calls: list[Callable[[], object]] = [
        lambda: scene.transactions.begin(0),
        lambda: scene.transactions.begin_commit(),
        lambda: scene.transactions.begin_abort(),
        lambda: scene.send(),
        lambda: scene.transactions.send_offsets(OFFSETS, GROUP),
    ]
    for call in calls:
        with pytest.raises(WrongState):
            call()
    scene.initialize()
    with pytest.raises(WrongState):
        scene.initialize()
    for call in calls[1:]:
        with pytest.raises(WrongState):
            call()
    scene.begin()
    with pytest.raises(WrongState):
        scene.transactions.begin(0)


def test_a_call_out_of_order_names_the_call_to_make() -> None:
    scene = Scene(transactional=True)
    producer = "the producer with transactional id 'tx' is"
    for what, call in (
        ("cannot call begin_transaction", lambda: scene.transactions.begin(0)),
        ("cannot call commit_transaction", lambda: scene.transactions.begin_commit()),
        ("cannot send to orders-0", lambda: scene.send()),
        ("cannot call send_offsets_to_transaction", lambda: scene.transactions.send_offsets(OFFSETS, GROUP)),
    ):
        with pytest.raises(WrongState) as raised:
            call()
        assert str(raised.value) == f"{what}: {producer} without a producer id; call init_transactions first"
    scene.initialize()
    with pytest.raises(WrongState, match=f"cannot call abort_transaction: {producer} ready; call begin_transaction"):
        scene.transactions.begin_abort()
    scene.begin()
    with pytest.raises(WrongState, match="in a transaction; call commit_transaction or abort_transaction first"):
        scene.transactions.begin(0)


@pytest.mark.parametrize("commits", [True, False])
def test_after_a_timeout_only_the_same_call_may_follow(commits: bool) -> None:
    scene = in_transaction(version_2=True)
    scene.batch_of(b"a")
    scene.answer()
    scene.script.answers[EndTxnRequest] = None
    call, other = scene.transactions.begin_commit, scene.transactions.begin_abort
    if not commits:
        call, other = other, call
    outcome = call()
    scene.turn()
    assert outcome.was_sent
    assert not outcome.is_done
    for wrong in (other, lambda: scene.transactions.begin(0), lambda: scene.send()):
        with pytest.raises(WrongState, match="has timed out before"):
            wrong()
    assert call() is outcome
    (request,) = scene.script.requests(EndTxnRequest)
    scene.script.answer(request, EndTxnResponse(producer_id=PRODUCER_ID, producer_epoch=1))
    assert scene.settle(outcome) is None
    scene.begin()


# --- coordinators ---


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_up_again(code: ErrorCode) -> None:
    scene = in_transaction(nodes=2)
    scene.batch_of(b"a")
    scene.answer()
    scene.script.coordinator = 2
    refuse(scene, EndTxnRequest, lambda _: EndTxnResponse(error_code=code))
    outcome = scene.transactions.begin_commit()
    scene.sleep(500)
    assert scene.settle(outcome) is None
    ends = [request.endpoint.host for request in scene.script.received if isinstance(request.message, EndTxnRequest)]
    assert ends == ["host1", "host2"]


def test_a_lost_connection_to_the_coordinator_repeats_the_request() -> None:
    scene = in_transaction(nodes=2)
    scene.batch_of(b"a")
    scene.answer()
    scene.script.answers[EndTxnRequest] = None
    outcome = scene.transactions.begin_commit()
    scene.turn()
    scene.script.fail(scene.script.requests(EndTxnRequest)[0])
    scene.ends()
    scene.sleep(2000)
    assert scene.settle(outcome) is None


@pytest.mark.parametrize("code", [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_is_busy_is_asked_again(code: ErrorCode) -> None:
    scene = Scene(transactional=True)
    refuse(
        scene,
        InitProducerIdRequest,
        lambda _: InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1),
        times=3,
    )
    outcome = scene.transactions.initialize()
    scene.sleep(2000)
    assert scene.settle(outcome) is None


def test_the_first_partition_is_added_soon_after_the_transaction_before_has_ended() -> None:
    scene = in_transaction(retry_backoff_ms=5000)
    refuse(
        scene,
        AddPartitionsToTxnRequest,
        lambda request: added_partitions(request.message, ErrorCode.CONCURRENT_TRANSACTIONS),
        times=2,
    )
    scene.send()
    scene.sleep(45)
    assert len(scene.produced) == 1


@pytest.mark.parametrize(
    ("code", "others"), [(ErrorCode.CONCURRENT_TRANSACTIONS, 1), (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 0)]
)
def test_further_partitions_and_other_errors_wait_for_the_usual_backoff(code: ErrorCode, others: int) -> None:
    scene = in_transaction(partitions=2, retry_backoff_ms=1000)
    for number in range(others):
        scene.batch_of(b"a", partition=number)
        scene.answer()
    refuse(scene, AddPartitionsToTxnRequest, lambda request: added_partitions(request.message, code))
    scene.send(partition=1)
    scene.sleep(700)
    assert scene.produced == []
    scene.sleep(600)
    assert len(scene.produced) == 1


def test_a_commit_that_the_coordinator_wants_aborted_can_be_aborted() -> None:
    scene = in_transaction()
    scene.batch_of(b"a")
    scene.answer()
    refuse(scene, EndTxnRequest, lambda _: EndTxnResponse(error_code=ErrorCode.TRANSACTION_ABORTABLE))
    assert isinstance(scene.settle(scene.transactions.begin_commit()), TransactionAbortable)
    assert scene.settle(scene.transactions.begin_abort()) is None
    assert [end.committed for end in scene.script.sent(EndTxnRequest)] == [True, False]


def test_an_abort_that_the_coordinator_wants_aborted_is_the_end() -> None:
    scene = in_transaction()
    scene.batch_of(b"a")
    scene.answer()
    refuse(scene, EndTxnRequest, lambda _: EndTxnResponse(error_code=ErrorCode.TRANSACTION_ABORTABLE))
    error = scene.settle(scene.transactions.begin_abort())
    assert (code_name(error), scene.transactions.state) == ("TRANSACTION_ABORTABLE", State.FATAL)


def test_the_coordinator_may_give_another_producer_id_with_the_end_of_a_transaction() -> None:
    scene = in_transaction(version_2=True)
    scene.batch_of(b"a")
    scene.answer()
    refuse(scene, EndTxnRequest, lambda _: EndTxnResponse(producer_id=PRODUCER_ID + 1, producer_epoch=0))
    assert scene.settle(scene.transactions.begin_commit()) is None
    scene.begin()
    scene.batch_of(b"b")
    (sent,) = scene.produced
    assert (sent.header.producer_id, sent.header.producer_epoch, sent.sequence) == (PRODUCER_ID + 1, 0, 0)


def test_records_are_sent_again_while_the_transaction_before_ends() -> None:
    scene = in_transaction(version_2=True)
    (delivery,) = scene.batch_of(b"a")
    scene.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    scene.sleep(200)
    scene.answer(offset=4)
    assert delivery.result(0).offset == 4
    assert scene.settle(scene.transactions.begin_commit()) is None


def test_a_partition_is_added_when_the_coordinator_no_longer_throttles() -> None:
    scene = in_transaction(partitions=2, delivery_timeout_ms=60_000)

    def throttled(request: Request) -> Message:
        answer = added_partitions(request.message, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        answer.throttle_time_ms = 3000
        return answer

    refuse(scene, AddPartitionsToTxnRequest, throttled)
    scene.batch_of(b"a", partition=1)
    scene.sleep(2900)
    assert len(scene.script.sent(AddPartitionsToTxnRequest)) == 1
    scene.sleep(300)
    assert [one.partition for one in scene.produced] == [1]


def test_an_unknown_topic_is_added_again() -> None:
    scene = in_transaction()
    refuse(
        scene,
        AddPartitionsToTxnRequest,
        lambda request: added_partitions(request.message, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        times=2,
    )
    scene.send()
    scene.sleep(500)
    assert len(scene.produced) == 1


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
@both_protocols
def test_offsets_are_sent_again_after_a_passing_error(code: ErrorCode, version_2: bool) -> None:
    scene = in_transaction(version_2=version_2)
    scene.takes_offsets()
    refuse(scene, TxnOffsetCommitRequest, lambda request: committed_offsets(request.message, code), times=2)
    outcome = scene.transactions.send_offsets(OFFSETS, GROUP)
    scene.sleep(1000)
    assert scene.settle(outcome) is None
    assert len(scene.script.sent(TxnOffsetCommitRequest)) == 3


# --- errors: abort, or the end ---


def refused_lookup(code: int) -> Callable[[Request], Message]:
    return lambda request: FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code)
            for key in request.message.coordinator_keys
        ]
    )


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (ErrorCode.PRODUCER_FENCED, "PRODUCER_FENCED"),
        (ErrorCode.INVALID_PRODUCER_EPOCH, "PRODUCER_FENCED"),
        (ErrorCode.INVALID_TXN_STATE, "INVALID_TXN_STATE"),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    ],
)
@pytest.mark.parametrize("at", ["add partitions", "add offsets", "commit offsets", "end"])
def test_an_error_of_the_coordinator_is_the_end(code: ErrorCode, name: str, at: str) -> None:
    scene = in_transaction()
    scene.takes_offsets()
    outcome = None
    if at == "add partitions":
        scene.adds(code)
        scene.batch_of(b"a")
    elif at == "end":
        scene.batch_of(b"a")
        scene.answer()
        scene.script.answers[EndTxnRequest] = lambda _: EndTxnResponse(error_code=code)
        outcome = scene.transactions.begin_commit()
    else:
        scene.takes_offsets(*((0, code) if at == "add offsets" else (code,)))
        outcome = scene.transactions.send_offsets(OFFSETS, GROUP)
    scene.turn()
    if outcome is not None:
        assert code_name(scene.settle(outcome)) == name
    assert scene.transactions.state is State.FATAL
    assert isinstance(scene.transactions.failure, ProducerFenced) is (name != "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    if outcome is None or at != "end":
        assert failure(scene) == name
    for call in (scene.transactions.begin_abort, lambda: scene.transactions.begin(0), scene.send):
        with pytest.raises(TransactionFailed):
            call()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    ],
)
@both_protocols
def test_offsets_that_are_refused_must_be_aborted(code: ErrorCode, version_2: bool) -> None:
    scene = in_transaction(version_2=version_2)
    scene.takes_offsets(code)
    assert isinstance(scene.settle(scene.transactions.send_offsets(OFFSETS, GROUP)), TransactionAbortable)
    assert failure(scene) == code.name
    assert scene.settle(scene.transactions.begin_abort()) is None
    scene.begin()


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TRANSACTION_ABORTABLE])
def test_a_partition_that_cannot_be_added_must_be_aborted(code: ErrorCode) -> None:
    scene = in_transaction()
    scene.adds(code)
    (delivery,) = scene.batch_of(b"a")
    assert code_name(delivery.exception(0)) == code.name
    assert failure(scene) == code.name
    assert scene.settle(scene.transactions.begin_abort()) is None
    assert scene.script.sent(EndTxnRequest) == []
    scene.begin()
    scene.batch_of(b"b")
    scene.answer()
    assert scene.settle(scene.transactions.begin_commit()) is None


def test_the_partition_that_was_refused_explains_those_that_were_not_attempted() -> None:
    scene = in_transaction(partitions=2)
    codes = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    scene.script.answers[AddPartitionsToTxnRequest] = lambda request: added_partitions(request.message, codes=codes)
    scene.send(partition=0)
    scene.send(partition=1)
    scene.turn()
    assert failure(scene) == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize(
    ("code", "is_fatal"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, False),
        (ErrorCode.INVALID_TXN_STATE, False),
        (ErrorCode.TRANSACTION_ABORTABLE, False),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, False),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
        (ErrorCode.PRODUCER_FENCED, True),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, True),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, True),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, True),
        (ErrorCode.UNSUPPORTED_VERSION, True),
    ],
)
@both_protocols
def test_the_error_of_a_batch_means_abort_or_the_end(code: ErrorCode, is_fatal: bool, version_2: bool) -> None:
    scene = in_transaction(version_2=version_2)
    scene.batch_of(b"a")
    scene.answer()
    (delivery,) = scene.batch_of(b"b")
    scene.answer(code)
    assert code_name(delivery.exception(0)) == code.name
    assert failure(scene) == code.name
    assert (scene.transactions.state is State.FATAL) is is_fatal
    if not is_fatal:
        assert scene.settle(scene.transactions.begin_abort()) is None
        scene.begin()
        scene.batch_of(b"c")
        (sent,) = scene.produced
        assert (sent.header.producer_epoch, sent.sequence) == (1, 0)


def test_a_commit_fails_if_a_record_fails_while_it_waits() -> None:
    scene = in_transaction()
    scene.batch_of(b"a")
    outcome = scene.transactions.begin_commit()
    scene.turn()
    scene.answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert isinstance(scene.settle(outcome), TransactionAbortable)
    assert scene.script.sent(EndTxnRequest) == []
    assert scene.settle(scene.transactions.begin_abort()) is None


def test_a_record_that_waits_for_room_while_its_transaction_fails_keeps_no_memory() -> None:
    scene = in_transaction(batch_bytes=1000, buffer_bytes=1000)
    scene.batch_of(b"a")
    path = RecordPath(scene.core, lambda: scene.script.now_ms, lambda: None, Delivery)
    record = ("orders", 0, 0, None, b"b", (), None, None)
    blocked = path.attempt(*record, None)
    assert isinstance(blocked, Blocked)
    scene.answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert blocked.condition()
    with pytest.raises(TransactionAbortable):
        path.attempt_again(*record, blocked)
    assert scene.core.buffer.free_bytes == 1000


def test_a_record_that_expires_must_be_aborted_and_begins_a_new_epoch() -> None:
    scene = in_transaction(delivery_timeout_ms=1000, request_timeout_ms=60_000)
    (delivery,) = scene.batch_of(b"a")
    scene.sleep(1000)
    assert code_name(delivery.exception(0)) == "TIMED_OUT"
    assert failure(scene) == "TIMED_OUT"
    scene.disconnect()
    outcome = scene.transactions.begin_abort()
    scene.sleep(2000)
    assert scene.settle(outcome) is None
    scene.begin()
    scene.batch_of(b"b")
    (sent,) = scene.produced
    assert (sent.header.producer_epoch, sent.sequence) == (1, 0)


def test_without_epochs_of_its_own_a_lost_record_is_the_end() -> None:
    from broker.protocol.api_keys import APIS

    offered = {key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()}
    scene = in_transaction(delivery_timeout_ms=1000, request_timeout_ms=900, offered={**offered, 22: (0, 2)})
    scene.batch_of(b"a")
    scene.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    scene.sleep(100)
    scene.sleep(1000)
    assert scene.transactions.state is State.FATAL


@pytest.mark.parametrize(
    "code", [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
)
def test_a_refused_initialization_may_be_repeated(code: ErrorCode) -> None:
    scene = Scene(transactional=True)
    refuse(
        scene,
        InitProducerIdRequest,
        lambda _: InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1),
    )
    assert code_name(scene.settle(scene.transactions.initialize())) == code.name
    scene.initialize()
    assert scene.transactions.state is State.READY


def test_a_fenced_initialization_is_the_end() -> None:
    scene = Scene(transactional=True)
    code = ErrorCode.INVALID_PRODUCER_EPOCH
    refuse(
        scene,
        InitProducerIdRequest,
        lambda _: InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1),
    )
    assert isinstance(scene.settle(scene.transactions.initialize()), ProducerFenced)


def test_a_coordinator_that_may_not_be_looked_up_is_the_end() -> None:
    scene = Scene(transactional=True)
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    scene.script.answers[FindCoordinatorRequest] = refused_lookup(code)
    assert code_name(scene.settle(scene.transactions.initialize())) == code.name
    assert scene.transactions.state is State.FATAL


def test_a_group_that_may_not_be_looked_up_must_be_aborted() -> None:
    scene = in_transaction(version_2=True)
    scene.script.answers[FindCoordinatorRequest] = refused_lookup(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    outcome = scene.transactions.send_offsets(OFFSETS, GROUP)
    assert isinstance(scene.settle(outcome), TransactionAbortable)
    assert scene.settle(scene.transactions.begin_abort()) is None


def test_a_transaction_that_outlives_its_timeout_is_explained() -> None:
    scene = in_transaction(transaction_timeout_ms=2000)
    scene.sleep(3000)
    scene.batch_of(b"a")
    scene.answer(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert "which was open longer than its timeout of 2 s" in str(scene.transactions.failure)


def test_a_close_aborts_the_open_transaction() -> None:
    scene = in_transaction()
    scene.batch_of(b"a")
    scene.answer()
    scene.core.close()
    scene.turn()
    (end,) = scene.script.sent(EndTxnRequest)
    assert not end.committed
    assert not scene.core.has_work


def test_a_forced_close_fails_the_calls_that_wait() -> None:
    scene = Scene(transactional=True, answers_initialization=False)
    outcome = scene.transactions.initialize()
    scene.turn()
    scene.core.abort(KgctlError("closed"))
    assert code_name(outcome.error) == "PRODUCER_CLOSED"


# --- sequences and epochs ---


def test_a_retry_in_an_added_partition_goes_on_after_an_error_that_must_be_aborted() -> None:
    scene = in_transaction(partitions=2)
    scene.batch_of(b"a", partition=0)
    scene.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    scene.adds(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    scene.batch_of(b"b", partition=1)
    assert scene.transactions.state is State.MUST_ABORT
    scene.sleep(300)
    assert scene.values == [[b"a"]]
    outcome = scene.transactions.begin_abort()
    scene.turn()
    assert not outcome.is_done
    scene.answer()
    assert scene.settle(outcome) is None


def test_partitions_that_are_being_added_when_the_error_comes_get_no_records() -> None:
    scene = in_transaction(partitions=2)
    scene.script.answers[AddPartitionsToTxnRequest] = None
    (delivery,) = scene.batch_of(b"a")
    (request,) = scene.script.requests(AddPartitionsToTxnRequest)
    scene.transactions.fail_abortably(KgctlError("bad"))
    scene.script.answer(request, added_partitions(request.message))
    scene.turn()
    assert scene.produced == []
    assert delivery.exception(0) is not None
    assert scene.settle(scene.transactions.begin_abort()) is None
    (end,) = scene.script.sent(EndTxnRequest)
    assert not end.committed


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING])
@pytest.mark.parametrize("at", ["add partitions", "add offsets"])
def test_a_producer_that_the_coordinator_has_forgotten_aborts_and_gets_a_new_epoch(code: ErrorCode, at: str) -> None:
    scene = in_transaction()
    if at == "add partitions":
        refuse(scene, AddPartitionsToTxnRequest, lambda request: added_partitions(request.message, code))
        scene.batch_of(b"a")
    else:
        scene.takes_offsets(add_code=code)
        outcome = scene.transactions.send_offsets(OFFSETS, GROUP)
        assert isinstance(scene.settle(outcome), TransactionAbortable)
    assert failure(scene) == code.name
    assert scene.settle(scene.transactions.begin_abort()) is None
    bump = scene.script.sent(InitProducerIdRequest)[-1]
    assert (bump.producer_id, bump.producer_epoch) == (PRODUCER_ID, 0)
    scene.begin()
    scene.batch_of(b"b")
    (sent,) = scene.produced
    assert (sent.header.producer_epoch, sent.sequence) == (1, 0)


def test_a_new_epoch_is_possible_while_the_coordinator_is_away() -> None:
    scene = in_transaction()
    scene.batch_of(b"a")
    scene.transactions.coordinator.lost("it moved")
    scene.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert scene.transactions.state is State.MUST_ABORT
    outcome = scene.transactions.begin_abort()
    scene.sleep(500)
    assert scene.settle(outcome) is None


def test_sequences_go_on_after_a_refused_batch_if_the_epoch_cannot_change() -> None:
    from broker.protocol.api_keys import APIS

    offered = {key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()}
    scene = in_transaction(offered={**offered, 22: (0, 2)})
    scene.batch_of(b"a")
    scene.answer()
    scene.batch_of(b"b")
    scene.answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert scene.settle(scene.transactions.begin_abort()) is None
    scene.begin()
    scene.batch_of(b"c")
    (sent,) = scene.produced
    assert (sent.header.producer_epoch, sent.sequence) == (0, 1)


def test_a_producer_that_retention_has_removed_goes_on_within_its_transaction() -> None:
    scene = in_transaction()
    scene.batch_of(b"a")
    scene.answer()
    (delivery,) = scene.batch_of(b"b")
    scene.answer(ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset=10)
    scene.sleep(300)
    (again,) = scene.produced
    assert (again.header.producer_epoch, again.sequence) == (0, 0)
    scene.answer()
    assert delivery.exception(0) is None
    assert scene.settle(scene.transactions.begin_commit()) is None


def test_a_batch_of_a_transaction_is_split() -> None:
    scene = in_transaction(linger_ms=5)
    sent = [scene.send(b"a"), scene.send(b"b")]
    scene.sleep(5)
    scene.answer(ErrorCode.MESSAGE_TOO_LARGE)
    headers = []
    while scene.produced:
        headers += [(one.sequence, one.header.is_transactional) for one in scene.produced]
        scene.answer()
    assert headers == [(0, True), (1, True)]
    assert all(one.exception(0) is None for one in sent)
    assert scene.settle(scene.transactions.begin_commit()) is None


# --- older brokers ---


def offering(**ranges: tuple[int, int] | None) -> dict[int, tuple[int, int]]:
    """What a broker offers; the keyword is `v` and the api key."""
    from broker.protocol.api_keys import APIS

    offered = {key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()}
    for name, bounds in ranges.items():
        del offered[int(name[1:])]
        if bounds is not None:
            offered[int(name[1:])] = bounds
    return offered


def test_a_broker_without_transactions_is_the_end() -> None:
    scene = Scene(transactional=True, offered=offering(v22=None))
    assert code_name(scene.settle(scene.transactions.initialize())) == "UNSUPPORTED"
    assert scene.transactions.state is State.FATAL


def test_a_broker_that_cannot_check_the_member_does_not_get_its_offsets() -> None:
    scene = in_transaction(offered=offering(v28=(0, 2)))
    scene.takes_offsets()
    assert code_name(scene.settle(scene.transactions.send_offsets(OFFSETS, GROUP))) == "UNSUPPORTED"
    assert scene.script.sent(TxnOffsetCommitRequest) == []


def test_offsets_without_a_member_go_to_older_brokers_too() -> None:
    scene = in_transaction(offered=offering(v28=(0, 2)))
    scene.takes_offsets()
    assert scene.settle(scene.transactions.send_offsets(OFFSETS, ConsumerGroupMetadata("group"))) is None


def test_offsets_that_the_format_of_a_broker_cannot_hold_are_the_end() -> None:
    scene = in_transaction()
    scene.takes_offsets(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    outcome = scene.transactions.send_offsets(OFFSETS, GROUP)
    assert code_name(scene.settle(outcome)) == "UNSUPPORTED_FOR_MESSAGE_FORMAT"
    assert scene.transactions.state is State.FATAL


def test_one_request_in_flight_is_enough_to_begin() -> None:
    for transactional in (True, False):
        scene = Scene(transactional=transactional, max_in_flight=1)
        if transactional:
            scene.initialize()
        else:
            scene.batch_of(b"a")
            assert scene.values == [[b"a"]]


def test_after_the_end_of_a_producer_a_close_waits_for_nothing() -> None:
    scene = in_transaction()
    (sent,) = scene.batch_of(b"a")
    scene.transactions.fail_fatally(KgctlError("fenced"))
    scene.turn()
    assert sent.exception(0) is not None
    scene.core.close()
    scene.turn()
    assert not scene.core.has_work
    assert scene.script.sent(EndTxnRequest) == []
    scene.answer()
