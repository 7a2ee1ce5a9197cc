"""The row topics of a broker. Each is one declaration: name, partitions, configs, tables.

Another topic is another declaration, and its tables in a new format of the store (see store/database.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from broker.light_named_tuples import NamedTuple
from broker.storage.rows.compacted_tables import CompactedTables
from broker.storage.rows.group_index import fill_group_index, update_group_index
from broker.storage.rows.retained_tables import RetainedTables
from broker.storage.rows.row_topic import RowTables
from broker.storage.settings import DAY_MS, LogSettings
from broker.storage.store.database import Store

OFFSETS_TOPIC = "__consumer_offsets"
EVENTS_TOPIC = "__kgctl_group_events"
TRANSACTIONS_TOPIC = "__transaction_state"


class RowTopicDeclaration(NamedTuple):
    """`partition_count` and `configs` apply when a store first gets the topic."""

    name: str
    partition_count: int
    configs: Mapping[str, str]
    tables: Callable[[Store, int], RowTables]  # of a store with this number of partitions


def row_topics(settings: LogSettings) -> list[RowTopicDeclaration]:
    return [
        RowTopicDeclaration(
            name=OFFSETS_TOPIC,
            partition_count=settings.offsets_topic_partitions,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
            tables=_offsets_tables,
        ),
        RowTopicDeclaration(
            name=TRANSACTIONS_TOPIC,
            partition_count=settings.transactions_topic_partitions,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(settings.transactions_topic_segment_bytes),
            },
            tables=_transactions_tables,
        ),
        RowTopicDeclaration(
            name=EVENTS_TOPIC,
            # A reader follows one position and sees the events of all groups in order; events are few.
            partition_count=1,
            # A week of events, and at most about 30,000 of them.
            configs={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "retention.ms": str(7 * DAY_MS),
                "retention.bytes": str(16 << 20),
            },
            tables=lambda store, _: RetainedTables(store, "group_events"),
        ),
    ]


def _offsets_tables(store: Store, partition_count: int) -> CompactedTables:
    fill_group_index(store)
    return CompactedTables(
        store, OFFSETS_TOPIC, partition_count, prefix="offsets", derive=partial(update_group_index, store)
    )


def _transactions_tables(store: Store, partition_count: int) -> CompactedTables:
    return CompactedTables(store, TRANSACTIONS_TOPIC, partition_count, prefix="transactions", meta="transactions_")
