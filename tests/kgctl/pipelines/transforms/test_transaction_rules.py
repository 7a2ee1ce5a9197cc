"""Transactions from records of `__transaction_state`: complete histories, and what compaction leaves of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker.protocol.transaction_log import TransactionLogValue
from kgctl.pipelines.transforms.transaction_rules import EndedTransaction, OpenTransaction, follow, from_json

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, FENCE = range(8)
PLACES = (("a", (0, 2)), ("b", (1,)))


def state(status: int, at_ms: int, *, epoch: int = 4, start_ms: int = 100, **fields: int) -> TransactionLogValue:
    has_partitions = status in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT, FENCE)
    partitions = [
        TransactionLogValue.Partitions(topic=topic, partition_ids=list(reversed(parts)))
        for topic, parts in reversed(PLACES)
    ]
    return TransactionLogValue(
        producer_id=fields.pop("producer_id", 7),
        producer_epoch=epoch,
        transaction_timeout_ms=1000,
        transaction_status=status,
        transaction_partitions=partitions if has_partitions else None,
        transaction_last_update_timestamp_ms=at_ms,
        transaction_start_timestamp_ms=start_ms,
        **fields,
    )


def ended(*records: TransactionLogValue | None) -> list[EndedTransaction]:
    """As the stream sees them: the state between two records goes through JSON."""
    found, before = [], None
    for record in records:
        before, done = follow(before, record)
        before = None if before is None else from_json(before.to_json())
        found += [] if done is None else [done]
    return found


WHOLE = EndedTransaction(7, 4, "committed", 100, 180, 190, 1000, PLACES)


def test_a_transaction_from_its_first_partition_to_its_markers() -> None:
    empty = state(EMPTY, 90, start_ms=-1)
    records = [empty, state(ONGOING, 100), state(ONGOING, 120), state(PREPARE_COMMIT, 180), state(COMPLETE_COMMIT, 190)]
    assert ended(*records) == [WHOLE]
    aborted = [empty, state(ONGOING, 100), state(PREPARE_ABORT, 180), state(COMPLETE_ABORT, 190), empty]
    assert ended(*aborted) == [replace(WHOLE, outcome="aborted")]


@pytest.mark.parametrize("fenced", [False, True])
def test_the_epoch_is_that_of_the_transaction_although_its_end_raises_it(fenced: bool) -> None:
    fence = [state(FENCE, 170, epoch=5)] if fenced else []
    records = [state(ONGOING, 100), *fence, state(PREPARE_ABORT, 180, epoch=5), state(COMPLETE_ABORT, 190, epoch=5)]
    assert ended(*records) == [replace(WHOLE, outcome="aborted")]


def test_the_producer_is_that_of_the_transaction_although_its_end_replaces_it() -> None:
    new = {"producer_id": 8, "epoch": 0, "previous_producer_id": 7}
    whole = [state(ONGOING, 100), state(PREPARE_COMMIT, 180), state(COMPLETE_COMMIT, 190, **new)]
    assert ended(*whole) == [WHOLE]
    assert [(one.producer_id, one.producer_epoch) for one in ended(whole[-1])] == [(7, 0)]


def test_compaction_leaves_the_end_without_partitions() -> None:
    left = replace(WHOLE, decided_ms=None, partitions=None)
    assert ended(state(COMPLETE_COMMIT, 190)) == [left]
    # What is known of an older transaction says nothing about this one.
    assert ended(state(ONGOING, 60, start_ms=50), state(COMPLETE_COMMIT, 190)) == [left]
    assert ended(state(COMPLETE_COMMIT, 190, start_ms=-1)) == [replace(left, started_ms=None)]


def test_the_decision_alone_is_enough_for_the_partitions() -> None:
    assert ended(state(PREPARE_COMMIT, 180), state(COMPLETE_COMMIT, 190)) == [WHOLE]


@pytest.mark.parametrize("forgotten", [None, state(DEAD, 150), state(EMPTY, 150, start_ms=-1)])
def test_an_id_that_is_forgotten_has_no_open_transaction(forgotten: TransactionLogValue | None) -> None:
    before, _ = follow(None, state(ONGOING, 100))
    assert before == OpenTransaction(7, 4, 100, PLACES)
    assert follow(before, forgotten) == (None, None)
