"""The end of a transaction: EndTxn in both protocols, the abort that fences a producer, and the completion after the markers."""

from __future__ import annotations

from broker.cores.core import BrokenInvariant
from broker.cores.transactions import transition
from broker.cores.transactions.records import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TransactionRecord
from broker.cores.transactions.states import TransactionState
from broker.cores.transactions.step import TIMEOUT, Step
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

PRODUCER_FENCED_SINCE = 2
# The end of a transaction in these versions bumps the epoch, and answers with the producer id and epoch to use next.
BUMPS_EPOCH_SINCE = 5


class Check(NamedTuple):
    """What becomes of an EndTxn: an error, success without a change because it has happened before, or the end itself."""

    error: ErrorCode
    ends: bool = False


_ENDS, _HAS_ENDED = Check(ErrorCode.NONE, ends=True), Check(ErrorCode.NONE)


def end_transaction(step: Step, request: EndTxnRequest) -> None:
    bumps_epoch = step.request.api_version >= BUMPS_EPOCH_SINCE
    record = step.transactions.get(request.transactional_id)
    if not request.transactional_id:
        check = Check(ErrorCode.INVALID_REQUEST)
    elif record is None:
        check = Check(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    else:
        check = (_check_bumping if bumps_epoch else _check)(record, request)
    if check.error or record is None:
        error = check.error
        if error is ErrorCode.PRODUCER_FENCED and step.request.api_version < PRODUCER_FENCED_SINCE:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        step.reply(EndTxnResponse(error_code=error))
        return
    if check.ends:
        _end(step, record, is_commit=request.committed, bumps_epoch=bumps_epoch)
        record = transition.completed(step.transactions[record.transactional_id], step.wall_ms)
    step.reply(EndTxnResponse(producer_id=record.producer_id, producer_epoch=record.producer_epoch))


def abort_and_fence(step: Step, record: TransactionRecord) -> None:
    """Abort an ongoing transaction with an epoch that its producer does not have."""
    level = step.coordinator.transaction_version()
    bumps_epoch = level >= transition.BUMPS_EPOCH
    step.set_last_epoch(record.transactional_id, record.producer_epoch if bumps_epoch else NO_PRODUCER_EPOCH)
    _prepare(
        step,
        transition.prepared(
            record,
            is_commit=False,
            epoch=transition.bumped(record.producer_epoch),
            client_version=level if bumps_epoch else 0,
            wall_ms=step.wall_ms,
        ),
    )


def complete(step: Step, transactional_id: str) -> None:
    """Complete a prepared transaction whose markers are written."""
    record = step.transactions.get(transactional_id)
    if record is None or not record.state.is_prepared:
        raise BrokenInvariant(f"transactional id {transactional_id} has no prepared transaction")
    step.persist(transition.completed(record, step.wall_ms))


def _check(record: TransactionRecord, request: EndTxnRequest) -> Check:
    """Before KIP-890: the epoch stays, and a second EndTxn with the same outcome is a retry."""
    if request.producer_id != record.producer_id:
        return Check(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != record.producer_epoch:
        return Check(ErrorCode.PRODUCER_FENCED)
    if record.state.is_prepared:
        return Check(ErrorCode.CONCURRENT_TRANSACTIONS)
    if record.state is TransactionState.ONGOING:
        return _ENDS
    if record.state is _complete_state(request):
        return _HAS_ENDED
    return Check(ErrorCode.INVALID_TXN_STATE)


def _check_bumping(record: TransactionRecord, request: EndTxnRequest) -> Check:
    """KIP-890: a retry has the epoch before the present one, and an abort may end a transaction that is empty."""
    if record.state.is_prepared:
        return Check(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_present = request.producer_epoch == record.producer_epoch
    retries_rotation = (
        request.producer_id == record.previous_producer_id != NO_PRODUCER_ID
        and request.producer_epoch == transition.MAX_EPOCH - 1
        and record.producer_epoch == 0
    )
    is_retry = retries_rotation or request.producer_epoch + 1 == record.producer_epoch
    if request.producer_id != record.producer_id and not retries_rotation:
        return Check(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    has_completed = record.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    if not (is_present or (is_retry and has_completed)):
        return Check(ErrorCode.PRODUCER_FENCED)
    if record.state is TransactionState.ONGOING:
        return _ENDS
    if is_retry and record.state is not _complete_state(request):
        return Check(ErrorCode.INVALID_TXN_STATE)
    # The last epoch is that of a fence, and no producer gets it. An abort leads on to a new producer id.
    if is_retry and record.producer_epoch != transition.MAX_EPOCH:
        return _HAS_ENDED
    return Check(ErrorCode.INVALID_TXN_STATE) if request.committed else _ENDS


def _complete_state(request: EndTxnRequest) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if request.committed else TransactionState.COMPLETE_ABORT


def _end(step: Step, record: TransactionRecord, *, is_commit: bool, bumps_epoch: bool) -> None:
    epoch, next_producer_id, client_version = record.producer_epoch, NO_PRODUCER_ID, 0
    if bumps_epoch:
        if transition.is_exhausted(epoch):
            next_producer_id = step.coordinator.new_producer_id()
        step.set_last_epoch(record.transactional_id, epoch)
        epoch, client_version = transition.bumped(epoch), transition.BUMPS_EPOCH
    _prepare(
        step,
        transition.prepared(
            record,
            is_commit=is_commit,
            epoch=epoch,
            client_version=client_version,
            wall_ms=step.wall_ms,
            next_producer_id=next_producer_id,
        ),
    )


def _prepare(step: Step, record: TransactionRecord) -> None:
    step.persist(record)
    step.timers.cancel((TIMEOUT, record.transactional_id))
    step.write_markers(record)
