"""`kgctl bench produce`: how fast a cluster takes records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.commands.bench.options import (
    DEFAULT_BATCH_BYTES,
    DEFAULT_WARM_UP_S,
    BatchSize,
    Existing,
    Keep,
    LingerMs,
    Partitions,
    RecordBytes,
    Replicas,
    Seconds,
    TopicName,
    WarmUp,
    needs,
)
from kgctl.commands.records.produce_options import Acks, Compression
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings

if TYPE_CHECKING:
    from kgctl.commands.bench.sending import Load, Sent
    from kgctl.model.bench import BenchRecords

DEFAULT_RECORDS = 100_000
EPILOG = examples(
    "kgctl bench produce",
    "kgctl bench produce --records 1000000 --compression lz4 --partitions 6",
    "kgctl bench produce --rate 500 --duration 60 --acks 1 -o json",
    "kgctl bench produce --transaction-records 1000",
)


@shows("bench-records")
@changes(names="topic")
def produce(
    ctx: typer.Context,
    records: Annotated[
        int | None,
        typer.Option(
            "--records", min=1, metavar="N", help="Send N records. [default: 100000; with --duration no limit]"
        ),
    ] = None,
    size: RecordBytes = 1024,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, metavar="N", help="Send N records a second. [default: as many as possible]"),
    ] = None,
    duration: Seconds = None,
    warm_up: WarmUp = DEFAULT_WARM_UP_S,
    compression: Annotated[
        Compression,
        typer.Option("--compression", metavar="|".join(codec.value for codec in Compression), help="How to compress."),
    ] = Compression.NONE,
    acks: Annotated[
        Acks,
        typer.Option(
            "--acks", metavar="|".join(acks.value for acks in Acks), help="Who must store a record: see above."
        ),
    ] = Acks.ALL,
    batch_size: BatchSize = DEFAULT_BATCH_BYTES,
    linger_ms: LingerMs = 5,
    transaction_records: Annotated[
        int | None,
        typer.Option("--transaction-records", min=1, metavar="N", help="Write in transactions of N records."),
    ] = None,
    partitions: Partitions = 1,
    replicas: Replicas = None,
    topic: TopicName = None,
    existing: Existing = False,
    keep: Keep = False,
) -> None:
    """Measure how fast a cluster takes records.

    Writes to a topic of its own, kgctl-bench-TIME-ID, and removes it at the end. A topic that --topic names is created if
    it does not exist, and kept; --existing allows one that exists.

    Values are random letters. --acks: the replicas that must store a record before it is acknowledged: all, the leader
    (1), none (0).

    Shows the records that were acknowledged, in transactions committed, megabytes (10^6 bytes) of values per second, the
    CPU seconds of this process per million records, and percentiles of the time from the sending of a record until its
    acknowledgement. Without --rate they include the wait in the buffer, and one record of 64 is timed. What is sent during
    the warm-up stays in a topic that is kept, and counts nowhere: a broker on the JVM is slow for seconds after its start.

    After Ctrl-C the command shows what was measured until then, and the exit code is 130.
    """
    from kgctl.commands.bench.bench_topic import BenchTopic, bench_topic, fresh_name
    from kgctl.commands.bench.run import measuring
    from kgctl.commands.bench.sending import Load, Sending, options_for

    needs("--existing", existing, "--topic", topic)
    if transaction_records is not None and acks is not Acks.ALL:
        raise typer.BadParameter("transactions need acks=all.", param_hint="'--acks'")
    chosen = settings(ctx)
    load = Load(_count(records, duration), size, rate, duration, transaction_records)
    options = options_for(
        size,
        compression_type=compression.value,
        acks=acks.value,
        batch_size=batch_size,
        linger_ms=linger_ms,
    )
    if transaction_records is not None:
        options["transactional_id"] = fresh_name()
    connection = chosen.connection()
    wanted = BenchTopic(topic, existing, keep, partitions, replicas)
    with measuring(chosen) as run, bench_topic(connection, wanted, run.note) as name:
        count = run.partition_count(connection, name)
        sending = Sending(connection, options, run.interruption, run.show)
        sent = sending.run(name, load, warm_up)
        run.row = _row(name, count, load, sent, compression, acks, is_complete=not run.interruption.requested)


def _count(records: int | None, duration: float | None) -> int | None:
    return DEFAULT_RECORDS if records is None and duration is None else records


def _row(
    topic: str,
    partitions: int,
    load: Load,
    sent: Sent,
    compression: Compression,
    acks: Acks,
    *,
    is_complete: bool,
) -> BenchRecords:
    from kgctl.commands.bench.run import records_row

    return records_row(
        topic,
        "produce",
        partitions,
        sent,
        sent.records * load.record_bytes,
        record_bytes=load.record_bytes,
        compression=compression.value,
        acks=acks.value,
        transactions=None if load.per_transaction is None else sent.transactions,
        is_complete=is_complete,
    )
