"""Open transactions: which of them hang, and which groups wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kgctl.model.groups import GroupDescription
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import HangingTransaction, TransactionPartition, TransactionRow
from kgctl.model.watched_transactions import (
    HANGING,
    OVERDUE,
    HangingSnapshot,
    OpenTransaction,
    TransactionsSnapshot,
    WaitingGroup,
)

# A coordinator looks for transactions that have timed out every 10 s.
LATE_MS = 15_000


def open_transactions(
    snapshot: TransactionsSnapshot, hanging: HangingSnapshot | None, groups: Mapping[str, GroupDescription]
) -> list[OpenTransaction]:
    """The transactions: hanging ones, then overdue ones, then the oldest first. `groups` are those that may wait."""
    by_id: dict[str, list[TransactionPartition]] = {}
    for row in snapshot.partitions:
        if row.topic is not None:
            by_id.setdefault(row.transactional_id, []).append(row)
    found = [_of_coordinator(row, by_id.get(row.transactional_id, [])) for row in snapshot.rows]
    found += [_hanging(row) for row in (hanging.rows if hanging is not None else ()) if row.error is None]
    holds = {key: stable for one in found for key, stable in _held(one.partitions)}
    waiting = _waiting(holds, groups.values())
    found = [_with_groups(one, waiting) for one in found]
    return sorted(found, key=lambda one: (one.state != HANGING, one.state != OVERDUE, -(one.age_ms or 0), one.key))


def _of_coordinator(row: TransactionRow, partitions: Sequence[TransactionPartition]) -> OpenTransaction:
    is_overdue = row.age_ms is not None and row.timeout_ms is not None and row.age_ms > row.timeout_ms + LATE_MS
    known = [one.waiting_records for one in partitions if one.waiting_records is not None]
    return OpenTransaction(
        f"id {row.transactional_id}",
        row.transactional_id,
        OVERDUE if is_overdue else row.state or "-",
        row.producer_id,
        row.producer_epoch,
        row.coordinator_id,
        row.age_ms,
        row.timeout_ms,
        tuple(sorted(partitions, key=lambda one: (one.topic or "", one.partition or 0))),
        len(row.topic_partitions()),
        sum(known) if known or not row.partitions else None,
    )


def _hanging(row: HangingTransaction) -> OpenTransaction:
    end = None if row.start_offset is None or row.waiting_records is None else row.start_offset + row.waiting_records
    partition = TransactionPartition(
        "", row.topic, row.partition, row.start_offset, row.start_offset, end, row.waiting_records, row.duration_ms
    )
    return OpenTransaction(
        f"hanging {row.topic}-{row.partition}-{row.start_offset}",
        None,
        HANGING,
        row.producer_id,
        row.producer_epoch,
        None,
        row.duration_ms,
        None,
        (partition,),
        1,
        row.waiting_records,
    )


def _held(partitions: Iterable[TransactionPartition]) -> Iterable[tuple[TopicPartition, int]]:
    """The partitions in which a transaction has records, with the offset at which read_committed readers stop."""
    for one in partitions:
        if one.topic is not None and one.partition is not None and one.start_offset is not None:
            stable = one.start_offset if one.last_stable_offset is None else one.last_stable_offset
            yield TopicPartition(one.topic, one.partition), stable


def _waiting(
    holds: Mapping[TopicPartition, int], groups: Iterable[GroupDescription]
) -> dict[TopicPartition, list[WaitingGroup]]:
    """A group that has committed beyond the last stable offset reads uncommitted, and does not wait.

    One whose member owns the partition and has not committed there has read nothing that it could commit.
    """
    found: dict[TopicPartition, list[WaitingGroup]] = {}
    for group in groups if holds else ():
        for row in group.partitions:
            if row.topic is None or row.partition is None:
                continue
            key = TopicPartition(row.topic, row.partition)
            stable, end = holds.get(key), row.log_end_offset
            if stable is None:
                continue
            if row.current_offset is None:
                if row.consumer_id is not None and end is not None and end > stable:
                    found.setdefault(key, []).append(WaitingGroup(group.group, key, end - stable, 0))
            elif row.lag and row.current_offset <= stable:
                found.setdefault(key, []).append(WaitingGroup(group.group, key, row.lag, stable - row.current_offset))
    return found


def _with_groups(one: OpenTransaction, waiting: Mapping[TopicPartition, list[WaitingGroup]]) -> OpenTransaction:
    from broker.light_dataclasses import replace

    groups = [group for key, _ in _held(one.partitions) for group in waiting.get(key, ())]
    return replace(one, groups=tuple(sorted(groups, key=lambda row: (row.before > 0, -row.lag, row.group))))
