"""Until when __consumer_offsets can be read: an open transaction hides its commits, and all that follow in the partition."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.metadata import MetadataRequest
from kgctl.client.admin.admin import Admin
from kgctl.client.admin.offsets import LATEST, found_offsets
from kgctl.client.admin.record_times import record_times
from kgctl.client.admin.transactions import open_transactions
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import BrokerError, KgctlError, from_row
from kgctl.client.net.steps import Steps
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.lookups import CLIENT_ID
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.sources import OFFSETS_TOPIC

# Kafka's transaction.max.timeout.ms. A transaction that is open for longer hangs, and would delay the jobs for ever.
LONGEST_MS = 15 * 60_000
# A coordinator appends a commit a little later than it takes the time of it.
_APPENDED_MS = 1000
# A longer delay is worth a note.
_SHORT_MS = 10_000
# A cluster that does not answer stalls the thread that follows the streams.
_ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class Hidden:
    """What readers of committed records do not get: `since_ms` is the time of the first commit, or earlier, in ms since 1970;
    None if that is not known."""

    by: str
    since_ms: int | None


def hidden(cluster: Cluster, now_ms: int) -> Steps[list[Hidden]]:
    """The commits in open transactions, and those that they hide. Empty if no group has committed. Raises KgctlError."""
    (row,) = (yield from cluster.metadata([OFFSETS_TOPIC])).topics
    if row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return []
    if row.error_code:
        raise BrokerError(row.error_code, OFFSETS_TOPIC, asked=Asked(MetadataRequest, topic=OFFSETS_TOPIC))
    found = yield from _in_log(cluster, [TopicPartition(OFFSETS_TOPIC, one.partition_index) for one in row.partitions])
    if any(cluster.range_of(node.endpoint, DescribeGroupDetailsRequest.API_KEY) for node in cluster.nodes.values()):
        found += yield from _pending(cluster, now_ms)
    return found


def _in_log(cluster: Cluster, partitions: Sequence[TopicPartition]) -> Steps[list[Hidden]]:
    """Behind the last stable offset of a partition."""
    wanted = dict.fromkeys(partitions, LATEST)
    # The ends first: what begins or ends meanwhile is not behind them, or can be read.
    ends = yield from found_offsets(cluster, wanted)
    stable = yield from found_offsets(cluster, wanted, committed_only=True)
    behind = [(*one, stable[one]) for one in wanted if stable[one] < ends[one]]
    times = (yield from record_times(cluster, behind)) if behind else {}
    return [Hidden(f"partition {topic}-{number}, offset {offset}", ms) for (topic, number, offset), ms in times.items()]


def _pending(cluster: Cluster, now_ms: int) -> Steps[list[Hidden]]:
    """kgctl's broker appends the commits of a transaction at its end, with the times at which they were made."""
    rows, _, errors = yield from open_transactions(cluster, now_ms, sys.maxsize)
    error = from_row(errors[0]) if errors else None
    if error is not None and error.retriable:
        raise error
    unknown = [] if error is None else [Hidden(f"the cluster does not describe all transactional ids ({error})", None)]
    return unknown + [
        Hidden(f"transactional id {row.transactional_id!r}", row.started_ms)
        for row in rows
        if any(one.topic == OFFSETS_TOPIC for one in row.partitions)
    ]


def complete_until(found: Iterable[Hidden], now_ms: int) -> int:
    """The time before which nothing is hidden, ms since 1970. What hangs does not count."""
    since = [one.since_ms for one in found if one.since_ms is not None and not hangs(one, now_ms)]
    return min([now_ms, *(ms - _APPENDED_MS for ms in since)])


def hangs(one: Hidden, now_ms: int) -> bool:
    """Whether it is not worth waiting for."""
    return one.since_ms is None or one.since_ms < now_ms - LONGEST_MS


class Readable:
    """Asks the cluster of a run until when readers get everything. For one thread."""

    def __init__(self, run: RunContext, admin: Admin) -> None:
        self._run, self._admin = run, admin
        self._due, self._is_failing = 0.0, False
        # (when it was asked, the answer)
        self._answers: deque[tuple[int, int]] = deque(maxlen=10_000)
        self._noted: set[tuple[Hidden, bool]] = set()

    def ask(self) -> int:
        """Who reads to the end from now on gets every commit of before this time, ms since 1970. Raises KgctlError."""
        now_ms = _now_ms()
        found = self._admin.run(hidden(self._admin.cluster, now_ms))
        self._note(found, now_ms)
        until_ms = complete_until(found, now_ms)
        self._answers.append((_now_ms(), until_ms))
        return until_ms

    def poll(self, every_s: float) -> None:
        """Ask again if it is time to. What fails is asked again: until then, nothing more is known to be complete."""
        if time.monotonic() < self._due:
            return
        try:
            self.ask()
            self._is_failing = False
        except KgctlError as error:
            if not self._is_failing:
                text = f"the jobs wait, because the open transactions of {OFFSETS_TOPIC} are not known: {error}"
                self._run.emit(Progress("note", text))
            self._is_failing = True
        self._due = time.monotonic() + every_s

    def until(self, checked_ms: int) -> int | None:
        """The newest answer that holds for a stream that looked for new records at `checked_ms`; None if there is none."""
        return max((until_ms for asked_ms, until_ms in self._answers if asked_ms <= checked_ms), default=None)

    def _note(self, found: Iterable[Hidden], now_ms: int) -> None:
        for one in found:
            key = one, hangs(one, now_ms)
            if key in self._noted or (one.since_ms is not None and one.since_ms > now_ms - _SHORT_MS):
                continue
            self._noted.add(key)
            self._run.emit(Progress("note", _text(one, now_ms)))


def _text(one: Hidden, now_ms: int) -> str:
    if one.since_ms is None:
        return f"{one.by}: it is not known since when a transaction is open; the results may lack commits"
    since = datetime.fromtimestamp(one.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    if hangs(one, now_ms):
        return (
            f"{one.by}: a transaction is open since {since} UTC, too long to wait for it; the results lack its commits, see "
            f"kgctl transactions find-hanging --topic {OFFSETS_TOPIC}"
        )
    return f"{one.by}: a transaction is open since {since} UTC; the results end there until the transaction ends"


@contextmanager
def readable(run: RunContext) -> Iterator[Readable]:
    with Admin(run.settings.connection(CLIENT_ID, _ANSWER_S)) as admin:
        yield Readable(run, admin)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
