"""Expiry: drop transactional ids that no producer has used for `transactional.id.expiration.ms`."""

from __future__ import annotations

from broker.cores.transactions.records import NO_PRODUCER_EPOCH, TransactionTombstone
from broker.cores.transactions.step import EXPIRY, Step

# How many ids one step checks, after how many records it ends, and the pause after it, so that requests get their turn.
IDS_PER_STEP, RECORDS_PER_STEP, PAUSE_MS = 5_000, 1_000, 10


def schedule_check(step: Step) -> None:
    step.timers.set((EXPIRY,), step.now_ms + step.coordinator.settings.expiry_check_interval_ms)


def check_ids(step: Step) -> None:
    """Check the next transactional ids."""
    unchecked = step.coordinator.unchecked
    if not unchecked:
        unchecked += step.transactions
    latest_ms = step.wall_ms - step.coordinator.settings.expiration_ms
    for _ in range(IDS_PER_STEP):
        if not unchecked or len(step.state_records) >= RECORDS_PER_STEP:
            break
        record = step.transactions.get(unchecked.pop())
        if record is not None and record.state.is_idle and record.update_timestamp_ms <= latest_ms:
            step.persist(TransactionTombstone(record.transactional_id, step.wall_ms))
            step.set_last_epoch(record.transactional_id, NO_PRODUCER_EPOCH)
    if unchecked:
        step.timers.set((EXPIRY,), step.now_ms + PAUSE_MS)
    else:
        schedule_check(step)
