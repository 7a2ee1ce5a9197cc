"""`kgctl consume`: prints records of topics to stdout."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import typer

from broker.light_dataclasses import replace
from kgctl.commands.records import consume_options as options
from kgctl.commands.records.membership import DEFAULT_ASSIGNORS, GroupOptions
from kgctl.commands.records.source import Source, source_of
from kgctl.commands.shared.arguments import only_one
from kgctl.commands.shared.effects import changes
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings

if TYPE_CHECKING:
    from kgctl.client.consumer.settings import ConsumerSettings

EPILOG = examples(
    "kgctl consume orders --from-beginning --until-end",
    "kgctl consume orders:0 --offset -10 --max-messages 10 --json",
    "kgctl consume orders --group billing --print-key --print-offset",
    "kgctl consume orders:0-2 payments:1 --group billing --commit sync",
    r"kgctl consume --include 'orders-.*' --format '%t %p %o %k %s\n'",
    "kgctl consume --include 'orders-.*' --group audit --notices",
    "kgctl consume orders --schema-registry http://localhost:8081 --json",
    "kgctl consume --decode offsets --from-beginning --until-end",
    "kgctl consume --decode transactions --from-beginning --until-end --json",
)


@changes(names="group", when="group")
def consume(
    ctx: typer.Context,
    topics: options.Words = None,
    include: options.Include = None,
    decode: options.DecodeKind = None,
    from_beginning: options.FromBeginning = False,
    from_end: options.FromEnd = False,
    partition: options.Partition = None,
    offset: options.Offset = None,
    metadata_max_age: options.MetadataMaxAge = 30.0,
    group: options.GroupId = None,
    commit: options.Commit = None,
    commit_interval: options.CommitInterval = None,
    delivery: options.DeliveryKind = None,
    group_protocol: options.Protocol = None,
    session_timeout: options.SessionTimeout = None,
    group_instance_id: options.InstanceId = None,
    assignor: options.Assignors = None,
    notices: options.Notices = False,
    schema_registry: options.SchemaRegistryUrl = None,
    value_format: options.ValueFormat = None,
    key_format: options.KeyFormat = None,
    on_undecodable: options.WhenUndecodable = None,
    max_messages: options.MaxMessages = None,
    until_end: options.UntilEnd = False,
    timeout: options.Timeout = None,
    isolation: options.IsolationLevel = options.Isolation.READ_UNCOMMITTED,
    format_: options.FormatText = None,
    json: options.Json = False,
    print_timestamp: options.PrintTimestamp = False,
    print_partition: options.PrintPartition = False,
    print_offset: options.PrintOffset = False,
    print_headers: options.PrintHeaders = False,
    print_key: options.PrintKey = False,
    separator: options.Separator = r"\t",
    record_separator: options.RecordSeparator = r"\n",
    null_marker: options.NullMarker = "null",
) -> None:
    """Print records of topics to stdout.

    Prints values as lines, or whole records as JSON Lines (--json or -o json). Nothing else goes to stdout.

    Runs until Ctrl-C, unless --max-messages, --until-end or --timeout stops it.

    Name topics, or partitions as TOPIC:0, TOPIC:0-3 or TOPIC:0,2. --include also reads topics that are created while the
    command runs. Topics are never created.

    --format: %t topic, %p partition, %o offset, %k key, %s value, %h headers, %T timestamp, %K and %S lengths of key and
    value (-1 for null), %% a percent sign; \\n, \\t, \\xHH. Nothing is added between records.

    With --group, the command commits the offsets of printed records every second, before a rebalance and at the end.
    Reading continues at the committed offsets; --from-beginning or --from-end decides where there are none. With
    TOPIC:PARTITION, the command does not join the group, and a group with active members refuses its commits.

    A crash repeats the records since the last commit: up to those of an interval, or of one batch with --commit sync
    (at most about 500). With --delivery at-most-once, the command commits each batch before it prints it: a crash may
    lose the batch, but no record is printed twice. With --commit none, the next run starts at the same place.

    With --schema-registry, bytes that name a schema (a zero byte and its id in front, or a GUID in a header) become JSON:
    Avro in the JSON encoding of its specification, Protobuf in proto3 JSON, JSON Schema as it is. At a record that cannot
    be decoded the command ends with exit code 1, after the records before it; it names partition and offset. User, token
    and TLS files of the registry are settings of the context: schema.registry.basic.auth.user.info,
    schema.registry.bearer.auth.token, schema.registry.ssl.ca.location.

    JSON keys: topic, partition, offset, timestamp, timestamp_type, key, value, headers. A key or value that is not
    UTF-8 is in key_base64 or value_base64.

    When --timeout ends the command, the exit code is 3 if --max-messages or --until-end was not reached, or without
    them if no record arrived; it is 7 if the cluster could not be reached at the start. Leaving a group may then take
    as long again, at most 5 seconds. --timeout has the same meaning before and after the word consume.

    Without --timeout, the command waits 30 seconds for the first answer, and 60 seconds for a broker that goes away
    later. After Ctrl-C or a closed pipe the exit code is 0.
    """
    from kgctl.client.net.connector import Connector
    from kgctl.commands.records.consume_run import Run
    from kgctl.commands.records.decoding import decoding_of
    from kgctl.commands.records.record_output import RecordOutput
    from kgctl.commands.records.record_shape import shape_of
    from kgctl.commands.records.topic_reader import TopicReader
    from kgctl.commands.shared.interruption import Interruption
    from kgctl.render import note
    from kgctl.render.records import LineOptions

    chosen = settings(ctx)
    if chosen.output not in ("table", "wide", "json", "jsonl"):
        raise typer.BadParameter("records are printed as lines or as JSON Lines.", param_hint="'--output'")
    source = source_of(ctx, topics, include, decode, partition)
    _check_start(from_beginning, from_end, offset, source)
    of_group = GroupOptions(
        group,
        protocol=group_protocol,
        session_timeout=session_timeout,
        instance_id=group_instance_id,
        assignors=tuple(assignor or ()),
        commit=commit,
        commit_interval=commit_interval,
        delivery=delivery,
        notices=notices,
    )
    of_group.check(source, has_numbers=bool(partition))
    line_options = LineOptions(
        timestamp=print_timestamp,
        partition=print_partition,
        offset=print_offset,
        headers=print_headers,
        key=print_key,
        separator=_text(separator, "--separator"),
        record_separator=_text(record_separator, "--record-separator"),
        null=_text(null_marker, "--null-marker"),
    )
    only_one({"--decode": decode, "--schema-registry": schema_registry})
    decoding = decoding_of(ctx, schema_registry, key_format, value_format, on_undecodable)
    shape = shape_of(line_options, json or chosen.output in ("json", "jsonl"), format_, decode)
    is_plain = line_options == LineOptions() and chosen.output == "table"
    if is_plain and not (json or format_ or decode or schema_registry or offset or source.partitions):
        several = include or "|".join(map(re.escape, source.topics))
        words = ["--include", several] if include or len(source.topics) > 1 else ["--topic", *source.topics]
        words += ["--from-beginning"] * from_beginning + (["--group", group] if group else [])
        words += [] if max_messages is None else ["--max-messages", str(max_messages)]
        words += ["--isolation-level", isolation.value] * (isolation is not options.Isolation.READ_UNCOMMITTED)
        chosen.explain_as("kafka-console-consumer.sh", *words, config_option="--consumer.config")
    began = time.monotonic()
    if timeout is None and chosen.is_timeout_given:
        timeout = chosen.timeout
    connection = chosen.connection()
    opening = connection.timeout if timeout is None else timeout
    connector = Connector(replace(connection, timeout=opening))
    consumer = _consumer_settings(
        connection.client_id, from_beginning, offset, of_group, isolation, round(metadata_max_age * 1000)
    )
    policy = of_group.policy()
    reader = TopicReader(
        connector, consumer, source, policy, until_end=until_end, notice=note, has_rebalance_notices=notices
    )
    interruption = Interruption()
    run = Run(
        reader,
        RecordOutput(interruption),
        interruption,
        shape,
        policy,
        decoding,
        max_messages,
        until_end,
        timeout,
        began,
    )
    try:
        reader.begin(opening, offset)
        run.until_done()
    finally:
        reader.end()
        connector.close()


def _text(text: str, option: str) -> bytes:
    from kgctl.commands.shared.escapes import unescape

    return unescape(text, option)


def _check_start(from_beginning: bool, from_end: bool, offset: int | None, source: Source) -> None:
    at_offset = offset is not None
    only_one({"--from-beginning": from_beginning, "--from-end": from_end, "--offset": at_offset})
    if offset is not None and source.partitions is None:
        raise typer.BadParameter(
            "needs --partition or TOPIC:PARTITION, because offsets count per partition.", param_hint="'--offset'"
        )


def _consumer_settings(
    client_id: str,
    from_beginning: bool,
    offset: int | None,
    group: GroupOptions,
    isolation: options.Isolation,
    metadata_max_age_ms: int,
) -> ConsumerSettings:
    from kgctl.client.consumer.fetching.options import FetchOptions
    from kgctl.client.consumer.reset_strategy import EARLIEST, LATEST, NONE
    from kgctl.client.consumer.settings import ConsumerSettings
    from kgctl.client.network.settings import NetworkSettings
    from kgctl.commands.shared.own_modules import allow_own_modules

    if group.is_classic:
        allow_own_modules(group.assignors)
    reset = EARLIEST if from_beginning else LATEST
    return ConsumerSettings(
        network=NetworkSettings(
            client_id=client_id, metadata_max_age_ms=metadata_max_age_ms, allow_auto_create_topics=False
        ),
        fetch=FetchOptions(
            committed_only=isolation is options.Isolation.READ_COMMITTED, metadata_max_age_ms=metadata_max_age_ms
        ),
        group=group.settings(),
        reset=reset if offset is None else NONE,
        assignors=(group.is_classic and group.assignors) or DEFAULT_ASSIGNORS,
    )
