"""Timeouts: at its deadline an ongoing transaction is aborted and its producer fenced."""

from __future__ import annotations

from broker.cores.transactions.end import abort_and_fence
from broker.cores.transactions.records import TransactionRecord
from broker.cores.transactions.states import TransactionState
from broker.cores.transactions.step import TIMEOUT, Step


def resume_timeout(step: Step, record: TransactionRecord) -> None:
    """Set the deadline after a restart. The wall clock gives the age of the transaction."""
    age_ms = max(0, step.wall_ms - record.start_timestamp_ms)
    step.timers.set((TIMEOUT, record.transactional_id), step.now_ms + max(0, record.timeout_ms - age_ms))


def on_timeout(step: Step, transactional_id: str) -> None:
    record = step.transactions.get(transactional_id)
    if record is not None and record.state is TransactionState.ONGOING:
        abort_and_fence(step, record)
