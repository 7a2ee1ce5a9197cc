"""InitProducerId of a transactional producer: a new id, the next epoch of a known id, or the fence of an older producer."""

from __future__ import annotations

from broker.cores.transactions import transition
from broker.cores.transactions.end import abort_and_fence
from broker.cores.transactions.records import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TransactionRecord
from broker.cores.transactions.states import TransactionState
from broker.cores.transactions.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

PRODUCER_FENCED_SINCE = 4


def init_producer_id(step: Step, request: InitProducerIdRequest) -> None:
    error = _initialize(step, request)
    if error:
        if error is ErrorCode.PRODUCER_FENCED and step.request.api_version < PRODUCER_FENCED_SINCE:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        step.reply(InitProducerIdResponse(error_code=error, producer_epoch=NO_PRODUCER_EPOCH))
        return
    record = step.transactions[request.transactional_id or ""]
    step.reply(InitProducerIdResponse(producer_id=record.producer_id, producer_epoch=record.producer_epoch))


def _initialize(step: Step, request: InitProducerIdRequest) -> ErrorCode:
    transactional_id, timeout_ms = request.transactional_id, request.transaction_timeout_ms
    has_id, has_epoch = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_PRODUCER_EPOCH
    if not transactional_id or has_id != has_epoch:
        return ErrorCode.INVALID_REQUEST
    if not 0 < timeout_ms <= step.coordinator.settings.max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    record = step.transactions.get(transactional_id)
    if record is None:
        producer_id = step.coordinator.new_producer_id()
        step.persist(transition.new(transactional_id, producer_id, timeout_ms, step.wall_ms))
        return ErrorCode.NONE
    if record.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if has_id and not _knows(record, request.producer_id, request.producer_epoch):
        return ErrorCode.PRODUCER_FENCED
    if record.state is TransactionState.ONGOING:
        # The producer asks again, and that request bumps the epoch once more: no producer ever gets the epoch of the fence.
        abort_and_fence(step, record)
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return _bump(step, record, request.producer_epoch if has_id else None, timeout_ms)


def _knows(record: TransactionRecord, producer_id: int, epoch: int) -> bool:
    """Whether the producer has the present producer id, or had the previous one until its epochs were exhausted (KIP-360)."""
    return producer_id == record.producer_id or (
        producer_id == record.previous_producer_id and transition.is_exhausted(epoch)
    )


def _bump(step: Step, record: TransactionRecord, expected: int | None, timeout_ms: int) -> ErrorCode:
    """Give the producer its next epoch, or a new producer id when the epochs are exhausted.

    A producer that names its epoch (KIP-360) gets the next one only if no other producer came in between. If it names the epoch before
    the present one, it has missed an answer, and gets that again.
    """
    producer_id, epoch = record.producer_id, record.producer_epoch
    last_epoch = step.last_epoch(record.transactional_id)
    if expected is not None and expected not in (epoch, last_epoch):
        return ErrorCode.PRODUCER_FENCED
    if transition.is_exhausted(epoch):
        producer_id, epoch = step.coordinator.new_producer_id(), 0
    elif expected is None or expected == epoch:
        epoch += 1
    step.persist(transition.initialized(record, producer_id, epoch, timeout_ms, step.wall_ms))
    step.set_last_epoch(record.transactional_id, NO_PRODUCER_EPOCH if expected is None else expected)
    return ErrorCode.NONE
