"""Restarts during a transaction: it goes on, times out, is completed or aborted, before clients are served."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from broker.cores.transactions.records import (
    StateRecord,
    TransactionRecord,
    TransactionTombstone,
    from_row,
    to_row,
)
from broker.cores.transactions.states import TransactionState
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.transaction_log import decode_value, partition_for
from broker.storage import TRANSACTIONS_TOPIC, Log
from tests.harness.requests import create_topic, fetch, values_of
from tests.harness.running import RunningBroker, until
from tests.harness.transactions import READ_COMMITTED, TransactionalProducer
from tests.harness.wire_client import WireClient

HOUR_MS = 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def change_stored(running: RunningBroker, change: Callable[[TransactionRecord], StateRecord]) -> None:
    """Replace the stored state of the only transactional id of a stopped broker."""
    log = Log.open(running.data_dir, running.config.log_settings(), wall_ms=now_ms())
    (row,) = log.transactions.newest_rows()
    record = from_row(row.key, row.value, row.timestamp_ms)
    assert isinstance(record, TransactionRecord)
    log.append_rows(TRANSACTIONS_TOPIC, [to_row(change(record), 2)])
    log.flush()
    log.close()


def begin(running: RunningBroker) -> TransactionalProducer:
    """A transaction with a record and an offset; its client is closed."""
    with running.client() as client:
        create_topic(client, "t", 2)
        producer = TransactionalProducer(client, "tx")
        assert producer.produce("t", b"a").error_code == ErrorCode.NONE
        assert producer.commit_offsets("g", "t", (0, 5)) == [ErrorCode.NONE]
    return producer


def read(client: WireClient) -> tuple[int, list[bytes | None], int]:
    """The last stable offset, the records and the number of aborted transactions of t-0."""
    row: Any = fetch(client, "t", 0, isolation_level=READ_COMMITTED)
    return row.last_stable_offset, values_of(row), len(row.aborted_transactions)


def committed_offset(client: WireClient) -> int:
    """The committed offset of t-0, which no transaction holds."""
    topics = [OffsetFetchRequest.Topic(name="t", partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id="g", topics=topics)], require_stable=True)
    row = client.ask(request, 9).groups[0].topics[0].partitions[0]
    assert row.error_code == ErrorCode.NONE
    offset: int = row.committed_offset
    return offset


def test_a_transaction_goes_on_after_a_restart(running: RunningBroker) -> None:
    producer = begin(running)

    running.restart()

    with running.client() as client:
        producer.client = client
        assert read(client) == (0, [], 0)
        assert producer.produce("t", b"b").error_code == ErrorCode.NONE
        assert producer.end(committed=True) == ErrorCode.NONE
        end, values, aborted = read(client)
        assert (end, values[:2], aborted) == (3, [b"a", b"b"], 0)
        assert committed_offset(client) == 5


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_a_prepared_transaction_is_completed_before_clients_are_served(
    running: RunningBroker, state: TransactionState
) -> None:
    producer = begin(running)
    running.stop()
    change_stored(running, lambda record: dataclasses.replace(record, state=state))

    running.start()

    is_commit = state is TransactionState.PREPARE_COMMIT
    with running.client() as client:
        producer.client = client
        assert producer.state() == ("CompleteCommit" if is_commit else "CompleteAbort")
        end, values, aborted = read(client)
        assert (end, values[:1], aborted) == (2, [b"a"], not is_commit)
        assert committed_offset(client) == (5 if is_commit else -1)


@pytest.mark.parametrize(("began_ms_ago", "times_out"), [(HOUR_MS, True), (0, False)])
def test_the_time_of_a_transaction_counts_from_its_start_also_after_a_restart(
    running: RunningBroker, began_ms_ago: int, times_out: bool
) -> None:
    producer = begin(running)
    running.stop()
    change_stored(running, lambda record: dataclasses.replace(record, start_timestamp_ms=now_ms() - began_ms_ago))

    running.start()

    with running.client() as client:
        producer.client = client
        if times_out:
            assert until(lambda: producer.state() == "CompleteAbort")
            assert read(client)[0] == 2
        else:
            assert producer.state() == "Ongoing"


def test_a_transaction_that_the_coordinator_does_not_know_is_aborted_at_the_start(
    running: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    begin(running)
    running.stop()
    change_stored(running, lambda record: TransactionTombstone(record.transactional_id, now_ms()))
    caplog.set_level(logging.WARNING, "broker.server")

    running.start()

    with running.client() as client:
        end, _, aborted = read(client)
        assert (end, aborted) == (2, 1)
        assert committed_offset(client) == -1
    assert "t-0: aborted a transaction of the unknown producer 0" in caplog.text
    assert "dropped the pending offsets of the unknown producer 0" in caplog.text


def test_a_transaction_that_is_newer_than_the_known_one_is_aborted_at_the_start(running: RunningBroker) -> None:
    with running.client() as client:
        create_topic(client, "t")
        TransactionalProducer(client, "tx")
        assert TransactionalProducer(client, "tx").produce("t", b"a").error_code == ErrorCode.NONE
    running.stop()
    change_stored(running, lambda record: dataclasses.replace(record, producer_epoch=0))

    running.start()

    with running.client() as client:
        end, _, aborted = read(client)
    assert (end, aborted) == (2, 1)


def test_a_start_without_losses_aborts_nothing(running: RunningBroker, caplog: pytest.LogCaptureFixture) -> None:
    begin(running)
    caplog.set_level(logging.WARNING, "broker.server")

    running.restart()

    assert not caplog.records


def test_a_transaction_without_records_times_out_after_a_restart_that_no_producer_notices(
    running: RunningBroker,
) -> None:
    with running.client() as client:
        create_topic(client, "t")
        TransactionalProducer(client, "tx").add_partitions(("t", 0))
    running.stop()
    change_stored(running, lambda record: dataclasses.replace(record, start_timestamp_ms=0))

    running.start()

    with running.client() as client:
        assert until(lambda: read_states(client)[-1] is TransactionState.COMPLETE_ABORT)


def read_states(client: WireClient) -> list[TransactionState]:
    """The states of "tx", as records of `__transaction_state`."""
    row = fetch(client, TRANSACTIONS_TOPIC, 0, partition=partition_for("tx"))
    return [TransactionState(decode_value(value).transaction_status) for value in values_of(row) if value is not None]
