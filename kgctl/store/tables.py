"""The tables of a data directory by name: what `query`, `info` and `export` know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from broker.light_named_tuples import NamedTuple
from kgctl.model import store as rows
from kgctl.store import groups, security, topics, transactions
from kgctl.store.offline import Offline


class Table(NamedTuple):
    """`row` is a dataclass whose fields are the columns."""

    row: type
    rows: Callable[[Offline], Iterable[Any]]
    meaning: str

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self.row))


TABLES: dict[str, Table] = {
    "topics": Table(rows.StoreTopic, topics.topics, "topics, with sums over their partitions"),
    "partitions": Table(rows.StorePartitionRow, topics.partitions, "partitions: offsets, bytes, times of records"),
    "segments": Table(rows.StoreSegmentRow, topics.segments, "segment files up to the end of their records"),
    "configs": Table(rows.StoreConfig, topics.configs, "configs that were set on topics, the broker and groups"),
    "groups": Table(rows.StoreGroup, groups.groups, "groups as their last generation or epoch was stored"),
    "members": Table(rows.StoreMember, groups.members, "members of that generation"),
    "offsets": Table(rows.StoreOffset, groups.offsets, "committed offsets with lag"),
    "share_partitions": Table(
        rows.StoreSharePartition, groups.share_partitions, "start offsets of share groups, with lag"
    ),
    "pending_offsets": Table(
        rows.StorePendingOffset, groups.pending_offsets, "offsets that open transactions will commit"
    ),
    "events": Table(rows.StoreEvent, groups.events, "the history of groups"),
    "transactions": Table(rows.StoreTransaction, transactions.transactions, "transactional ids and their states"),
    "producers": Table(rows.StoreProducer, transactions.producers, "producers as of the checkpoints of partitions"),
    "aborted_transactions": Table(
        rows.StoreAbortedTransaction, transactions.aborted_transactions, "aborted transactions with records"
    ),
    "users": Table(rows.StoreUser, security.users, "SCRAM users, without secrets"),
    "acls": Table(rows.StoreAcl, security.acls, "ACLs"),
}


def kind_of(table: str) -> str:
    """The kind of the rows, for --output."""
    return f"store-{table.replace('_', '-')}"
