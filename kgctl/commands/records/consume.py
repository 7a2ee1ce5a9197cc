"""`kgctl consume`: prints records of topics to stdout."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import dataclass, replace
from kgctl.commands.shared.arguments import not_empty, only_one
from kgctl.commands.shared.effects import changes
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.options import parse_seconds
from kgctl.commands.shared.patterns import matching, parse_pattern
from kgctl.commands.shared.settings import settings

if TYPE_CHECKING:
    from kgctl.client.consumer.fetched import ReadBatch
    from kgctl.client.consumer.settings import ConsumerSettings
    from kgctl.client.net.connector import Connector
    from kgctl.commands.records.record_output import RecordOutput
    from kgctl.commands.records.topic_reader import TopicReader
    from kgctl.commands.shared.interruption import Interruption
    from kgctl.render.records import RecordFormat

_UNBOUNDED_SECONDS = 86_400.0
_METADATA_AGE_MS = 30_000


class Decode(StrEnum):
    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    EVENTS = "events"


class Isolation(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


EPILOG = examples(
    "kgctl consume orders --from-beginning --until-end",
    "kgctl consume orders --partition 0 --offset -10 --max-messages 10 --json",
    "kgctl consume orders --group billing --print-key --print-offset",
    r"kgctl consume --include 'orders-.*' --format '%t %p %o %k %s\n'",
    "kgctl consume --decode offsets --from-beginning --until-end",
    "kgctl consume --decode transactions --from-beginning --until-end --json",
)


@changes(names="group", when="group")
def consume(
    ctx: typer.Context,
    topics: Annotated[list[str] | None, typer.Argument(metavar="TOPIC...", show_default=False)] = None,
    include: Annotated[
        str | None,
        typer.Option("--include", metavar="REGEX", help="Read topics whose whole name matches; no internal ones."),
    ] = None,
    decode: Annotated[
        Decode | None,
        typer.Option(
            "--decode",
            metavar="|".join(kind.value for kind in Decode),
            help="Read an internal topic: committed offsets and groups, transactions, or events of groups.",
        ),
    ] = None,
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="Start at the oldest record.")] = False,
    from_end: Annotated[bool, typer.Option("--from-end", help="Start after the newest record. [default]")] = False,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", min=0, metavar="N", help="Read only this partition; repeatable.")
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option(
            "--offset",
            metavar="N",
            help="Start at this offset of --partition; a negative one counts back from the end.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="GROUP",
            callback=not_empty,
            help="Join this group, which assigns the partitions, and commit offsets.",
        ),
    ] = None,
    session_timeout: Annotated[
        float,
        typer.Option(
            "--session-timeout", min=0.1, metavar="SECONDS", help="How long after a crash the group evicts this member."
        ),
    ] = 45.0,
    max_messages: Annotated[
        int | None, typer.Option("--max-messages", min=1, metavar="N", help="Stop after N records.")
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop where the logs ended when reading started.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            parser=parse_seconds,
            metavar="SECONDS",
            help="Time limit for the next record, even if the cluster does not answer. [default: none]",
        ),
    ] = None,
    isolation: Annotated[
        Isolation,
        typer.Option(
            "--isolation",
            "--isolation-level",
            metavar="|".join(level.value for level in Isolation),
            help="read_committed leaves out records of open and aborted transactions.",
        ),
    ] = Isolation.READ_UNCOMMITTED,
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help=r"Print records so, as kcat does: '%t %p %o %k %s\n'."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON Lines, as `kgctl produce --json` reads them.")
    ] = False,
    print_timestamp: Annotated[bool, typer.Option("--print-timestamp", help="Print the timestamp.")] = False,
    print_partition: Annotated[bool, typer.Option("--print-partition", help="Print the partition.")] = False,
    print_offset: Annotated[bool, typer.Option("--print-offset", help="Print the offset.")] = False,
    print_headers: Annotated[bool, typer.Option("--print-headers", help="Print the headers.")] = False,
    print_key: Annotated[
        bool, typer.Option("--print-key", help="Print the key. These five fields precede the value, in this order.")
    ] = False,
    separator: Annotated[
        str, typer.Option("--separator", "--key-separator", metavar="TEXT", help="Text between fields.")
    ] = r"\t",
    record_separator: Annotated[
        str, typer.Option("--record-separator", metavar="TEXT", help="Text after each record.")
    ] = r"\n",
    null_marker: Annotated[str, typer.Option("--null-marker", metavar="TEXT", help="Text for null.")] = "null",
) -> None:
    """Print records of topics to stdout.

    Prints values as lines, or whole records as JSON Lines (--json or -o json). Nothing else goes to stdout.

    Runs until Ctrl-C, unless --max-messages, --until-end or --timeout stops it.

    --format: %t topic, %p partition, %o offset, %k key, %s value, %h headers, %T timestamp, %K and %S lengths of key and
    value (-1 for null), %% a percent sign; \\n, \\t, \\xHH. Nothing is added between records. Topics are never created. Topics
    that match --include are those that exist at the start.

    With --group, the offsets of printed records are committed every second, before a rebalance and at the end. Reading
    continues at the committed offsets; --from-beginning or --from-end decides where there are none.

    JSON keys: topic, partition, offset, timestamp, timestamp_type, key, value, headers. A key or value that is not
    UTF-8 is in key_base64 or value_base64.

    When --timeout ends the command, the exit code is 3 if --max-messages or --until-end was not reached, or without
    them if no record arrived; it is 7 if the cluster could not be reached at the start. Leaving a group may then take
    as long again, at most 5 seconds. --timeout has the same meaning before and after the word consume.

    Without --timeout, the command waits 30 seconds for the first answer, and 60 seconds for a broker that goes away
    later. After Ctrl-C or a closed pipe the exit code is 0.
    """
    from kgctl.client.net.connector import Connector
    from kgctl.commands.records.record_output import RecordOutput
    from kgctl.commands.records.record_shape import shape_of
    from kgctl.commands.records.topic_reader import TopicReader
    from kgctl.commands.shared.interruption import Interruption
    from kgctl.render import note
    from kgctl.render.records import LineOptions

    chosen = settings(ctx)
    if chosen.output not in ("table", "wide", "json", "jsonl"):
        raise typer.BadParameter("records are printed as lines or as JSON Lines.", param_hint="'--output'")
    _check(from_beginning, from_end, partition, offset, group)
    _check_topics(ctx, topics, include, decode)
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
    shape = shape_of(line_options, json or chosen.output in ("json", "jsonl"), format_, decode)
    began = time.monotonic()
    if timeout is None and chosen.is_timeout_given:
        timeout = chosen.timeout
    connection = chosen.connection()
    opening = connection.timeout if timeout is None else timeout
    connector = Connector(replace(connection, timeout=opening))
    options = _consumer_settings(connection.client_id, from_beginning, offset, group, session_timeout, isolation)
    reader = TopicReader(connector, options, until_end, note)
    interruption = Interruption()
    run = _Run(reader, RecordOutput(interruption), interruption, shape, max_messages, until_end, timeout, began)
    try:
        wanted = _topics(connector, topics, include, decode, opening)
        if group is None:
            reader.assign(wanted, opening, partition, offset)
        else:
            reader.subscribe(wanted, opening)
        run.until_done()
    finally:
        connector.close()


@dataclass(slots=True)
class _Run:
    """One run: what stops it, and its progress."""

    reader: TopicReader
    output: RecordOutput
    interruption: Interruption
    shape: RecordFormat
    max_messages: int | None
    until_end: bool
    timeout: float | None
    began: float
    printed: int = 0

    def until_done(self) -> None:
        from kgctl.client.net.errors import AuthenticationFailed, TimedOut
        from kgctl.commands.shared.interruption import Interrupted

        timed_out: TimedOut | None = None
        with self.interruption:
            try:
                self._print_all()
            except (Interrupted, BrokenPipeError):
                pass
            except TimedOut as error:
                timed_out = error
            except AuthenticationFailed:
                # Leaving the group would take more attempts with the same credentials, which may lock the user out.
                raise
            except BaseException:
                self._close_quietly()
                raise
            self.reader.close(self._close_seconds())
        if timed_out is not None:
            self._check_reached(timed_out)

    def _print_all(self) -> None:
        from kgctl.client.net.errors import TimedOut

        last = self.began
        while not self._is_complete():
            wait_seconds = _UNBOUNDED_SECONDS if self.timeout is None else last + self.timeout - time.monotonic()
            if wait_seconds <= 0:
                raise TimedOut(f"no record arrived for {self.timeout:g} s")
            for one in self.reader.poll(wait_seconds, self._check):
                for batch in one.batches():
                    before = self.printed
                    self._print(batch)
                    last = time.monotonic() if self.printed > before else last
                    if self.printed == self.max_messages or self.interruption.requested:
                        return

    def _check(self) -> None:
        """End a wait: after a signal, or once the reader of the pipe has gone."""
        with self.interruption.may_interrupt():
            self.output.check_reader()

    def _print(self, batch: ReadBatch) -> None:
        room = len(batch.records) if self.max_messages is None else self.max_messages - self.printed
        records = batch.records[:room]
        if records:
            text = self.shape(batch.partition, records, batch.has_log_append_time)
            self.output.write(text, self.reader.commit_if_due)
        self.printed += len(records)
        whole = len(records) == len(batch.records)
        self.reader.mark_used(batch.partition, batch.next_offset if whole else records[-1].offset + 1)

    def _is_complete(self) -> bool:
        return self.reader.at_end or (self.max_messages is not None and self.printed >= self.max_messages)

    def _check_reached(self, timed_out: Exception) -> None:
        """Raise the time-out unless the run printed what it was asked for."""
        if self.max_messages is not None:
            timed_out.args = (f"{timed_out}; {self.printed} of {self.max_messages} messages were printed",)
        elif not self.until_end and self.printed:
            return
        raise timed_out

    def _close_seconds(self) -> float:
        """How long to try to commit and to leave the group: an unresponsive cluster must not double a short timeout."""
        from kgctl.commands.records.topic_reader import CLOSE_SECONDS

        return CLOSE_SECONDS if self.timeout is None else min(CLOSE_SECONDS, max(1.0, self.timeout))

    def _close_quietly(self) -> None:
        from kgctl.client.net.errors import KgctlError
        from kgctl.render import note

        try:
            self.reader.close(self._close_seconds())
        except KgctlError as error:
            note(f"Error: {error}")


def _text(text: str, option: str) -> bytes:
    from kgctl.commands.shared.escapes import unescape

    return unescape(text, option)


def _check_topics(ctx: typer.Context, topics: list[str] | None, include: str | None, decode: Decode | None) -> None:
    only_one({"TOPIC": topics, "--include": include, "--decode": decode})
    if not topics and include is None and decode is None:
        ctx.fail("Name topics, or give --include REGEX or --decode KIND.")
    if include is not None:
        parse_pattern(include, "--include")


def _topics(
    connector: Connector, topics: list[str] | None, include: str | None, decode: Decode | None, seconds: float
) -> list[str]:
    from kgctl.client.admin.topics import list_topics
    from kgctl.client.net.errors import NotFound

    if decode is not None:
        from kgctl.render.internal_records import TOPICS

        return [TOPICS[decode.value]]
    if include is None:
        return topics or []
    rows = connector.run(list_topics(connector.cluster), seconds)
    found = matching([row.topic for row in rows if not row.internal], parse_pattern(include, "--include"))
    if not found:
        raise NotFound(f"No topic matches {include!r}.")
    return found


def _check(
    from_beginning: bool, from_end: bool, partition: list[int] | None, offset: int | None, group: str | None
) -> None:
    at_offset = offset is not None
    only_one({"--from-beginning": from_beginning, "--from-end": from_end, "--offset": at_offset})
    if offset is not None and not partition:
        raise typer.BadParameter("needs --partition, because offsets count per partition.", param_hint="'--offset'")
    if group is not None and partition:
        raise typer.BadParameter(
            "cannot be combined with --group, which assigns the partitions.", param_hint="'--partition'"
        )


def _consumer_settings(
    client_id: str,
    from_beginning: bool,
    offset: int | None,
    group: str | None,
    session_timeout: float,
    isolation: Isolation,
) -> ConsumerSettings:
    from kgctl.client.consumer.fetching.options import FetchOptions
    from kgctl.client.consumer.group.settings import GroupSettings
    from kgctl.client.consumer.reset_strategy import EARLIEST, LATEST, NONE
    from kgctl.client.consumer.settings import ConsumerSettings
    from kgctl.client.network.settings import NetworkSettings

    membership = None
    if group is not None:
        session_timeout_ms = int(session_timeout * 1000)
        membership = GroupSettings(
            group,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=max(1, min(3000, session_timeout_ms // 3)),
            auto_commit=False,
        )
    reset = EARLIEST if from_beginning else LATEST
    return ConsumerSettings(
        network=NetworkSettings(
            client_id=client_id, metadata_max_age_ms=_METADATA_AGE_MS, allow_auto_create_topics=False
        ),
        fetch=FetchOptions(committed_only=isolation is Isolation.READ_COMMITTED, metadata_max_age_ms=_METADATA_AGE_MS),
        group=membership,
        reset=reset if offset is None else NONE,
        assignors=("range", "roundrobin"),
    )
