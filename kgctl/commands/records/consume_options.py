"""The options of `kgctl consume`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kgctl.client.schema_registry.kinds import Format
from kgctl.commands.shared.arguments import not_empty
from kgctl.commands.shared.options import parse_seconds


class Decode(StrEnum):
    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    EVENTS = "events"


class Isolation(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class CommitMode(StrEnum):
    AUTO = "auto"
    SYNC = "sync"
    NONE = "none"


class GroupProtocol(StrEnum):
    CLASSIC = "classic"
    CONSUMER = "consumer"


class Delivery(StrEnum):
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"


class OnUndecodable(StrEnum):
    FAIL = "fail"
    SKIP = "skip"
    RAW = "raw"


def _words(kinds: type[StrEnum]) -> str:
    return "|".join(kind.value for kind in kinds)


# --- what to read ---

Words = Annotated[list[str] | None, typer.Argument(metavar="TOPIC[:PARTITION]...", show_default=False)]
Include = Annotated[
    str | None,
    typer.Option(
        "--include",
        metavar="REGEX",
        help="Read topics whose whole name matches, also new ones; no internal ones.",
    ),
]
DecodeKind = Annotated[
    Decode | None,
    typer.Option(
        "--decode",
        metavar=_words(Decode),
        help="Read an internal topic: committed offsets and groups, transactions, or events of groups.",
    ),
]
FromBeginning = Annotated[bool, typer.Option("--from-beginning", help="Start at the oldest record.")]
FromEnd = Annotated[bool, typer.Option("--from-end", help="Start after the newest record. [default]")]
Partition = Annotated[
    list[int] | None, typer.Option("--partition", min=0, metavar="N", help="Read only this partition; repeatable.")
]
Offset = Annotated[
    int | None,
    typer.Option(
        "--offset",
        metavar="N",
        help="Start at this offset of the named partitions; a negative one counts back from the end.",
    ),
]
MetadataMaxAge = Annotated[
    float,
    typer.Option(
        "--metadata-max-age",
        min=0.1,
        metavar="SECONDS",
        help="How soon new topics and partitions are noticed.",
    ),
]
IsolationLevel = Annotated[
    Isolation,
    typer.Option(
        "--isolation",
        "--isolation-level",
        metavar=_words(Isolation),
        help="read_committed leaves out records of open and aborted transactions.",
    ),
]

# --- the group ---

GroupId = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="GROUP",
        callback=not_empty,
        help="Join this group, which assigns the partitions, and commit offsets. With TOPIC:PARTITION, only commit.",
    ),
]
Protocol = Annotated[
    GroupProtocol | None,
    typer.Option(
        "--group-protocol",
        metavar=_words(GroupProtocol),
        help="Who assigns the partitions: a member (classic), or the broker (consumer, KIP-848). [default: classic]",
    ),
]
SessionTimeout = Annotated[
    float | None,
    typer.Option(
        "--session-timeout",
        min=0.1,
        metavar="SECONDS",
        help="How long after a crash the group evicts this member; the broker's choice with --group-protocol consumer."
        " [default: 45]",
    ),
]
InstanceId = Annotated[
    str | None,
    typer.Option(
        "--group-instance-id",
        metavar="ID",
        callback=not_empty,
        help="Be a static member: keep the partitions over a restart within --session-timeout.",
    ),
]
Assignors = Annotated[
    list[str] | None,
    typer.Option(
        "--assignor",
        metavar="NAME|MODULE:CLASS",
        help="range, roundrobin, sticky, cooperative-sticky, or a class of a Python module; repeatable, the"
        " preferred one first. [default: range, roundrobin] With --group-protocol consumer, one of the broker's: uniform, range.",
    ),
]
Commit = Annotated[
    CommitMode | None,
    typer.Option(
        "--commit",
        metavar=_words(CommitMode),
        help="Commit every --commit-interval, after each printed batch, or not at all. [default: auto]",
    ),
]
CommitInterval = Annotated[
    float | None,
    typer.Option(
        "--commit-interval",
        min=0.01,
        metavar="SECONDS",
        help="How often --commit auto commits. [default: 1]",
    ),
]
DeliveryKind = Annotated[
    Delivery | None,
    typer.Option(
        "--delivery",
        metavar=_words(Delivery),
        help="Commit after printing or before: a crash repeats records, or loses them. [default: at-least-once]",
    ),
]
Notices = Annotated[
    bool, typer.Option("--notices", help="Report each rebalance on stderr: partitions assigned, revoked, lost.")
]

# --- schemas ---

SchemaRegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--schema-registry",
        metavar="URL",
        help="Decode records to JSON with schemas of this registry. [default: with --value-format or --key-format, that"
        " of the context]",
    ),
]
ValueFormat = Annotated[
    Format | None,
    typer.Option(
        "--value-format",
        metavar=_words(Format),
        help="Decode values that name a schema (auto), demand that all name one of a kind, or decode none (text)."
        " [default: auto]",
    ),
]
KeyFormat = Annotated[
    Format | None, typer.Option("--key-format", metavar=_words(Format), help="The same for keys. [default: auto]")
]
WhenUndecodable = Annotated[
    OnUndecodable | None,
    typer.Option(
        "--on-undecodable",
        metavar=_words(OnUndecodable),
        help="End the command at a record that cannot be decoded, leave it out, or print its bytes. [default: fail]",
    ),
]

# --- when to stop ---

MaxMessages = Annotated[int | None, typer.Option("--max-messages", min=1, metavar="N", help="Stop after N records.")]
UntilEnd = Annotated[
    bool,
    typer.Option(
        "--until-end",
        help="Stop where the logs ended when reading started. A member of a group that gets no partitions stops after 6 s.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        parser=parse_seconds,
        metavar="SECONDS",
        help="Time limit for the next record, even if the cluster does not answer. [default: none]",
    ),
]

# --- how to print ---

FormatText = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help=r"Print records so, as kcat does: '%t %p %o %k %s\n'."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines, as `kgctl produce --json` reads them.")]
PrintTimestamp = Annotated[bool, typer.Option("--print-timestamp", help="Print the timestamp.")]
PrintPartition = Annotated[bool, typer.Option("--print-partition", help="Print the partition.")]
PrintOffset = Annotated[bool, typer.Option("--print-offset", help="Print the offset.")]
PrintHeaders = Annotated[bool, typer.Option("--print-headers", help="Print the headers.")]
PrintKey = Annotated[
    bool, typer.Option("--print-key", help="Print the key. These five fields precede the value, in this order.")
]
Separator = Annotated[str, typer.Option("--separator", "--key-separator", metavar="TEXT", help="Text between fields.")]
RecordSeparator = Annotated[str, typer.Option("--record-separator", metavar="TEXT", help="Text after each record.")]
NullMarker = Annotated[str, typer.Option("--null-marker", metavar="TEXT", help="Text for null.")]
