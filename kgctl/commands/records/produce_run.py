"""The run of `kgctl produce`: reads lines from stdin and sends them, while the producer receives answers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TypeAlias

import typer

from kgctl.client.net.errors import KgctlError, missing_partition
from kgctl.client.producer.producer import Producer
from kgctl.client.producer.records import OutgoingRecord
from kgctl.commands.records.input_lines import BadLine, LineSplitter
from kgctl.commands.records.line_transactions import LineTransactions
from kgctl.commands.shared.interruption import Interrupted, Interruption
from kgctl.render import note

_PIECE_BYTES = 65_536
_UNBOUNDED_SECONDS = 86_400.0
# The broker decides what is too large for a topic; this bounds the memory of kgctl.
_MAX_LINE_BYTES = 33_554_432

# The record of a line and its number; None for a line to ignore.
Reader: TypeAlias = Callable[[bytes, int], OutgoingRecord | None]


def send_lines(producer: Producer, read: Reader) -> None:
    """Send all lines. What was read before a bad line or a signal is sent; Ctrl-C ends typed input as Ctrl-D does."""
    with Interruption() as interruption:
        source = _Stdin(interruption)
        try:
            _send_each(producer, read, source, interruption, None)
        except BadLine:
            producer.flush()
            raise
        except Interrupted:
            pass
        producer.flush()
        # Any other input may be incomplete.
        if interruption.signal is not None and not source.is_terminal:
            raise typer.Exit(128 + interruption.signal)


def send_in_transactions(producer: Producer, read: Reader, transactions: LineTransactions) -> None:
    """Send all lines in transactions. A bad line, an error or a signal aborts the open one."""
    with Interruption() as interruption, transactions.aborting():
        try:
            _send_each(producer, read, _Stdin(interruption), interruption, transactions)
        except Interrupted:
            assert interruption.signal is not None
            raise typer.Exit(128 + interruption.signal) from None
        transactions.finish()


def _send_each(
    producer: Producer,
    read: Reader,
    source: _Stdin,
    interruption: Interruption,
    transactions: LineTransactions | None,
) -> None:
    splitter = LineSplitter(_MAX_LINE_BYTES)
    while not source.has_ended:
        if not source.wait(producer, transactions.seconds_left() if transactions else None):
            assert transactions is not None
            transactions.commit_due()
            continue
        piece = source.read()
        for number, line in splitter.feed(piece) if piece else splitter.finish():
            record = read(line, number)
            if record is None:
                continue
            _check_partition(record, producer)
            if transactions is not None:
                transactions.add(number)
            while not producer.send(record):
                producer.poll(1.0, watch=[interruption.fileno])
                _check_signal(interruption)
            if transactions is not None:
                transactions.commit_due()
                _check_signal(interruption)


def _check_signal(interruption: Interruption) -> None:
    if interruption.requested:
        raise Interrupted


def _check_partition(record: OutgoingRecord, producer: Producer) -> None:
    count = producer.partition_count
    if record.partition is not None and record.partition >= count:
        raise BadLine(record.number, str(missing_partition(producer.topic, record.partition, count)))


class _Stdin:
    """Reads stdin without blocking the producer."""

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

    def wait(self, producer: Producer, timeout: float | None) -> bool:
        """Whether there is something to read within `timeout` seconds. Raises Interrupted after a signal."""
        if self._fileno is None:
            producer.poll(0)
            return True
        watch = [self._fileno, self._interruption.fileno]
        deadline = time.monotonic() + (_UNBOUNDED_SECONDS if timeout is None else timeout)
        ready: set[int] = set()
        while not ready:
            left = deadline - time.monotonic()
            if left <= 0 and timeout is not None:
                return False
            ready = producer.poll(max(0.0, left), watch=watch)
        _check_signal(self._interruption)
        return True

    def read(self) -> bytes:
        """The next bytes; b"" at the end."""
        if self._fileno is None:
            piece = sys.stdin.buffer.read(_PIECE_BYTES)
        else:
            piece = os.read(self._fileno, _PIECE_BYTES)
        self.has_ended = not piece
        return piece
