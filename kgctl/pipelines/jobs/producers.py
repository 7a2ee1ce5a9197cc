"""producers: figures of each transactional id, and the open transactions that hold back readers."""

from __future__ import annotations

import time

from kgctl.client.admin.admin import Admin
from kgctl.client.admin.transactions import list_transactions
from kgctl.client.net.errors import Unsupported
from kgctl.model.transactions import Hold, TransactionListings, TransactionRow
from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.lookups import CLIENT_ID
from kgctl.pipelines.jobs.topic_facts import topics_of
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.topics import HOLDS, PRODUCERS, TRANSACTIONS
from kgctl.pipelines.tables.manifest import Note
from kgctl.pipelines.tables.newest import MEASURED
from kgctl.pipelines.transforms import transactions

_HOLDS_DDL = (
    "topic string, part int, at_ms bigint, last_stable bigint, log_end bigint, waiting bigint, producer_id bigint, "
    "transactional_id string, held_ms bigint, hanging boolean"
)


def run(run: RunContext, job: Job) -> int:
    """Rows written to f_producer: one per transactional id."""
    with Admin(run.settings.connection(CLIENT_ID)) as admin:
        topics = topics_of(run, admin, job.name)
        holds = admin.holds([one for topic in topics for one in topic.partitions])
        # After the holds, so that the transaction of each is listed if a coordinator knows it.
        listed = _listed(run, admin, job)
        described = admin.describe_transactions([row.transactional_id for row in listed.rows])
    now_ms = time.time_ns() // 1_000_000
    batch = f"{job.name}-{now_ms}"
    known = {row.producer_id for row in listed.rows} if not listed.errors else None
    held = run.spark.createDataFrame([_held(one, known, now_ms) for one in holds.values()], _HOLDS_DDL)
    notes: dict[str, Note] = {MEASURED: now_ms}
    run.write(HOLDS, held.selectExpr("*", "timestamp_millis(at_ms) as at"), batch, notes)
    states = run.spark.createDataFrame([_state(row) for row in described if not row.error], transactions.STATES_DDL)
    rows = transactions.producers(run.read(TRANSACTIONS), states, now_ms)
    return run.write(PRODUCERS, rows, batch, notes).rows


def _listed(run: RunContext, admin: Admin, job: Job) -> TransactionListings:
    try:
        listed = admin.run(list_transactions(admin.cluster))
    except Unsupported as error:
        run.emit(Progress("note", "the cluster does not list transactions (Kafka 3.0): states are empty", job=job.name))
        return TransactionListings((), (error.as_row(),))
    for failed in listed.errors:
        run.emit(Progress("note", f"transactional ids may be missing: {failed.message}", job=job.name))
    return listed


def _held(hold: Hold, known: set[int] | None, now_ms: int) -> tuple[object, ...]:
    hanging = None
    if hold.producer_id is not None and (hold.transactional_id is not None or known is not None):
        hanging = hold.transactional_id is None and hold.producer_id not in (known or ())
    return (
        *hold.partition,
        now_ms,
        hold.last_stable_offset,
        hold.log_end_offset,
        hold.records,
        hold.producer_id,
        hold.transactional_id,
        hold.age_ms,
        hanging,
    )


def _state(row: TransactionRow) -> tuple[object, ...]:
    partitions = [(one.topic, list(one.partitions)) for one in row.partitions] if row.is_open else None
    return (
        row.transactional_id,
        row.state,
        row.producer_id,
        row.producer_epoch,
        row.started_ms if row.is_open else None,
        row.age_ms,
        partitions,
        row.timeout_ms,
    )
