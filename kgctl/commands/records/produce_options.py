"""The options of `kgctl produce`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kgctl.client.schema_registry.kinds import Format
from kgctl.commands.shared.arguments import not_empty


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    ALL = "all"
    ONE = "1"
    NONE = "0"


_MOST_TIMEOUT_SECONDS = (2**31 - 1) / 1000  # an INT32 of milliseconds
_FORMATS = "|".join(kind.value for kind in Format)

Topic = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Read lines as JSON objects; see above.")]
KeySeparator = Annotated[
    str | None,
    typer.Option(
        "--key-separator", metavar="TEXT", help=r"Read lines as KEY TEXT VALUE. Escapes such as \t are understood."
    ),
]
NullMarker = Annotated[
    str | None,
    typer.Option(
        "--null-marker", metavar="TEXT", help="Write null for values (tombstones) and keys that equal this text."
    ),
]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="Add a header to every record; repeatable."),
]
Partition = Annotated[
    int | None,
    typer.Option(
        "--partition",
        min=0,
        metavar="N",
        help="Write all records to this partition. [default: as --partitioner]",
    ),
]
Partitioner = Annotated[
    str,
    typer.Option(
        "--partitioner",
        metavar="NAME|MODULE:NAME",
        help="default (by key, as Kafka's Java client), sticky, round-robin, or a function of a Python module.",
    ),
]
CompressionKind = Annotated[
    Compression,
    typer.Option(
        "--compression", metavar="|".join(codec.value for codec in Compression), help="How to compress batches."
    ),
]
AcksNeeded = Annotated[
    Acks,
    typer.Option(
        "--acks",
        metavar="|".join(acks.value for acks in Acks),
        help="Replicas that must store a record before it is acknowledged: all, the leader (1), none (0).",
    ),
]
Idempotence = Annotated[
    bool,
    typer.Option("--idempotence/--no-idempotence", help="Let the broker drop duplicates of retries (acks=all)."),
]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, metavar="BYTES", help="Largest batch per partition.")]
LingerMs = Annotated[
    int, typer.Option("--linger-ms", min=0, metavar="MS", help="How long a batch waits for more records.")
]
TransactionalId = Annotated[
    str | None,
    typer.Option(
        "--transactional-id",
        metavar="ID",
        callback=not_empty,
        help="Write in transactions, as the only producer with this id. [default: no transactions]",
    ),
]
TransactionRecords = Annotated[
    int | None,
    typer.Option(
        "--transaction-records",
        min=1,
        metavar="N",
        help="Commit every N records. [default: all in one transaction]",
    ),
]
TransactionSeconds = Annotated[
    float | None,
    typer.Option("--transaction-seconds", min=0.001, metavar="S", help="Commit S seconds after the first record."),
]
TransactionTimeout = Annotated[
    float | None,
    typer.Option(
        "--transaction-timeout",
        min=0.001,
        max=_MOST_TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="How long a transaction may be open before the broker aborts it. [default: 60]",
    ),
]

# --- schemas ---

SchemaRegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--schema-registry",
        metavar="URL",
        help="Encode values, which are JSON then, with schemas of this registry. [default: with one of the next four"
        " options, that of the context]",
    ),
]
ValueFormat = Annotated[
    Format | None,
    typer.Option("--value-format", metavar=_FORMATS, help="The kind that the schema must have. [default: auto]"),
]
KeyFormat = Annotated[
    Format | None, typer.Option("--key-format", metavar=_FORMATS, help="The same for keys. [default: text]")
]
ValueSchema = Annotated[
    str | None,
    typer.Option(
        "--value-schema",
        metavar="ID|SUBJECT",
        callback=not_empty,
        help="Schema of values: an id, or the newest one of a subject. [default: TOPIC-value]",
    ),
]
KeySchema = Annotated[
    str | None,
    typer.Option("--key-schema", metavar="ID|SUBJECT", callback=not_empty, help="Schema of keys. [default: TOPIC-key]"),
]
