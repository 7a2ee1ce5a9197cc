"""What the jobs read: internal topics, and the columns of a record as both sources give them."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.pipelines.schemas.model import Column

OFFSETS_TOPIC = "__consumer_offsets"
EVENTS_TOPIC = "__kgctl_group_events"
TRANSACTIONS_TOPIC = "__transaction_state"

# The columns of Spark's own Kafka source, in its order; `headers` only with includeHeaders.
RAW_COLUMNS = (
    Column("key", "binary", "the record's key, or null"),
    Column("value", "binary", "the record's value, or null"),
    Column("topic", "string", "the topic of the record"),
    Column("partition", "int", "its partition"),
    Column("offset", "bigint", "its offset"),
    Column("timestamp", "timestamp", "when the record was created or appended"),
    Column("timestampType", "int", "0: the producer's time; 1: the time it was appended"),
)
# Spark checks each value of a column that may be null, which takes a sixth of the time of a read.
_MAY_BE_NULL = ("key", "value")
HEADERS = "headers"
HEADERS_DDL = f"`{HEADERS}` array<struct<key: string, value: binary>>"
_DDL = {
    column.name: f"`{column.name}` {column.type}{'' if column.name in _MAY_BE_NULL else ' NOT NULL'}"
    for column in RAW_COLUMNS
} | {HEADERS: HEADERS_DDL}
RAW_NAMES = tuple(column.name for column in RAW_COLUMNS)


def raw_ddl(names: Iterable[str]) -> str:
    """The schema of these columns, as Spark reads it. Raises KeyError."""
    return ", ".join(_DDL[name] for name in names)


RAW_DDL = raw_ddl(RAW_NAMES)
