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
SHARE_STATE_TOPIC = "__share_group_state"


class RowTopicDeclaration(NamedTuple):
    """`partition_count` and `configs` apply when a store first gets the topic: when it is new, or with `at_first_use`, when asked."""

    name: str
    partition_count: int
    configs: Mapping[str, str]
    tables: Callable[[Store, int], RowTables]  # of a store with this number of partitions
    at_first_use: bool = False


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
        RowTopicDeclaration(
            name=SHARE_STATE_TOPIC,
            partition_count=settings.share_state_topic_partitions,
            # Kafka deletes the oldest records, once newer ones make them needless.
            configs={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "retention.ms": "-1",
                "segment.bytes": str(settings.share_state_topic_segment_bytes),
            },
            tables=_share_state_tables,
            at_first_use=True,
        ),
    ]


def _offsets_tables(store: Store, partition_count: int) -> CompactedTables:
    fill_group_index(store)
    return CompactedTables(
        store, OFFSETS_TOPIC, partition_count, prefix="offsets", derive=partial(update_group_index, store)
    )


def _transactions_tables(store: Store, partition_count: int) -> CompactedTables:
    return CompactedTables(store, TRANSACTIONS_TOPIC, partition_count, prefix="transactions", meta="transactions_")


def _share_state_tables(store: Store, partition_count: int) -> CompactedTables:
    # A snapshot supersedes all earlier rows of its share partition. The keys differ in their type, which is 0 in that of a snapshot.
    snapshot_key = "CAST(x'0000' || substr(o.key, 3) AS BLOB)"
    return CompactedTables(
        store,
        SHARE_STATE_TOPIC,
        partition_count,
        prefix="share_state",
        meta="share_state_",
        superseded_by=snapshot_key,
    )
