"""`kgctl produce`: records from stdin to a topic."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import typer

from broker.light_dataclasses import replace
from kgctl.commands.records import produce_options as options
from kgctl.commands.records.producer_settings import producer_settings, transaction_settings
from kgctl.commands.shared.arguments import only_one
from kgctl.commands.shared.effects import changes
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import Settings, settings

if TYPE_CHECKING:
    from kgctl.client.admin.open_topic import OpenedTopic
    from kgctl.client.net.connector import ConnectionSettings
    from kgctl.client.producer.counting import CountingProducer
    from kgctl.client.producer.records import Headers, OutgoingRecord
    from kgctl.commands.records.encoding import RecordEncoding
    from kgctl.commands.records.input_lines import LineReader
    from kgctl.commands.records.line_transactions import LineTransactions
    from kgctl.model.records import Produced


EPILOG = examples(
    "kgctl produce orders < lines.txt",
    "kgctl produce users --key-separator '\\t' --null-marker NULL < users.tsv",
    "kgctl consume orders --from-end --json | kgctl produce copy --json",
    "kgctl produce orders --schema-registry http://localhost:8081 < orders.jsonl",
    "kgctl produce t --transactional-id id --transaction-records 100 < lines.txt",
)


@changes(names="topic")
def produce(
    ctx: typer.Context,
    topic: options.Topic,
    json: options.Json = False,
    key_separator: options.KeySeparator = None,
    null_marker: options.NullMarker = None,
    header: options.Header = None,
    partition: options.Partition = None,
    partitioner: options.Partitioner = "default",
    compression: options.CompressionKind = options.Compression.NONE,
    acks: options.AcksNeeded = options.Acks.ALL,
    idempotence: options.Idempotence = True,
    batch_size: options.BatchSize = 65_536,
    linger_ms: options.LingerMs = 5,
    transactional_id: options.TransactionalId = None,
    transaction_records: options.TransactionRecords = None,
    transaction_seconds: options.TransactionSeconds = None,
    transaction_timeout: options.TransactionTimeout = None,
    schema_registry: options.SchemaRegistryUrl = None,
    value_format: options.ValueFormat = None,
    key_format: options.KeyFormat = None,
    value_schema: options.ValueSchema = None,
    key_schema: options.KeySchema = None,
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

    With --schema-registry, values are JSON that is encoded with a schema: of --value-schema, else the newest one of the
    subject TOPIC-value. Keys stay text unless --key-format or --key-schema is given. Avro takes the JSON encoding of its
    specification, Protobuf proto3 JSON of the first message in the file; JSON Schema checks the JSON. Schemas are never
    registered. What does not fit is a bad line. With --json, bytes in "value_base64" are written as they are.

    With --transactional-id, read_committed readers see all records of a transaction or none. A bad line, an error or
    Ctrl-C aborts the open transaction; then stderr says which lines are committed, and at which line to continue. An
    older producer with the same id is fenced. The input must end before --transaction-timeout, unless
    --transaction-records or --transaction-seconds divides it.
    """
    from kgctl.client.producer.counting import CountingProducer
    from kgctl.client.producer.partitioners import load_partitioner
    from kgctl.commands.records.encoding import encoding_of
    from kgctl.commands.records.produce_run import Lines, send_in_transactions, send_lines
    from kgctl.commands.shared.interruption import Interruption
    from kgctl.commands.shared.own_modules import allow_own_modules
    from kgctl.render import note

    chosen = settings(ctx)
    encoding = encoding_of(ctx, schema_registry, topic, (value_format, value_schema), (key_format, key_schema))
    read = _reader(json, key_separator, null_marker, encoding)
    headers = _headers(header or [])
    transaction = transaction_settings(
        transactional_id, transaction_records, transaction_seconds, transaction_timeout, acks, idempotence
    )
    if encoding is None and partition is None and not (json or headers or null_marker or transactional_id):
        keyed = key_separator is not None
        words = ["--property", "parse.key=true", "--property", f"key.separator={key_separator}"] if keyed else []
        chosen.explain_as("kafka-console-producer.sh", "--topic", topic, *words, config_option="--producer.config")
    connection = chosen.connection()
    delivery = producer_settings(compression, acks, idempotence, batch_size, linger_ms, connection, transaction)
    allow_own_modules([partitioner])
    choose = load_partitioner(partitioner)
    opened = _open_topic(connection, topic, partition)
    if opened.was_created:
        note(f"{opened.creation()}.")

    def record_of(line: bytes, number: int) -> OutgoingRecord | None:
        return None if json and not line.strip() else _complete(read(line, number), headers, partition)

    interruption = Interruption()
    with CountingProducer(connection, delivery, partitioner=choose, waits=interruption.may_interrupt) as producer:
        lines = Lines(topic, opened.partition_count, record_of, interruption)
        transactions = None
        if transaction is not None:
            from kgctl.commands.records.line_transactions import LineTransactions

            producer.producer.init_transactions(connection.timeout)
            transactions = LineTransactions(
                producer, transaction, connection.timeout, records=transaction_records, seconds=transaction_seconds
            )
        try:
            if transactions is None:
                send_lines(producer, lines)
            else:
                send_in_transactions(producer, lines, transactions)
        finally:
            _show_summary(summary(topic, producer, transactions), transactions, chosen)


