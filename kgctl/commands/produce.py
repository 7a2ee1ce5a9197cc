"""`kgctl produce`: records from stdin to a topic."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.commands.arguments import only_one
from kgctl.commands.effects import changes
from kgctl.commands.help import examples
from kgctl.commands.settings import settings

if TYPE_CHECKING:
    from kgctl.client.producer.producer import Producer, ProducerSettings
    from kgctl.client.producer.records import Headers, OutgoingRecord
    from kgctl.commands.input_lines import LineReader
    from kgctl.commands.interruption import Interruption
    from kgctl.model.records import Produced

_PIECE_BYTES = 65_536
_UNBOUNDED_SECONDS = 86_400.0
# The broker decides what is too large for a topic; this bounds the memory of kgctl.
_MAX_LINE_BYTES = 33_554_432


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


EPILOG = examples(
    "kgctl produce orders < lines.txt",
    "kgctl produce users --key-separator '\\t' --null-marker NULL < users.tsv",
    "kgctl consume orders --from-end --json | kgctl produce copy --json",
)


@changes(names="topic")
def produce(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Read lines as JSON objects; see above.")] = False,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator", metavar="TEXT", help=r"Read lines as KEY TEXT VALUE. Escapes such as \t are understood."
        ),
    ] = None,
    null_marker: Annotated[
        str | None,
        typer.Option(
            "--null-marker", metavar="TEXT", help="Write null for values (tombstones) and keys that equal this text."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=VALUE", help="Add a header to every record; repeatable."),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition",
            min=0,
            metavar="N",
            help="Write all records to this partition. [default: by key, as Kafka's Java client]",
        ),
    ] = None,
    compression: Annotated[
        Compression,
        typer.Option(
            "--compression", metavar="|".join(codec.value for codec in Compression), help="How to compress batches."
        ),
    ] = Compression.NONE,
    acks: Annotated[
        Acks,
        typer.Option(
            "--acks",
            metavar="|".join(acks.value for acks in Acks),
            help="Replicas that must store a record before it is acknowledged: all, the leader (1), none (0).",
        ),
    ] = Acks.ALL,
    idempotence: Annotated[
        bool,
        typer.Option("--idempotence/--no-idempotence", help="Let the broker drop duplicates of retries (acks=all)."),
    ] = True,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, metavar="BYTES", help="Largest batch per partition.")
    ] = 65_536,
    linger_ms: Annotated[
        int, typer.Option("--linger-ms", min=0, metavar="MS", help="How long a batch waits for more records.")
    ] = 5,
) -> None:
    """Write records from stdin to a topic, one per line.

    A line is the value of a record. A summary of the acknowledged records goes to stderr; with -o json it goes to
    stdout. With --acks 0 the summary counts sent records, and "acknowledged" is false.

    With --json a line is an object: {"value": "text", "key": "text", "headers": {"name": "text"}, "partition": 0,
    "timestamp": 1700000000000}. Only the value is required. null makes a tombstone, and a value that is not a string is
    written as JSON. Give bytes as "value_base64" and "key_base64", and headers whose order matters as a list:
    [{"key": "name", "value": "text"}]. Blank lines are ignored. The output of `kgctl consume --json` is valid input.

    A topic that does not exist is created if the broker allows it (auto.create.topics.enable); a note says so.

    Retries neither duplicate nor reorder records. --timeout bounds the time until a record is acknowledged. A bad line
    ends the command with exit code 1, after the lines before it are written.
    """
    from kgctl.client.net.connector import Connector
    from kgctl.client.producer.producer import Producer
    from kgctl.render import note

    chosen = settings(ctx)
    read = _reader(json, key_separator, null_marker)
    headers = _headers(header or [])
    connection = chosen.connection()
    connector = Connector(connection)
    options = _producer_settings(compression, acks, idempotence, batch_size, linger_ms, connection.timeout)
    producer = Producer(connector, topic, options)
    try:
        producer.open(connection.timeout)
        if producer.has_created_topic:
            note(created_note(topic, producer.partition_count))
        producer.check_partition(partition)
        try:
            _send_all(producer, read, headers, partition, json)
        finally:
            _show_summary(summary(producer), chosen.output)
    finally:
        producer.close()
        connector.close()


def created_note(topic: str, partition_count: int) -> str:
    """Kafka's console producer warns as well, in a line of its log."""
    partitions = "1 partition" if partition_count == 1 else f"{partition_count} partitions"
    return f"Topic {topic!r} did not exist; the broker created it with {partitions}."


def summary(producer: Producer) -> Produced:
    """The records that were acknowledged so far, or with acks=0 sent."""
    from kgctl.model.records import Produced, ProducedPartition

    rows = tuple(
        ProducedPartition(where.partition, one.records, one.first_offset, one.last_offset)
        for where, one in sorted(producer.tally.partitions.items())
    )
    return Produced(
        producer.topic, producer.tally.records, producer.tally.payload_bytes, producer.is_acknowledged, rows
    )


