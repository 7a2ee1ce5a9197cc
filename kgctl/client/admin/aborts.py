"""Finds hanging transactions, and aborts transactions: plans, and their execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.light_dataclasses import dataclass, replace
from broker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kgctl.client.admin.init_producer import init_producer
from kgctl.client.admin.offsets import LATEST, list_offsets
from kgctl.client.admin.producers import describe_producers, transactional_ids
from kgctl.client.admin.transactions import describe_transactions
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound, Precondition, Unsupported
from kgctl.client.net.steps import Steps
from kgctl.model.changes import DONE, FAILED
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import (
    FENCE,
    MARKER,
    ONGOING,
    PREPARE_COMMIT,
    HangingTransaction,
    ProducerRow,
    TransactionAbort,
    TransactionRow,
)

# --- hanging transactions ---


def find_hanging(
    cluster: Cluster,
    topics: Sequence[str] | None,
    partitions: Iterable[int] | None,
    broker_id: int | None,
    older_than_ms: int,
    now_ms: int,
) -> Steps[list[HangingTransaction]]:
    """Open transactions that no coordinator will end, as Kafka's tool finds them; all topics if None.

    Their last record is older than any transaction timeout, and no transactional id has the partition in its transaction.
    """
    wanted = yield from _partitions(cluster, topics, partitions, broker_id)
    found = yield from describe_producers(cluster, wanted, broker_id)
    rows = [HangingTransaction(*key, error=one.as_row()) for key, one in found.items() if isinstance(one, KgctlError)]
    suspects = [
        row
        for producers in found.values()
        if not isinstance(producers, KgctlError)
        for row in producers
        if row.start_offset is not None and now_ms - (row.last_timestamp or 0) > older_than_ms
    ]
    hanging = yield from _without_coordinator(cluster, suspects, now_ms)
    rows += yield from _with_waiting_records(cluster, hanging, now_ms)
    return sorted(rows, key=lambda row: (row.topic, row.partition, row.start_offset or 0))


def _partitions(
    cluster: Cluster, topics: Sequence[str] | None, numbers: Iterable[int] | None, broker_id: int | None
) -> Steps[list[TopicPartition]]:
    answer = yield from cluster.metadata(topics)
    chosen = None if numbers is None else set(numbers)
    found = []
    for topic in answer.topics:
        if topic.error_code:
            raise BrokerError(topic.error_code, f"topic {topic.name!r}")
        for row in topic.partitions:
            is_there = broker_id is None or broker_id in row.replica_nodes
            if is_there and (chosen is None or row.partition_index in chosen):
                found.append(TopicPartition(topic.name or "", row.partition_index))
    missing = (chosen or set()) - {number for _, number in found}
    if missing and broker_id is None:
        raise NotFound(f"topic {answer.topics[0].name!r} has no partition {min(missing)}")
    return found


def _without_coordinator(cluster: Cluster, suspects: Sequence[ProducerRow], now_ms: int) -> Steps[list[ProducerRow]]:
    """The producers whose transaction is unknown to every coordinator."""
    owners = yield from _owners(cluster, suspects, now_ms)
    return [row for row, owner in zip(suspects, owners, strict=True) if owner is None]


def _owners(cluster: Cluster, producers: Sequence[ProducerRow], now_ms: int) -> Steps[list[TransactionRow | None]]:
    """For each producer, the transaction of a coordinator that contains the partition."""
    names = yield from transactional_ids(cluster, {row.producer_id or 0 for row in producers})
    known = {row.transactional_id: row for row in (yield from describe_transactions(cluster, names.values(), now_ms))}
    found: list[TransactionRow | None] = []
    for row in producers:
        owner = known.get(names.get(row.producer_id or 0, ""))
        is_part = owner is not None and TopicPartition(row.topic, row.partition) in owner.topic_partitions()
        found.append(owner if is_part else None)
    return found


def _with_waiting_records(
    cluster: Cluster, hanging: Sequence[ProducerRow], now_ms: int
) -> Steps[list[HangingTransaction]]:
    keys = {TopicPartition(row.topic, row.partition) for row in hanging}
    ends = (yield from list_offsets(cluster, dict.fromkeys(keys, LATEST))) if keys else {}
    rows = []
    for row in hanging:
        end = ends[TopicPartition(row.topic, row.partition)]
        waiting = None if isinstance(end, KgctlError) else max(0, end.offset - (row.start_offset or 0))
        rows.append(
            HangingTransaction(
                row.topic,
                row.partition,
                row.producer_id,
                row.producer_epoch,
                row.coordinator_epoch,
                row.start_offset,
                row.last_timestamp,
                max(0, now_ms - (row.last_timestamp or now_ms)),
                waiting,
            )
        )
    return rows


# --- aborting by transactional id ---


def plan_fencing(cluster: Cluster, names: Sequence[str], now_ms: int) -> Steps[list[TransactionAbort]]:
    """A row per transactional id; one without an open transaction that can be aborted is a row with its error."""
    described = yield from describe_transactions(cluster, names, now_ms)
    rows = []
    for one in described:
        row = TransactionAbort(
            FENCE,
            one.transactional_id,
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            state=one.state,
            age_ms=one.age_ms,
            timeout_ms=one.timeout_ms,
        )
        error = one.error or _not_abortable(one)
        rows.append(replace(row, status=FAILED, error=error) if error else row)
    return rows


def fence(cluster: Cluster, plan: Sequence[TransactionAbort]) -> Steps[list[TransactionAbort]]:
    """Give each transactional id a new epoch, which aborts its transaction, and wait until that has ended."""
    rows = []
    for row in plan:
        if row.error is not None or row.transactional_id is None:
            rows.append(row)
            continue
        try:
            # The timeout stays as it is until the producer comes back with its own.
            yield from init_producer(cluster, row.transactional_id, row.timeout_ms or 60_000)
        except KgctlError as error:
            rows.append(_outcome(row, error))
        else:
            rows.append(_outcome(row, None))
    return rows


def _not_abortable(one: TransactionRow) -> RowError | None:
    name = f"transactional id {one.transactional_id!r}"
    if one.state == ONGOING:
        return None
    if one.state == PREPARE_COMMIT:
        return Precondition(f"{name}: its transaction is being committed, which cannot be undone").as_row()
    if one.is_open:
        return Precondition(f"{name}: its transaction is being aborted already").as_row()
    return Precondition(f"{name} has no open transaction: it is {one.state}").as_row()


# --- aborting in one partition ---


@dataclass(frozen=True, slots=True)
class HangingTarget:
    """A transaction in one partition, by its start offset, or by its producer (brokers before Kafka 3.0)."""

    partition: TopicPartition
    start_offset: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    coordinator_epoch: int | None = None


def plan_marker(cluster: Cluster, target: HangingTarget, now_ms: int, *, force: bool) -> Steps[TransactionAbort]:
    """The marker to write. A transaction that a coordinator will end is a row with its error, unless `force` is given."""
    key = target.partition
    row = TransactionAbort(
        MARKER,
        topic=key.topic,
        partition=key.partition,
        start_offset=target.start_offset,
        producer_id=target.producer_id,
        producer_epoch=target.producer_epoch,
        # Of a producer whose transactions never ended; Kafka's tool takes 0 too.
        coordinator_epoch=max(0, target.coordinator_epoch or 0),
    )
    found = (yield from describe_producers(cluster, [key]))[key]
    if isinstance(found, Unsupported) and target.producer_id is not None:
        return row
    if isinstance(found, KgctlError):
        return _outcome(row, found)
    producer = _find(found, target)
    if producer is None:
        by_offset = f"that starts at offset {target.start_offset}"
        what = f"of producer id {target.producer_id}" if target.start_offset is None else by_offset
        return _outcome(row, NotFound(f"{key} has no open transaction {what}"))
    owner = (yield from _owners(cluster, [producer], now_ms))[0]
    row = replace(
        row,
        transactional_id=owner.transactional_id if owner else None,
        start_offset=producer.start_offset,
        producer_id=producer.producer_id,
        producer_epoch=row.producer_epoch if row.producer_epoch is not None else producer.producer_epoch,
        coordinator_epoch=max(0, producer.coordinator_epoch or 0)
        if target.coordinator_epoch is None
        else row.coordinator_epoch,
        state=owner.state if owner else None,
        age_ms=owner.age_ms if owner else max(0, now_ms - (producer.last_timestamp or now_ms)),
    )
    if owner is None or force:
        return row
    name = owner.transactional_id
    reason = f"{key} is part of a transaction that its coordinator will end: that of transactional id {name!r} ({owner.state})"
    return _outcome(row, Precondition(f"{reason}; abort that one instead, or add --force"))


def write_marker(cluster: Cluster, row: TransactionAbort) -> Steps[TransactionAbort]:
    """Write the abort marker of the plan; a row with an error stays as it is."""
    if row.error is not None:
        return row
    key = TopicPartition(row.topic or "", row.partition or 0)
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=row.producer_id or 0,
        producer_epoch=row.producer_epoch or 0,
        transaction_result=False,
        topics=[WriteTxnMarkersRequest.Topic(name=key.topic, partition_indexes=[key.partition])],
        coordinator_epoch=row.coordinator_epoch or 0,
    )

    def make(node: Node, keys: list[TopicPartition]) -> list[Batch[TopicPartition]]:
        return [
            Batch(Ask(node.endpoint, WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse), keys, _read)
        ]

    found = yield from cluster.at_leaders([key], make)
    return _outcome(row, found[key])


def _find(producers: Sequence[ProducerRow], target: HangingTarget) -> ProducerRow | None:
    for row in producers:
        if row.start_offset is None:
            continue
        if row.start_offset == target.start_offset or (
            target.start_offset is None and row.producer_id == target.producer_id
        ):
            return row
    return None


def _read(answer: WriteTxnMarkersResponse) -> dict[TopicPartition, KgctlError | None]:
    found: dict[TopicPartition, KgctlError | None] = {}
    for marker in answer.markers:
        for topic in marker.topics:
            for row in topic.partitions:
                key = TopicPartition(topic.name, row.partition_index)
                asked = Asked(WriteTxnMarkersRequest, topic=topic.name)
                found[key] = BrokerError(row.error_code, str(key), asked=asked) if row.error_code else None
    return found


def _outcome(row: TransactionAbort, error: KgctlError | None) -> TransactionAbort:
    return replace(row, status=FAILED, error=error.as_row()) if error else replace(row, status=DONE)
