"""Groups the input lines of `kgctl produce` into transactions, and knows which lines are committed."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kgctl.client.net.errors import KgctlError
from kgctl.client.producer.core.errors import OutcomeUnknown, TransactionFailed
from kgctl.model.records import ProducedTransactions

if TYPE_CHECKING:
    from kgctl.client.producer.core.states import TransactionSettings
    from kgctl.client.producer.counting import CountingProducer

COMMITTED, ABORTED, TIMES_OUT, UNKNOWN = "committed", "aborted", "times out", "unknown"


class LineTransactions:
    """Call `add` before each line is sent, `commit_due` after it and while no line arrives, `finish` at the end.

    A transaction begins with its first line. It ends after `records` lines or `seconds`; with neither, at the end of the
    input. In a `with` block of `aborting`, an error or an interruption aborts the open one.
    """

    def __init__(
        self,
        producer: CountingProducer,
        settings: TransactionSettings,
        timeout: float,
        *,
        records: int | None = None,
        seconds: float | None = None,
    ) -> None:
        self._producer, self._settings, self._timeout = producer, settings, timeout
        self._records, self._seconds = records, seconds
        self._count = 0
        self._began = 0.0
        self._first_line = self._last_line = 0
        self._committed = 0
        self._committed_line: int | None = None
        self._outcome = COMMITTED
        self._is_cut_short = False

    def add(self, line: int) -> None:
        """The next record, from this line, is part of the transaction."""
        if not self._count:
            self._producer.begin_transaction()
            self._began, self._first_line = time.monotonic(), line
        self._count += 1
        self._last_line = line

    def seconds_left(self) -> float | None:
        """How long to wait for more lines, at most; None without a limit."""
        if self._seconds is None or not self._count:
            return None
        return max(0.0, self._began + self._seconds - time.monotonic())

    def commit_due(self) -> None:
        is_full = self._records is not None and self._count >= self._records
        if is_full or self.seconds_left() == 0.0:
            self.finish()

    def finish(self) -> None:
        """Commit the open transaction, if there is one."""
        if not self._count:
            return
        self._producer.commit_transaction(self._timeout)
        self._count, self._committed, self._committed_line = 0, self._committed + 1, self._last_line

    @contextmanager
    def aborting(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._is_cut_short = True
            if self._count:
                self._outcome = self._abort(error)
            raise

    def _abort(self, error: BaseException) -> str:
        if isinstance(error, OutcomeUnknown):
            return UNKNOWN
        if isinstance(error, TransactionFailed) and error.is_fatal:
            return ABORTED
        try:
            self._producer.abort_transaction(self._timeout)
        except TransactionFailed:
            return ABORTED
        except KgctlError:
            return TIMES_OUT
        return ABORTED

    def row(self) -> ProducedTransactions:
        return ProducedTransactions(
            self._settings.transactional_id,
            self._committed,
            self._committed_line,
            self._outcome,
            self._first_line if self._count else None,
            self._last_line if self._count else None,
        )

    def sentences(self) -> list[str]:
        """After an error or an interruption: which lines are committed, and where to continue."""
        if not self._is_cut_short:
            return []
        last = self._committed_line
        before = f"Lines up to {last} are committed." if last else "No line is committed."
        if not self._count:
            return [before, _continue_at((last or 0) + 1)]
        lines = _lines(self._first_line, self._last_line)
        if self._outcome == UNKNOWN:
            command = f"kgctl transactions describe {shlex.quote(self._settings.transactional_id)}"
            return [
                f"{before} Whether {lines} are committed is unknown.",
                f"If `{command}` says PrepareCommit or CompleteCommit, continue at line {self._last_line + 1}.",
                f"Otherwise, nothing of them is committed: continue at line {self._first_line}.",
            ]
        if self._outcome == TIMES_OUT:
            seconds = f"{self._settings.timeout_ms / 1000:g} s"
            return [
                f"{before} The transaction of {lines} could not be aborted.",
                f"The broker aborts it {seconds} after its start; read_committed readers wait until then.",
                _continue_at(self._first_line),
            ]
        return [f"{before} The transaction of {lines} was aborted.", _continue_at(self._first_line)]


def _continue_at(line: int) -> str:
    return f"Continue at line {line}: tail -n +{line} FILE | kgctl produce ..."


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"
