"""The run of `kgctl produce`: reads lines from stdin and sends them, while the producer receives answers."""

from __future__ import annotations

import os
import selectors
import sys
from collections.abc import Callable
from typing import TypeAlias

import typer

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import KgctlError, missing_partition
from kgctl.client.producer.counting import CountingProducer
from kgctl.client.producer.records import OutgoingRecord
from kgctl.commands.records.input_lines import BadLine, LineSplitter
from kgctl.commands.records.line_transactions import LineTransactions
from kgctl.commands.shared.interruption import Interrupted, Interruption
from kgctl.render import note

_PIECE_BYTES = 65_536
# The broker decides what is too large for a topic; this bounds the memory of kgctl.
_MAX_LINE_BYTES = 33_554_432

# The record of a line and its number; None for a line to ignore.
Reader: TypeAlias = Callable[[bytes, int], OutgoingRecord | None]


@dataclass(frozen=True, slots=True)
class Lines:
    """How lines become records of a topic. `partition_count` is that of the topic."""

    topic: str
    partition_count: int
    read: Reader
    interruption: Interruption


def send_lines(producer: CountingProducer, lines: Lines) -> None:
    """Send all lines. What was read before a bad line or a signal is sent; Ctrl-C ends typed input as Ctrl-D does."""
    with lines.interruption as interruption:
        source = _Stdin(interruption)
        try:
            _send_each(producer, lines, source, None)
        except BadLine:
            producer.flush()
            raise
        except Interrupted:
            pass
        producer.flush()
        # Any other input may be incomplete.
        if interruption.signal is not None and not source.is_terminal:
            raise typer.Exit(128 + interruption.signal)


def send_in_transactions(producer: CountingProducer, lines: Lines, transactions: LineTransactions) -> None:
    """Send all lines in transactions. A bad line, an error or a signal aborts the open one."""
    with lines.interruption as interruption, transactions.aborting():
        try:
            _send_each(producer, lines, _Stdin(interruption), transactions)
        except Interrupted:
            assert interruption.signal is not None
            raise typer.Exit(128 + interruption.signal) from None
        transactions.finish()


def _send_each(producer: CountingProducer, lines: Lines, source: _Stdin, transactions: LineTransactions | None) -> None:
    splitter = LineSplitter(_MAX_LINE_BYTES)
    while not source.has_ended:
        if not source.wait(producer, transactions.seconds_left() if transactions else None):
            assert transactions is not None
            transactions.commit_due()
            continue
        piece = source.read()
        for number, line in splitter.feed(piece) if piece else splitter.finish():
            record = lines.read(line, number)
            if record is None:
                continue
            if record.partition is not None and record.partition >= lines.partition_count:
                raise BadLine(number, str(missing_partition(lines.topic, record.partition, lines.partition_count)))
            if transactions is not None:
                transactions.add(number)
            producer.send(lines.topic, record)
            if transactions is not None:
                transactions.commit_due()
                _check_signal(lines.interruption)


def _check_signal(interruption: Interruption) -> None:
    if interruption.requested:
        raise Interrupted


class _Stdin:
    """Reads stdin, and notices a signal or a failure of the producer while there is nothing to read."""

    def __init__(self, interruption: Interruption) -> None:
        self._interruption = interruption
        self.has_ended = False
        if sys.stdin is None:
            raise KgctlError("cannot read the records: standard input is closed")
        try:
            self._fileno: int | None = sys.stdin.fileno()
        except (OSError, ValueError):  # an in-memory stream
            self._fileno = None
        self.is_terminal = self._fileno is not None and os.isatty(self._fileno)
        if self.is_terminal:
            note("Type one record per line; end with Ctrl-D.")

    def wait(self, producer: CountingProducer, timeout: float | None) -> bool:
        """Whether there is something to read within `timeout` seconds. Raises Interrupted after a signal."""
        if self._fileno is None:
            return True
        with selectors.DefaultSelector() as selector:
            for watched in (self._interruption.fileno, producer.fileno):
                selector.register(watched, selectors.EVENT_READ)
            is_file = False
            try:
                selector.register(self._fileno, selectors.EVENT_READ)
            except PermissionError:  # it is always readable
                is_file = True
            is_ready = bool(selector.select(0 if is_file else timeout)) or is_file
        _check_signal(self._interruption)
        producer.check()
        return is_ready

    def read(self) -> bytes:
        """The next bytes; b"" at the end."""
        if self._fileno is None:
            piece = sys.stdin.buffer.read(_PIECE_BYTES)
        else:
            piece = os.read(self._fileno, _PIECE_BYTES)
        self.has_ended = not piece
        return piece
