"""The tables of topics, their configs and their changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgctl.model.changes import (
    TopicChange,
)
from kgctl.model.topics import TopicConfigRow, TopicPartitionRow, TopicRow
from kgctl.render.columns import Column, Layout
from kgctl.render.parts import ERROR, ID, NAME, STATUS


def _numbers(field: str) -> Callable[[Any], str | None]:
    return lambda row: ",".join(map(str, getattr(row, field))) or None


TOPIC_LAYOUTS: dict[str, Layout] = {
    "topics": Layout(
        TopicRow,
        (
            NAME("TOPIC", "topic", 30),
            Column("PARTITIONS", "partitions", 10),
            Column("REPLICAS", "replicas", 8, rank=1),
            Column("INTERNAL", lambda row: "yes" if row.internal else "no"),
            ERROR,
        ),
    ),
    "topic-partitions": Layout(
        TopicPartitionRow,
        (
            NAME("TOPIC", "topic", 30),
            Column("PARTITION", "partition", 10),
            Column("LEADER", "leader", 8),
            Column("REPLICAS", _numbers("replicas"), 10, rank=2),
            Column("ISR", _numbers("isr"), 10),
            Column("LOG-START-OFFSET", "log_start_offset", 16),
            Column("LOG-END-OFFSET", "log_end_offset", 15),
            Column("RECORDS", "records", rank=1),
            ERROR,
        ),
    ),
    "topic-configs": Layout(
        TopicConfigRow,
        (
            NAME("TOPIC", "topic", 30),
            ID("CONFIG", "config", 30),
            ID("VALUE", "value", 20),
            Column("SOURCE", "source", rank=1),
            ERROR,
        ),
        name="config",
    ),
    "topic-changes": Layout(
        TopicChange,
        (
            NAME("TOPIC", "topic", 30),
            Column("PARTITIONS", "partitions", 10),
            Column("REPLICAS", "replicas", 8, rank=1),
            STATUS,
            ERROR,
        ),
    ),
}
