"""The run of `kgctl consume`: prints what arrives, commits before or after it, and stops where it was asked to."""

from __future__ import annotations

import time
from collections.abc import Iterator

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import Record
from kgctl.client.consumer.fetched import Damaged, Fetched, ReadBatch
from kgctl.client.net.errors import AuthenticationFailed, KgctlError, TimedOut
from kgctl.client.schema_registry.decoder import Undecodable
from kgctl.commands.records.decoding import Decode
from kgctl.commands.records.offset_commits import COMMIT_SECONDS, CommitPolicy, When
from kgctl.commands.records.record_output import RecordOutput
from kgctl.commands.records.topic_reader import CLOSE_SECONDS, TopicReader
from kgctl.commands.shared.interruption import Interrupted, Interruption
from kgctl.render import note
from kgctl.render.records import RecordFormat

_UNBOUNDED_SECONDS = 86_400.0
# As max.poll.records of Kafka's consumer: what a crash may lose or repeat.
_RECORDS_PER_COMMIT = 500


class _Part(NamedTuple):
    """The records of a batch that are wanted; reading continues at `next_offset`, or ends there with the error."""

    batch: ReadBatch
    records: list[Record]
    next_offset: int
    error: Undecodable | None = None


@dataclass(slots=True)
class Run:
    """One run: what stops it, and its progress."""

    reader: TopicReader
    output: RecordOutput
    interruption: Interruption
    shape: RecordFormat
    policy: CommitPolicy
    decode: Decode | None
    max_messages: int | None
    until_end: bool
    timeout: float | None
    began: float
    printed: int = 0

    def until_done(self) -> None:
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
        last = self.began
        while not self._is_complete():
            wait_seconds = _UNBOUNDED_SECONDS if self.timeout is None else last + self.timeout - time.monotonic()
            if wait_seconds <= 0:
                raise TimedOut(f"no record arrived for {self.timeout:g} s")
            for portion in self._portions(self.reader.poll(wait_seconds, self._check)):
                before = self.printed
                if not self._deliver(portion):
                    break
                if portion[-1].error is not None:
                    raise portion[-1].error
                last = time.monotonic() if self.printed > before else last
                if self.printed == self.max_messages or self.interruption.requested:
                    return

    def _check(self) -> None:
        """End a wait: after a signal, or once the reader of the pipe has gone."""
        with self.interruption.may_interrupt():
            self.output.check_reader()

    def _portions(self, arrived: list[Fetched]) -> Iterator[list[_Part]]:
        """What is printed between two commits: single batches, or several if each commit is waited for."""
        enough = _RECORDS_PER_COMMIT if self.policy.waits else 0
        portion: list[_Part] = []
        taken = 0
        try:
            for one in arrived:
                for batch in one.batches():
                    part = self._part(batch, taken)
                    portion.append(part)
                    taken += len(part.records)
                    is_last = self.max_messages is not None and self.printed + taken >= self.max_messages
                    if taken >= enough or is_last or part.error is not None:
                        yield portion
                        if is_last or part.error is not None:
                            return
                        portion, taken = [], 0
        except Damaged:
            if portion:
                yield portion
            raise
        if portion:
            yield portion

    def _part(self, batch: ReadBatch, taken: int) -> _Part:
        room = len(batch.records) if self.max_messages is None else self.max_messages - self.printed - taken
        if self.decode is not None:
            return self._decoded(batch, room, self.decode)
        records = batch.records[:room]
        is_whole = len(records) == len(batch.records)
        return _Part(batch, records, batch.next_offset if is_whole else records[-1].offset + 1)

    @staticmethod
    def _decoded(batch: ReadBatch, room: int, decode: Decode) -> _Part:
        records: list[Record] = []
        for record in batch.records:
            if len(records) == room:
                return _Part(batch, records, record.offset)
            try:
                decoded = decode(batch.partition, record)
            except Undecodable as error:
                return _Part(batch, records, record.offset, error)
            if decoded is not None:
                records.append(decoded)
        return _Part(batch, records, batch.next_offset)

    def _deliver(self, portion: list[_Part]) -> bool:
        """Print and commit, in the order of the policy. False: nothing is printed, and the records arrive again."""
        ends = {part.batch.partition: part.next_offset for part in portion}
        if self.policy.when is When.BEFORE and not self.reader.commit_before(ends, self._commit_seconds(), self._check):
            return False
        for part in portion:
            if part.records:
                text = self.shape(part.batch.partition, part.records, part.batch.has_log_append_time)
                self.output.write(text, self.reader.commit_if_due)
            self.printed += len(part.records)
            self.reader.mark_used(part.batch.partition, part.next_offset)
        if self.policy.when is When.AFTER:
            self.reader.commit_after(ends, self._commit_seconds(), self._check)
        return True

    def _commit_seconds(self) -> float:
        return COMMIT_SECONDS if self.timeout is None else max(1.0, self.timeout)

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
        return CLOSE_SECONDS if self.timeout is None else min(CLOSE_SECONDS, max(1.0, self.timeout))

    def _close_quietly(self) -> None:
        try:
            self.reader.close(self._close_seconds())
        except KgctlError as error:
            note(f"Error: {error}")
