"""`abort` and `forceTerminateTransaction`."""

from __future__ import annotations

import time
from collections.abc import Callable

from broker.light_dataclasses import replace
from kgctl.client.admin.aborts import write_marker
from kgctl.client.admin.init_producer import init_producer
from kgctl.client.admin.producers import describe_producers
from kgctl.client.admin.transactions import describe_transactions
from kgctl.client.net.errors import KgctlError
from kgctl.compat.java_errors import java_error
from kgctl.compat.options import Arguments
from kgctl.compat.tool import Session
from kgctl.compat.transactions.table import Refused
from kgctl.exit_codes import NOT_FOUND
from kgctl.journal.items import key_of, transactions_aborted
from kgctl.journal.results import Outcome
from kgctl.model.changes import DONE
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import FENCE, MARKER, TransactionAbort

_TIMEOUT_MS = 60_000


def run_abort(session: Session, found: Arguments) -> None:
    """Write an abort marker into one partition. Raises JavaError, Refused."""
    key = TopicPartition(found.value("topic") or "", found.number("partition") or 0)
    start, producer = found.number("start-offset"), found.number("producer-id")
    if start is not None:
        row = _at_offset(session, key, start)
    elif producer is None:
        raise Refused(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or with "
            "--producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    else:
        for name in ("producer-epoch", "coordinator-epoch"):
            if not found.has(name):
                raise Refused(f"Missing required argument --{name}")
        epoch, coordinator = found.number("producer-epoch"), max(0, found.number("coordinator-epoch") or 0)
        row = _marker(key, producer, epoch, coordinator)
    session.host.may_change([key.topic])
    done = _kept(session, row, lambda: session.run(write_marker(session.admin.cluster, row), "writeTxnMarkers"))
    if done.error is not None:
        raise java_error(done.error, call="writeTxnMarkers").within()


def _at_offset(session: Session, key: TopicPartition, start: int) -> TransactionAbort:
    """The transaction that begins at an offset, as the leader knows it."""
    producers = session.run(describe_producers(session.admin.cluster, [key]), "describeProducers")[key]
    if isinstance(producers, KgctlError):
        error = java_error(producers, call="describeProducers")
        raise Refused(f"Failed to validate producer state for partition {key}: {error.message}.", error.exit_code)
    for row in producers:
        if row.start_offset == start:
            return replace(
                _marker(key, row.producer_id, row.producer_epoch, max(0, row.coordinator_epoch or 0)),
                start_offset=start,
            )
    raise Refused(f"Could not find any open transactions starting at offset {start} on partition {key}", NOT_FOUND)


def _marker(key: TopicPartition, producer: int | None, epoch: int | None, coordinator: int) -> TransactionAbort:
    return TransactionAbort(
        MARKER,
        None,
        topic=key.topic,
        partition=key.partition,
        producer_id=producer,
        producer_epoch=epoch,
        coordinator_epoch=coordinator,
    )


def run_force_terminate(session: Session, found: Arguments) -> None:
    """Give the id a new epoch, which aborts its transaction; one that does not exist stays so. Raises JavaError."""
    name = found.value("transactionalId") or ""
    now_ms = time.time_ns() // 1_000_000
    (row,) = session.run(describe_transactions(session.admin.cluster, [name], now_ms), "describeTransactions")
    if row.error is not None:
        raise java_error(row.error, call="fenceProducer").within()
    session.host.may_change([name])
    plan = TransactionAbort(FENCE, name, state=row.state)

    def fence() -> TransactionAbort:
        # The timeout stays as it is until the producer comes back with its own.
        session.run(init_producer(session.admin.cluster, name, row.timeout_ms or _TIMEOUT_MS), "fenceProducer")
        return plan

    _kept(session, plan, fence)


def _kept(session: Session, plan: TransactionAbort, act: Callable[[], TransactionAbort]) -> TransactionAbort:
    def outcomes(done: TransactionAbort) -> list[Outcome]:
        return [Outcome(key_of(plan), done.error, done.status if done.error else DONE)]

    return session.change("transactions abort", lambda: transactions_aborted([plan]), act, outcomes, "abort")
