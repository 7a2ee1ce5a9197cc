"""`kgctl consume`: records of topics to stdout."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.commands.arguments import not_empty, only_one
from kgctl.commands.settings import parse_seconds, settings

if TYPE_CHECKING:
    from kgctl.client.consumer.consumer import Consumer, ConsumerSettings
    from kgctl.client.consumer.fetched import ReadBatch
    from kgctl.commands.interruption import Interruption
    from kgctl.commands.record_output import RecordOutput
    from kgctl.render.records import RecordFormat

_FOR_EVER_SECONDS = 86_400.0


class Isolation(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


def consume(
    ctx: typer.Context,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", show_default=False)],
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="Begin with the oldest record.")] = False,
    from_end: Annotated[
        bool, typer.Option("--from-end", help="Begin behind the newest record. This is the default.")
    ] = False,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", min=0, metavar="N", help="Read only this one; repeatable.")
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option("--offset", metavar="N", help="Begin at this offset of --partition; -N: N before the end."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            callback=not_empty,
            help="Read as a member of this group, which shares out the partitions, and commit.",
        ),
    ] = None,
    session_timeout: Annotated[
        float,
        typer.Option(
            "--session-timeout", min=0.1, metavar="SECONDS", help="How long the group waits for us if we die."
        ),
    ] = 45.0,
    max_messages: Annotated[
        int | None, typer.Option("--max-messages", min=1, metavar="N", help="End after N records.")
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="End where the logs ended when reading began.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            parser=parse_seconds,
            metavar="SECONDS",
            help="End when no record has come for so long, be it that the cluster does not answer. [default: wait]",
        ),
    ] = None,
    isolation: Annotated[
        Isolation, typer.Option("--isolation-level", help="Whether to wait for the end of transactions.")
    ] = Isolation.READ_UNCOMMITTED,
    json: Annotated[bool, typer.Option("--json", help="JSON lines, as `kgctl produce --json` reads them.")] = False,
    print_timestamp: Annotated[bool, typer.Option("--print-timestamp")] = False,
    print_partition: Annotated[bool, typer.Option("--print-partition")] = False,
    print_offset: Annotated[bool, typer.Option("--print-offset")] = False,
    print_headers: Annotated[bool, typer.Option("--print-headers")] = False,
    print_key: Annotated[
        bool, typer.Option("--print-key", help="These five go before the value, in this order.")
    ] = False,
    separator: Annotated[
        str, typer.Option("--separator", "--key-separator", metavar="TEXT", help="Between them and the value.")
    ] = r"\t",
    record_separator: Annotated[
        str, typer.Option("--record-separator", metavar="TEXT", help="Behind each record.")
    ] = r"\n",
    null_marker: Annotated[str, typer.Option("--null-marker", metavar="TEXT", help="What stands for null.")] = "null",
) -> None:
    """Read records of topics to stdout.

    Prints values as lines, or whole records as JSON lines (--json or -o json). Nothing else goes to stdout.

    Reads on until Ctrl-C, unless --max-messages, --until-end or --timeout ends it.

    With --group, what was printed is committed: at least every second, in a rebalance and at the end; reading goes on
    where the group stopped, and --from-beginning or --from-end say where it begins without a commit.

    JSON keys: topic, partition, offset, timestamp, timestamp_type, key, value, headers; a key or value that is not
    UTF-8 is in base64 under key_base64 or value_base64.

    --timeout, which means the same before and after the word consume, ends it with exit code 3 if --max-messages or
    --until-end was not reached, or without them if no record came at all; with 7 if the cluster could not be reached
    to begin with. A group is left after that, for which a silent cluster gets as long again, at most 5 seconds.

    Without --timeout, an answer to begin with is waited for 30 seconds, and a broker that goes away later for 60.
    Ctrl-C and a closed pipe end it with exit code 0.
    """
    from kgctl.client.consumer.consumer import Consumer
    from kgctl.client.net.connector import Connector
    from kgctl.commands.interruption import Interruption
    from kgctl.commands.record_output import RecordOutput
    from kgctl.render import note
    from kgctl.render.records import LineOptions, as_json_lines, as_lines

    chosen = settings(ctx)
    if chosen.output in ("yaml", "csv"):
        raise typer.BadParameter("records are printed as lines or as JSON lines.", param_hint="'--output'")
    _check(from_beginning, from_end, partition, offset, group)
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
    shape = as_json_lines if json or chosen.output == "json" else as_lines(line_options)
    began = time.monotonic()
    if timeout is None and chosen.is_timeout_given:
        timeout = chosen.timeout
    opening = chosen.timeout if timeout is None else timeout
    connector = Connector(replace(chosen.connection(), timeout=opening))
    options = _consumer_settings(from_beginning, offset, group, session_timeout, until_end, isolation)
    consumer = Consumer(connector, options, note)
    interruption = Interruption()
    run = _Run(consumer, RecordOutput(interruption), interruption, shape, max_messages, until_end, timeout, began)
    try:
        if group is None:
            consumer.assign(topics, opening, partition, offset)
        else:
            consumer.subscribe(topics, opening)
        run.until_done()
    finally:
        connector.close()


@dataclass(slots=True)
class _Run:
    """One run: what ends it, and how far it has come."""

    consumer: Consumer
    output: RecordOutput
    interruption: Interruption
    shape: RecordFormat
    max_messages: int | None
    until_end: bool
    timeout: float | None
    began: float
    printed: int = 0

    def until_done(self) -> None:
        from kgctl.client.net.errors import TimedOut
        from kgctl.commands.interruption import Interrupted

        timed_out: TimedOut | None = None
        with self.interruption:
            try:
                self._print_all()
            except (Interrupted, BrokenPipeError):
                pass
            except TimedOut as error:
                timed_out = error
            except BaseException:
                self._close_quietly()
                raise
            self.consumer.close(self._closing())
        if timed_out is not None:
            self._judge(timed_out)

    def _print_all(self) -> None:
        from kgctl.client.net.errors import TimedOut

        last = self.began
        while not self._is_complete():
            patience = _FOR_EVER_SECONDS if self.timeout is None else last + self.timeout - time.monotonic()
            if patience <= 0:
                raise TimedOut(f"no record has come for {self.timeout:g} s")
            with self.interruption.may_interrupt():
                fetched = self.consumer.poll(patience, broken=self.output.broken_fileno)
            for one in fetched:
                for batch in one.batches():
                    before = self.printed
                    self._print(batch)
                    last = time.monotonic() if self.printed > before else last
                    if self.printed == self.max_messages or self.interruption.requested:
                        return

    def _print(self, batch: ReadBatch) -> None:
        room = len(batch.records) if self.max_messages is None else self.max_messages - self.printed
        records = batch.records[:room]
        if records:
            text = self.shape(batch.partition, records, batch.has_log_append_time)
            self.output.write(text, self.consumer.stay_alive)
        self.printed += len(records)
        whole = len(records) == len(batch.records)
        self.consumer.used(batch.partition, batch.next_offset if whole else records[-1].offset + 1)

    def _is_complete(self) -> bool:
        return self.consumer.at_end or (self.max_messages is not None and self.printed >= self.max_messages)

    def _judge(self, timed_out: Exception) -> None:
        """Whether enough had come when the time was up."""
        if self.max_messages is not None:
            timed_out.args = (f"{timed_out}; {self.printed} of {self.max_messages} messages were printed",)
        elif not self.until_end and self.printed:
            return
        raise timed_out

    def _closing(self) -> float:
        """How long to try to commit and to leave the group: a cluster that is silent shall not double a short timeout."""
        from kgctl.client.consumer.consumer import CLOSE_SECONDS

        return CLOSE_SECONDS if self.timeout is None else min(CLOSE_SECONDS, max(1.0, self.timeout))

    def _close_quietly(self) -> None:
        from kgctl.client.net.errors import KgctlError
        from kgctl.render import note

        try:
            self.consumer.close(self._closing())
        except KgctlError as error:
            note(f"Error: {error}")


def _text(text: str, option: str) -> bytes:
    from kgctl.commands.escapes import unescape

    return unescape(text, option)


def _check(
    from_beginning: bool, from_end: bool, partition: list[int] | None, offset: int | None, group: str | None
) -> None:
    at_offset = offset is not None
    only_one({"--from-beginning": from_beginning, "--from-end": from_end, "--offset": at_offset})
    if offset is not None and not partition:
        raise typer.BadParameter("needs --partition: offsets count per partition.", param_hint="'--offset'")
    if group is not None and partition:
        raise typer.BadParameter("the group shares out the partitions.", param_hint="'--partition'")


def _consumer_settings(
    from_beginning: bool,
    offset: int | None,
    group: str | None,
    session_timeout: float,
    until_end: bool,
    isolation: Isolation,
) -> ConsumerSettings:
    from kgctl.client.consumer.consumer import ConsumerSettings
    from kgctl.client.consumer.fetcher import FetchSettings
    from kgctl.client.consumer.membership import GroupSettings
    from kgctl.client.consumer.starting import Reset

    membership = None
    if group is not None:
        session_timeout_ms = int(session_timeout * 1000)
        membership = GroupSettings(group, session_timeout_ms, heartbeat_interval_ms=min(3000, session_timeout_ms // 3))
    reset = Reset.EARLIEST if from_beginning else Reset.LATEST
    return ConsumerSettings(
        fetch=FetchSettings(committed_only=isolation is Isolation.READ_COMMITTED),
        group=membership,
        reset=reset if offset is None else None,
        until_end=until_end,
    )
