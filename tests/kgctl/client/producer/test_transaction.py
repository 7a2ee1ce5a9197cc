"""The state of a producer's transaction: what may follow what, and which errors end the transaction or the producer."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable
from kgctl.client.producer.transaction import (
    Phase,
    ProducerIdentity,
    Transaction,
    TransactionFailed,
    TransactionSettings,
)
from kgctl.exit_codes import WRONG_STATE, exit_code_of
from kgctl.model.topic_partition import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
FIRST, NEXT = ProducerIdentity(7, 0), ProducerIdentity(7, 1)


def transaction(*, is_implicit: bool = True) -> Transaction:
    """One with an open transaction, begun at 0, to which nothing was sent."""
    made = Transaction(TransactionSettings("an-id", timeout_ms=1000), is_implicit=is_implicit)
    made.initialized(FIRST)
    made.begin(0)
    return made


def refused(code: ErrorCode) -> BrokerError:
    return BrokerError(code, "t-0")


def test_a_transaction_without_records_is_not_reported_to_the_coordinator() -> None:
    one = transaction()
    assert one.finish(commit=True) is False
    assert one.phase is Phase.READY


def test_each_end_gives_the_next_epoch_in_the_newer_protocol() -> None:
    one = transaction()
    one.use(P0)
    assert one.unadded() == []
    one.added([P0])
    assert one.finish(commit=True) is True
    one.finished(NEXT)
    assert (one.phase, one.identity) == (Phase.READY, NEXT)


def test_each_partition_is_added_once_per_transaction_in_the_older_protocol() -> None:
    one = transaction(is_implicit=False)
    for partition in (P1, P0, P1):
        one.use(partition)
    assert one.unadded() == [P0, P1]
    one.added([P0, P1])
    assert one.unadded() == []
    assert one.finish(commit=False)
    one.finished(None)
    assert one.identity == FIRST
    one.begin(0)
    one.use(P0)
    assert one.unadded() == [P0]


@pytest.mark.parametrize(
    "error",
    [
        refused(ErrorCode.TRANSACTION_ABORTABLE),
        refused(ErrorCode.INVALID_PRODUCER_EPOCH),
        refused(ErrorCode.INVALID_TXN_STATE),
        refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        TimedOut("late"),
        Unreachable("gone"),
    ],
)
def test_a_failed_batch_can_only_be_aborted(error: KgctlError) -> None:
    one = transaction()
    one.added([P0])
    failed = one.fail(error, 10)
    assert not failed.is_fatal
    with pytest.raises(TransactionFailed) as raised:
        one.finish(commit=True)
    assert raised.value is failed
    assert one.finish(commit=False) is True
    one.finished(NEXT)
    one.begin(20)
    one.added([P0])
    assert one.finish(commit=True) is True


@pytest.mark.parametrize(
    ("code", "by_coordinator"),
    [
        (ErrorCode.PRODUCER_FENCED, False),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, False),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, False),
        (ErrorCode.PRODUCER_FENCED, True),
        (ErrorCode.INVALID_PRODUCER_EPOCH, True),
        (ErrorCode.INVALID_TXN_STATE, True),
    ],
)
def test_a_fenced_or_forbidden_producer_can_do_nothing_more(code: ErrorCode, by_coordinator: bool) -> None:
    one = transaction()
    one.added([P0])
    failed = one.fail(refused(code), 10, by_coordinator=by_coordinator)
    assert failed.is_fatal
    for commit in (True, False):
        with pytest.raises(TransactionFailed):
            one.finish(commit=commit)
    assert one.fail(TimedOut("later"), 20) is failed


def test_the_first_failure_stands_until_a_fatal_one() -> None:
    one = transaction()
    first = one.fail(TimedOut("late"), 10)
    assert one.fail(refused(ErrorCode.TRANSACTION_ABORTABLE), 20) is first
    assert one.fail(refused(ErrorCode.PRODUCER_FENCED), 30).is_fatal


def test_the_coordinators_request_to_abort_is_not_fatal() -> None:
    one = transaction()
    assert not one.fail(refused(ErrorCode.TRANSACTION_ABORTABLE), 10, by_coordinator=True).is_fatal


def test_lost_sequences_need_a_new_epoch_unless_the_end_of_the_transaction_brings_one() -> None:
    for is_implicit in (True, False):
        one = transaction(is_implicit=is_implicit)
        one.added([P0])
        one.lose_sequences()
        assert one.finish(commit=False)
        one.finished(NEXT if is_implicit else None)
        assert one.needs_new_epoch is not is_implicit
        one.initialized(ProducerIdentity(7, 2))
        assert not one.needs_new_epoch


def test_a_stale_epoch_is_explained_by_the_age_of_the_transaction() -> None:
    one = transaction()
    young = one.fail(refused(ErrorCode.INVALID_PRODUCER_EPOCH), 999)
    assert "another producer with transactional id 'an-id'" in str(young)
    assert exit_code_of(young) == WRONG_STATE
    old = transaction().fail(refused(ErrorCode.INVALID_PRODUCER_EPOCH), 1000)
    assert "open longer than its timeout of 1 s" in str(old)


def test_a_failed_start_leaves_the_producer_unusable() -> None:
    one = Transaction(TransactionSettings("an-id", timeout_ms=90_000), is_implicit=True)
    failed = one.fail(refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT), 0, by_coordinator=True)
    assert (failed.is_fatal, one.phase) == (True, Phase.FATAL)
    assert "90 s is longer than transaction.max.timeout.ms" in str(failed)
