"""`kgctl bench consume`: how fast records of a cluster arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgctl.commands.bench.options import (
    DEFAULT_BATCH_BYTES,
    DEFAULT_WARM_UP_S,
    BatchSize,
    Keep,
    LingerMs,
    Partitions,
    RecordBytes,
    Replicas,
    Seconds,
    TopicName,
    WarmUp,
)
from kgctl.commands.records.consume_options import Isolation
from kgctl.commands.records.produce_options import Compression
from kgctl.commands.shared.arguments import only_one
from kgctl.commands.shared.effects import check_change, decides_itself, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings

if TYPE_CHECKING:
    from kgctl.client.net.connector import ConnectionSettings
    from kgctl.commands.bench.reading import Reading
    from kgctl.commands.bench.run import Run
    from kgctl.commands.bench.sending import Load

DEFAULT_RECORDS = 100_000
STAMP_BYTES = 8
EPILOG = examples(
    "kgctl bench consume",
    "kgctl bench consume --records 1000000 --compression zstd --partitions 6",
    "kgctl bench consume --rate 500 --duration 60",
    "kgctl bench consume --topic orders --isolation read_committed -o json",
)


@shows("bench-records")
@decides_itself
def consume(
    ctx: typer.Context,
    records: Annotated[
        int | None,
        typer.Option(
            "--records", min=1, metavar="N", help="Read N records. [default: 100000; with --topic all that it has]"
        ),
    ] = None,
    size: RecordBytes = 1024,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, metavar="N", help="Send N records a second while reading."),
    ] = None,
    duration: Seconds = None,
    warm_up: WarmUp = DEFAULT_WARM_UP_S,
    compression: Annotated[
        Compression,
        typer.Option("--compression", metavar="|".join(codec.value for codec in Compression), help="How to compress."),
    ] = Compression.NONE,
    batch_size: BatchSize = DEFAULT_BATCH_BYTES,
    linger_ms: LingerMs = 5,
    isolation: Annotated[
        Isolation,
        typer.Option(
            "--isolation",
            metavar="|".join(level.value for level in Isolation),
            help="read_committed leaves out records of open and aborted transactions.",
        ),
    ] = Isolation.READ_UNCOMMITTED,
    partitions: Partitions = 1,
    replicas: Replicas = None,
    topic: TopicName = None,
    keep: Keep = False,
) -> None:
    """Measure how fast records of a cluster arrive.

    Makes a topic, kgctl-bench-TIME-ID, fills it, reads it from its beginning, and removes it. With --topic, it reads a
    topic that exists, from the beginning to where its logs end, and changes nothing.

    With --rate, records are sent while the command reads, and percentiles of the time from the sending of a record until
    the consumer has it are shown; the CPU seconds are then those of the producer and the consumer.

    Shows the records that were received, megabytes (10^6 bytes) of keys and values per second, and the CPU seconds of this
    process per million records. The consumer has no group and commits nothing.

    After Ctrl-C the command shows what was measured until then, and the exit code is 130.
    """
    only_one({"--topic": topic, "--rate": rate})
    only_one({"--topic": topic, "--keep": keep})
    if rate is not None and size < STAMP_BYTES:
        raise typer.BadParameter(f"--rate needs values of at least {STAMP_BYTES} bytes.", param_hint="'--size'")
    if topic is None:
        check_change(ctx, [], "`kgctl bench consume` without --topic")
    from kgctl.commands.bench.bench_topic import BenchTopic, bench_topic, existing_topic
    from kgctl.commands.bench.run import measuring
    from kgctl.commands.bench.sending import Load

    connection = settings(ctx).connection()
    reading = {"isolation_level": isolation.value}
    with measuring(settings(ctx)) as run:
        if topic is not None:
            found = existing_topic(connection, topic)
            _read(run, connection, reading, topic, found.partitions, records, duration, warm_up)
            return
        with bench_topic(connection, BenchTopic(keep=keep, partitions=partitions, replicas=replicas), run.note) as name:
            count = DEFAULT_RECORDS if records is None and (rate is None or duration is None) else records
            load = Load(count, size, rate, None if rate is None else duration, stamped=rate is not None)
            sending = _sending(compression, batch_size, linger_ms, size)
            if rate is None:
                _fill(run, connection, sending, name, load)
                _read(run, connection, reading, name, partitions, count, duration, warm_up, load, compression)
            else:
                _read_along(run, connection, reading, sending, name, partitions, load, warm_up, compression)


def _sending(compression: Compression, batch_size: int, linger_ms: int, size: int) -> dict[str, Any]:
    from kgctl.commands.bench.sending import options_for

    return options_for(size, compression_type=compression.value, batch_size=batch_size, linger_ms=linger_ms)


def _fill(run: Run, connection: ConnectionSettings, options: dict[str, Any], topic: str, load: Load) -> None:
    from kgctl.commands.bench.sending import Sending
    from kgctl.commands.shared.interruption import Interrupted

    Sending(connection, options, run.interruption, run.show).run(topic, load)
    if run.interruption.requested:
        raise Interrupted


def _read(
    run: Run,
    connection: ConnectionSettings,
    options: dict[str, Any],
    topic: str,
    partitions: int,
    records: int | None,
    duration: float | None,
    warm_up: float,
    load: Load | None = None,
    compression: Compression | None = None,
) -> None:
    """Read what the topic has."""
    from kgctl.commands.bench.reading import Reading

    reading = Reading(connection, options, run.interruption, run.show)
    try:
        reading.begin(topic)
        if warm_up:
            reading.warm_up(warm_up)
        reading.run(records, duration, stamped=False, to_end=True)
    finally:
        reading.close()
    _show(run, reading, topic, partitions, load, compression)


def _read_along(
    run: Run,
    connection: ConnectionSettings,
    options: dict[str, Any],
    sending: dict[str, Any],
    topic: str,
    partitions: int,
    load: Load,
    warm_up: float,
    compression: Compression,
) -> None:
    """Read while records are sent."""
    from broker.light_dataclasses import replace
    from kgctl.commands.bench.feeder import Feeder
    from kgctl.commands.bench.reading import Reading

    feeder: Feeder | None = None

    def show(text: str) -> None:
        if feeder is not None:
            feeder.check()
        run.show(text)

    reading = Reading(connection, options, run.interruption, show)
    try:
        if warm_up:
            reading.begin(topic)
            unmeasured = replace(load, records=None, seconds=warm_up)
            with (feeder := Feeder(connection, sending, topic, unmeasured)):
                reading.run(None, warm_up, stamped=True, to_end=False, verb="warming up: received")
        reading.begin(topic, from_end=True)
        with (feeder := Feeder(connection, sending, topic, load)):
            reading.run(load.records, load.seconds, stamped=True, to_end=False)
    finally:
        reading.close()
    _show(run, reading, topic, partitions, load, compression)


def _show(
    run: Run,
    reading: Reading,
    topic: str,
    partitions: int,
    load: Load | None,
    compression: Compression | None,
) -> None:
    from kgctl.commands.bench.run import records_row

    received = reading.received
    run.row = records_row(
        topic,
        "consume",
        partitions,
        received,
        received.payload_bytes,
        record_bytes=None if load is None else load.record_bytes,
        compression=None if compression is None else compression.value,
        acks=None,
        transactions=None,
        is_complete=not run.interruption.requested,
    )
