"""`kgctl produce`: records from stdin to a topic."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.commands.shared.arguments import not_empty, only_one
from kgctl.commands.shared.effects import changes
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import Settings, settings

if TYPE_CHECKING:
    from kgctl.client.admin.open_topic import OpenedTopic
    from kgctl.client.net.connector import ConnectionSettings
    from kgctl.client.producer.core.states import TransactionSettings
    from kgctl.client.producer.counting import CountingProducer
    from kgctl.client.producer.records import Headers, OutgoingRecord
    from kgctl.client.producer.shared_face import ProducerSettings
    from kgctl.commands.records.input_lines import LineReader
    from kgctl.commands.records.line_transactions import LineTransactions
    from kgctl.model.records import Produced


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

EPILOG = examples(
    "kgctl produce orders < lines.txt",
    "kgctl produce users --key-separator '\\t' --null-marker NULL < users.tsv",
    "kgctl consume orders --from-end --json | kgctl produce copy --json",
    "kgctl produce t --transactional-id id --transaction-records 100 < lines.txt",
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
            help="Write all records to this partition. [default: as --partitioner]",
        ),
    ] = None,
    partitioner: Annotated[
        str,
        typer.Option(
            "--partitioner",
            metavar="NAME|MODULE:NAME",
            help="default (by key, as Kafka's Java client), sticky, round-robin, or a function of a Python module.",
        ),
    ] = "default",
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
    transactional_id: Annotated[
        str | None,
        typer.Option(
            "--transactional-id",
            metavar="ID",
            callback=not_empty,
            help="Write in transactions, as the only producer with this id. [default: no transactions]",
        ),
    ] = None,
    transaction_records: Annotated[
        int | None,
        typer.Option(
            "--transaction-records",
            min=1,
            metavar="N",
            help="Commit every N records. [default: all in one transaction]",
        ),
    ] = None,
    transaction_seconds: Annotated[
        float | None,
        typer.Option("--transaction-seconds", min=0.001, metavar="S", help="Commit S seconds after the first record."),
    ] = None,
    transaction_timeout: Annotated[
        float | None,
        typer.Option(
            "--transaction-timeout",
            min=0.001,
            max=_MOST_TIMEOUT_SECONDS,
            metavar="SECONDS",
            help="How long a transaction may be open before the broker aborts it. [default: 60]",
        ),
    ] = None,
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

    With --transactional-id, read_committed readers see all records of a transaction or none. A bad line, an error or
    Ctrl-C aborts the open transaction; then stderr says which lines are committed, and at which line to continue. An
    older producer with the same id is fenced. The input must end before --transaction-timeout, unless
    --transaction-records or --transaction-seconds divides it.
    """
    from kgctl.client.producer.counting import CountingProducer
    from kgctl.client.producer.partitioners import load_partitioner
    from kgctl.commands.records.produce_run import Lines, send_in_transactions, send_lines
    from kgctl.commands.shared.interruption import Interruption
    from kgctl.commands.shared.own_modules import allow_own_modules
    from kgctl.render import note

    chosen = settings(ctx)
    read = _reader(json, key_separator, null_marker)
    headers = _headers(header or [])
    transaction = _transaction(
        transactional_id, transaction_records, transaction_seconds, transaction_timeout, acks, idempotence
    )
    connection = chosen.connection()
    options = _producer_settings(compression, acks, idempotence, batch_size, linger_ms, connection, transaction)
    allow_own_modules([partitioner])
    choose = load_partitioner(partitioner)
    opened = _open_topic(connection, topic, partition)
    if opened.was_created:
        note(created_note(topic, opened.partition_count))

    def record_of(line: bytes, number: int) -> OutgoingRecord | None:
        return None if json and not line.strip() else _complete(read(line, number), headers, partition)

    interruption = Interruption()
    with CountingProducer(connection, options, partitioner=choose, waits=interruption.may_interrupt) as producer:
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


def created_note(topic: str, partition_count: int) -> str:
    """Kafka's console producer warns as well, in a line of its log."""
    partitions = "1 partition" if partition_count == 1 else f"{partition_count} partitions"
    return f"Topic {topic!r} did not exist; the broker created it with {partitions}."


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


def _reader(json: bool, key_separator: str | None, null_marker: str | None) -> LineReader:
    from kgctl.commands.records.input_lines import read_json, read_values
    from kgctl.commands.shared.escapes import unescape

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


def _transaction(
    transactional_id: str | None,
    records: int | None,
    seconds: float | None,
    timeout: float | None,
    acks: Acks,
    idempotence: bool,
) -> TransactionSettings | None:
    from kgctl.client.producer.core.states import TransactionSettings

    only_one({"--transaction-records": records, "--transaction-seconds": seconds})
    if transactional_id is None:
        given = {"--transaction-records": records, "--transaction-seconds": seconds, "--transaction-timeout": timeout}
        for option, value in given.items():
            if value is not None:
                raise typer.BadParameter("needs --transactional-id.", param_hint=f"'{option}'")
        return None
    for option, is_right in {"--acks": acks is Acks.ALL, "--no-idempotence": idempotence}.items():
        if not is_right:
            raise typer.BadParameter("transactions need acks=all and idempotence.", param_hint=f"'{option}'")
    settings = TransactionSettings(transactional_id)
    if timeout is not None:
        settings = TransactionSettings(transactional_id, round(timeout * 1000))
    if seconds is not None and seconds * 1000 >= settings.timeout_ms:
        limit = f"{settings.timeout_ms / 1000:g} s of --transaction-timeout"
        raise typer.BadParameter(f"must be below the {limit}.", param_hint="'--transaction-seconds'")
    return settings


def _producer_settings(
    compression: Compression,
    acks: Acks,
    idempotence: bool,
    batch_size: int,
    linger_ms: int,
    connection: ConnectionSettings,
    transaction: TransactionSettings | None,
) -> ProducerSettings:
    from broker.protocol.compression import Codec
    from kgctl.client.network.settings import NetworkSettings
    from kgctl.client.producer.core.accumulator import AccumulatorSettings
    from kgctl.client.producer.core.client import CoreSettings
    from kgctl.client.producer.core.sender import ALL, SenderSettings
    from kgctl.client.producer.shared_face import ProducerSettings

    number = ALL if acks is Acks.ALL else int(acks.value)
    is_idempotent = idempotence and number == ALL
    timeout_ms = int(connection.timeout * 1000)
    request_timeout_ms = max(1, timeout_ms // 2)
    accumulator = AccumulatorSettings(batch_size, linger_ms, Codec[compression.name], delivery_timeout_ms=timeout_ms)
    sender = SenderSettings(
        acks=number,
        request_timeout_ms=request_timeout_ms,
        delivery_timeout_ms=timeout_ms,
        keeps_order=not is_idempotent and number != 0,
        record_noun="line",
    )
    core = CoreSettings(is_idempotent=is_idempotent, accumulator=accumulator, sender=sender, transaction=transaction)
    network = NetworkSettings(
        client_id=connection.client_id,
        request_timeout_ms=request_timeout_ms,
        max_in_flight_requests_per_connection=5,
        read_only=connection.read_only,
    )
    return ProducerSettings(core, network, max_block_ms=timeout_ms)