def _open_topic(connection: ConnectionSettings, topic: str, partition: int | None) -> OpenedTopic:
    from kgctl.client.admin.open_topic import open_topic
    from kgctl.client.net.connector import Connector
    from kgctl.client.net.errors import missing_partition

    with Connector(connection) as connector:
        opened = connector.run(open_topic(connector.cluster, topic))
    if partition is not None and partition >= opened.partition_count:
        raise missing_partition(topic, partition, opened.partition_count)
    return opened


def summary(topic: str, producer: CountingProducer, transactions: LineTransactions | None) -> Produced:
    """The records that were acknowledged so far, with acks=0 sent, in transactions committed."""
    from kgctl.model.records import Produced, ProducedPartition

    rows = tuple(
        ProducedPartition(where.partition, one.records, one.first_offset, one.last_offset)
        for where, one in sorted(producer.tally.partitions.items())
    )
    return Produced(
        topic,
        producer.tally.records,
        producer.tally.payload_bytes,
        producer.is_acknowledged,
        rows,
        None if transactions is None else transactions.row(),
    )


def _complete(record: OutgoingRecord, headers: Headers, partition: int | None) -> OutgoingRecord:
    if not headers and partition is None:
        return record
    own = partition if record.partition is None else record.partition
    return replace(record, headers=headers + record.headers, partition=own)


def _show_summary(produced: Produced, transactions: LineTransactions | None, chosen: Settings) -> None:
    from kgctl.render import TABLES, note

    note(produced.sentence())
    for sentence in transactions.sentences() if transactions is not None else ():
        note(sentence)
    if chosen.output not in TABLES:
        chosen.show([produced], kind="produced")


def _reader(
    json: bool, key_separator: str | None, null_marker: str | None, encoding: RecordEncoding | None
) -> LineReader:
    read = _plain_reader(json, key_separator, null_marker, encoding)
    if encoding is None:
        return read
    return lambda line, number: encoding.encoded(read(line, number), number, is_marked=json)


def _plain_reader(
    json: bool, key_separator: str | None, null_marker: str | None, encoding: RecordEncoding | None
) -> LineReader:
    from kgctl.commands.records.input_lines import read_json, read_values
    from kgctl.commands.shared.escapes import unescape

    if json:
        only_one({"--json": json, "--key-separator": key_separator is not None})
        only_one({"--json": json, "--null-marker": null_marker is not None})
        return partial(read_json, as_json=encoding.fields if encoding is not None else ())
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