def _send_all(producer: Producer, read: LineReader, headers: Headers, partition: int | None, json: bool) -> None:
    from kgctl.commands.input_lines import BadLine, LineSplitter
    from kgctl.commands.interruption import Interrupted, Interruption

    splitter = LineSplitter(_MAX_LINE_BYTES)
    with Interruption() as interruption:
        source = _Stdin(interruption)
        try:
            while (piece := source.read(producer)) is not None:
                for number, line in splitter.feed(piece) if piece else splitter.finish():
                    if json and not line.strip():
                        continue
                    record = _complete(read(line, number), headers, partition)
                    _check_partition(record, producer)
                    while not producer.send(record):
                        producer.poll(1.0, watch=[interruption.fileno])
                        if interruption.requested:
                            raise Interrupted
        except BadLine:
            producer.flush()
            raise
        except Interrupted:
            pass
        producer.flush()
        # Ctrl-C ends typed input as Ctrl-D does; any other input may be incomplete.
        if interruption.signal is not None and not source.is_terminal:
            raise typer.Exit(128 + interruption.signal)


def _check_partition(record: OutgoingRecord, producer: Producer) -> None:
    from kgctl.client.net.errors import missing_partition
    from kgctl.commands.input_lines import BadLine

    count = producer.partition_count
    if record.partition is not None and record.partition >= count:
        raise BadLine(record.number, str(missing_partition(producer.topic, record.partition, count)))


def _complete(record: OutgoingRecord, headers: Headers, partition: int | None) -> OutgoingRecord:
    if not headers and partition is None:
        return record
    own = partition if record.partition is None else record.partition
    return replace(record, headers=headers + record.headers, partition=own)


class _Stdin:
    """Reads stdin without blocking the producer."""

    def __init__(self, interruption: Interruption) -> None:
        from kgctl.client.net.errors import KgctlError
        from kgctl.render import note

        self._interruption = interruption
        self._ended = False
        if sys.stdin is None:
            raise KgctlError("cannot read the records: standard input is closed")
        try:
            self._fileno: int | None = sys.stdin.fileno()
        except (OSError, ValueError):  # an in-memory stream
            self._fileno = None
        self.is_terminal = self._fileno is not None and os.isatty(self._fileno)
        if self.is_terminal:
            note("Type one record per line; end with Ctrl-D.")

    def read(self, producer: Producer) -> bytes | None:
        """The next bytes; b"" at the end, then None. Raises Interrupted after a signal."""
        from kgctl.commands.interruption import Interrupted

        if self._ended:
            return None
        if self._fileno is None:
            producer.poll(0)
            piece = sys.stdin.buffer.read(_PIECE_BYTES)
        else:
            watch = [self._fileno, self._interruption.fileno]
            ready: set[int] = set()
            while not ready:
                ready = producer.poll(_UNBOUNDED_SECONDS, watch=watch)
            if self._interruption.requested:
                raise Interrupted
            piece = os.read(self._fileno, _PIECE_BYTES)
        self._ended = not piece
        return piece


def _show_summary(produced: Produced, output: str) -> None:
    from kgctl.render import TABLES, note, show

    note(produced.sentence())
    if output not in TABLES:
        show([produced], output, kind="produced")


def _reader(json: bool, key_separator: str | None, null_marker: str | None) -> LineReader:
    from kgctl.commands.escapes import unescape
    from kgctl.commands.input_lines import read_json, read_values

    if json:
        only_one({"--json": json, "--key-separator": key_separator is not None})
        only_one({"--json": json, "--null-marker": null_marker is not None})
        return read_json
    separator = None if key_separator is None else unescape(key_separator, "--key-separator")
    if separator == b"":
        raise typer.BadParameter("the separator must not be empty.", param_hint="'--key-separator'")
    return read_values(separator, None if null_marker is None else unescape(null_marker, "--null-marker"))


def _headers(texts: list[str]) -> Headers:
    headers = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint="'--header'")
        headers.append((name, value.encode("utf-8", "surrogateescape")))
    return tuple(headers)


def _producer_settings(
    compression: Compression, acks: Acks, idempotence: bool, batch_size: int, linger_ms: int, timeout: float
) -> ProducerSettings:
    from broker.protocol.compression import Codec
    from kgctl.client.producer.producer import ProducerSettings
    from kgctl.client.producer.sender import ALL, SenderSettings

    number = ALL if acks is Acks.ALL else int(acks.value)
    timeout_ms = int(timeout * 1000)
    sender = SenderSettings(
        acks=number,
        idempotent=idempotence and number == ALL,
        request_timeout_ms=max(1, timeout_ms // 2),
        delivery_timeout_ms=timeout_ms,
        record_noun="line",
    )
    codec = Codec[compression.name]
    return ProducerSettings(codec=codec, batch_bytes=batch_size, linger_ms=linger_ms, sender=sender)
