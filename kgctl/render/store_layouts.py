"""The tables about a data directory that is read offline."""

from __future__ import annotations

from typing import Any

from broker.light_dataclasses import replace
from kgctl.model import store
from kgctl.render.columns import RELUCTANTLY, Column, Layout, Shown, layout_by_fields
from kgctl.render.group_layouts import STATE_TONES
from kgctl.render.parts import ID, NAME, SENTENCE
from kgctl.render.transaction_layouts import TONES


def _brief(field: str) -> Any:
    """2026-11-22T23:56:52.123Z as 11-22 23:56:52Z."""

    def text(row: Any) -> str | None:
        time = getattr(row, field)
        return None if time is None else f"{time[5:10]} {time[11:19]}Z"

    return text


def _time(header: str, field: str, rank: int | None = 1) -> Column:
    return Column(header, field, 24, Shown.IF_ANY, rank=rank, brief=_brief(field))


def _listed(field: str) -> Any:
    return lambda row: ", ".join(getattr(row, field)) or None


TOPIC, GROUP, PARTITION = NAME("TOPIC", "topic", 15), NAME("GROUP", "group", 15), Column("PARTITION", "partition", 9)
FIRST, LAST = _time("FIRST-TIME", "first_time", 0), _time("LAST-TIME", "last_time", 2)

STORE_LAYOUTS: dict[str, Layout] = {
    "store-info": replace(layout_by_fields(store.StoreInfo), name="data_dir"),
    "store-topics": Layout(
        store.StoreTopic,
        (
            TOPIC,
            Column("PARTITIONS", "partitions", 10),
            Column("OFFSETS", "offsets", 10),
            Column("SEGMENTS", "segments", 8),
            Column("BYTES", "size_bytes", 10),
            FIRST,
            LAST,
            ID("TOPIC-ID", "topic_id", 32, Shown.WIDE),
        ),
    ),
    "store-partitions": Layout(
        store.StorePartitionRow,
        (
            TOPIC,
            PARTITION,
            Column("LOG-START-OFFSET", "log_start_offset", 16),
            Column("LOG-END-OFFSET", "log_end_offset", 14),
            Column("SEGMENTS", "segments", 8, rank=1),
            Column("BYTES", "size_bytes", 10),
            FIRST,
            LAST,
        ),
    ),
    "store-segments": Layout(
        store.StoreSegmentRow,
        (
            TOPIC,
            PARTITION,
            Column("BASE-OFFSET", "base_offset", 11),
            Column("END-OFFSET", "end_offset", 10),
            Column("BYTES", "size_bytes", 10),
            Column("SEALED", lambda row: "yes" if row.sealed else "no", 6, rank=3),
            FIRST,
            LAST,
            ID("FILE", "file", 40, Shown.WIDE),
        ),
    ),
    "store-configs": layout_by_fields(store.StoreConfig),
    "store-groups": Layout(
        store.StoreGroup,
        (
            GROUP,
            Column("TYPE", "type", 8),
            Column("STATE", "state", 8, tones=STATE_TONES),
            Column("MEMBERS", "members", 7),
            Column("OFFSETS", "offsets", 7),
            Column("LAG", "lag", 10),
            _time("LAST-COMMIT", "last_commit", RELUCTANTLY),
            Column("GENERATION", "generation", 10, Shown.IF_ANY),
            ID("PROTOCOL", "protocol", 10, rank=1),
            ID("LEADER", "leader", 20, Shown.WIDE_IF_ANY),
        ),
    ),
    "store-members": Layout(
        store.StoreMember,
        (
            GROUP,
            ID("CONSUMER-ID", "consumer_id", 15),
            ID("GROUP-INSTANCE-ID", "instance_id", 17, Shown.IF_ANY),
            ID("HOST", "host", 15, rank=2),
            ID("CLIENT-ID", "client_id", 15, rank=1),
            NAME("ASSIGNMENT", _listed("assignment"), 15),
            NAME("SUBSCRIPTION", _listed("subscription"), 15, Shown.WIDE),
        ),
    ),
    "store-offsets": Layout(
        store.StoreOffset,
        (
            GROUP,
            TOPIC,
            PARTITION,
            Column("CURRENT-OFFSET", "current_offset", 14),
            Column("LOG-END-OFFSET", "log_end_offset", 14),
            Column("LAG", "lag", 10),
            _time("COMMITTED", "committed"),
            Column("LEADER-EPOCH", "leader_epoch", 12, Shown.WIDE_IF_ANY),
            NAME("METADATA", "metadata", 15, Shown.WIDE),
        ),
    ),
    "store-share-partitions": Layout(
        store.StoreSharePartition,
        (
            GROUP,
            TOPIC,
            PARTITION,
            Column("START-OFFSET", "start_offset", 12),
            Column("LOG-END-OFFSET", "log_end_offset", 14),
            Column("LAG", "lag", 10),
            Column("STATE-EPOCH", "state_epoch", 11, Shown.WIDE),
        ),
    ),
    "store-pending-offsets": layout_by_fields(store.StorePendingOffset),
    "store-events": Layout(
        store.StoreEvent,
        (
            Column("OFFSET", "offset", 8, rank=0),
            _time("TIME", "time", None),
            GROUP,
            Column("EVENT", "event", 17),
            Column("GENERATION", "generation", 10),
            Column("MEMBERS", "members", 7),
            ID("CAUSE", "cause", 15, rank=1),
        ),
    ),
    "store-transactions": Layout(
        store.StoreTransaction,
        (
            NAME("TRANSACTIONAL-ID", "transactional_id", 20),
            Column("PRODUCER-ID", "producer_id", 11),
            Column("EPOCH", "producer_epoch", 5),
            Column("STATE", "state", 15, tones=TONES),
            _time("STARTED", "started", 0),
            _time("UPDATED", "updated", 1),
            NAME("PARTITIONS", _listed("partitions"), 15, Shown.IF_ANY),
        ),
    ),
    "store-producers": Layout(
        store.StoreProducer,
        (
            TOPIC,
            PARTITION,
            Column("PRODUCER-ID", "producer_id", 11),
            Column("EPOCH", "producer_epoch", 5),
            Column("COORDINATOR-EPOCH", "coordinator_epoch", 17, rank=1),
            Column("TRANSACTION-OFFSET", "transaction_offset", 18),
            _time("LAST-TIME", "last_time", 0),
        ),
    ),
    "store-aborted-transactions": layout_by_fields(store.StoreAbortedTransaction),
    "store-users": layout_by_fields(store.StoreUser),
    "store-acls": layout_by_fields(store.StoreAcl),
    "store-tables": Layout(
        store.StoreTable,
        (
            Column("TABLE", "table", 20),
            SENTENCE("MEANING", "meaning", 30),
            SENTENCE("COLUMNS", lambda row: ", ".join(row.columns), 30),
        ),
        name="table",
    ),
    "store-checks": Layout(
        store.StoreCheck,
        (
            NAME("PART", "part", 30),
            Column("CHECKED", "checked", 10),
            Column("BYTES", "size_bytes", 12),
            Column("DAMAGES", "damages", 7),
        ),
    ),
    "store-damages": Layout(
        store.StoreDamage,
        (SENTENCE("FILE", "file", 30), SENTENCE("PLACE", "place", 20), SENTENCE("DAMAGE", "damage", 30)),
    ),
}
