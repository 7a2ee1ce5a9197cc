"""What there is to read on a cluster: the partitions of a selection, the ends of their logs, offsets by time."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgctl.client.admin.offsets import EARLIEST, LATEST, found_offsets
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound, TimedOut
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source import losses
from kgctl.pipelines.source.option_names import BadOption
from kgctl.pipelines.source.options import AtTimestamp, Selection, Where

T = TypeVar("T")
Offsets = dict[TopicPartition, int]

# Only a cluster that has answered before may be restarting; otherwise the address is more likely wrong.
OUTAGE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Per partition: the log start offset; where a read ends, which is the last stable offset for committed readers; the log end."""

    first: Offsets
    last: Offsets
    log_end: Offsets


@dataclass(frozen=True, slots=True)
class Found:
    """`missing` names selected topics and partitions that do not exist."""

    partitions: tuple[TopicPartition, ...]
    missing: tuple[str, ...] = ()


class LogEnds:
    """Asks one cluster over connections that stay open. For one thread. Raises KgctlError.

    A question that fails is repeated `retries` times; None repeats it for OUTAGE_SECONDS if the cluster has answered before.
    """

    def __init__(
        self,
        connection: ConnectionSettings,
        *,
        committed_only: bool = False,
        retries: int | None = None,
        pause_s: float = 0.5,
    ) -> None:
        self._connector = Connector(connection)
        self._cluster = self._connector.cluster
        self._committed_only = committed_only
        self._retries, self._pause_s = retries, pause_s
        self._has_answered = False

    def __enter__(self) -> LogEnds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connector.close()

    def find(self, selection: Selection) -> Found:
        """The current partitions. A pattern matches whole names and never internal topics."""
        return self._ask(lambda: _find(self._cluster, selection))

    def partitions(self, selection: Selection) -> tuple[TopicPartition, ...]:
        """As `find`, but raises NotFound if a selected topic does not exist or the pattern matches no topic."""
        found = self.find(selection)
        check_found(found, selection)
        return found.partitions

    def bounds(self, partitions: Iterable[TopicPartition]) -> Bounds:
        wanted = list(partitions)
        # The ends first: if the start of a log moves meanwhile it is noticed, and if the log grows nothing is lost.
        last = self.at(dict.fromkeys(wanted, LATEST))
        log_end = self.log_ends(wanted) if self._committed_only else last
        return Bounds(self.at(dict.fromkeys(wanted, EARLIEST)), last, log_end)

    def log_ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The high watermarks, which lie behind open transactions."""
        wanted = dict.fromkeys(partitions, LATEST)
        return self._ask(lambda: found_offsets(self._cluster, wanted)) if wanted else {}

    def not_before(self, reached: Offsets, ends: Offsets) -> Offsets:
        """The ends, but where one lies before `reached` because a transaction is open, `reached`: there is nothing to read yet."""
        early = (
            [one for one, offset in reached.items() if ends.get(one, offset) < offset] if self._committed_only else []
        )
        log_ends = self.log_ends(early)
        return ends | {one: reached[one] for one in early if reached[one] <= log_ends[one]}

    def at(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        """The first offset at or after a time in ms, -1 if there is none; or for EARLIEST and LATEST."""
        if not timestamps:
            return {}
        return self._ask(lambda: found_offsets(self._cluster, timestamps, committed_only=self._committed_only))

    def resolve(self, where: Where, bounds: Bounds, name: str) -> Offsets:
        """Offsets for all partitions of the bounds. `name` is the name of the option, for messages."""
        if isinstance(where, int):
            return dict(bounds.first if where == EARLIEST else bounds.last)
        if isinstance(where, AtTimestamp):
            return self._by_time(where, bounds, name)
        _check_partitions(where, bounds.first, name)
        ends = {EARLIEST: bounds.first, LATEST: bounds.last}
        return {partition: ends[offset][partition] if offset in ends else offset for partition, offset in where.items()}

    def _by_time(self, where: AtTimestamp, bounds: Bounds, name: str) -> Offsets:
        if where.all_ms is None:
            _check_partitions(where.each_ms, bounds.first, name)
        times = where.each_ms if where.all_ms is None else dict.fromkeys(bounds.first, where.all_ms)
        found = {}
        for partition, offset in self.at(times).items():
            if offset < 0 and where.strict:
                raise NotFound(
                    f"{partition} has no record at or after {times[partition]} ms, where the query is to start; "
                    "set startingOffsetsByTimestampStrategy=latest to start it at the end of the log"
                )
            last = bounds.last[partition]
            found[partition] = last if offset < 0 else min(offset, last)
        return found

    def _ask(self, steps: Callable[[], Steps[T]]) -> T:
        give_up_at = time.monotonic() + (OUTAGE_SECONDS if self._has_answered else 0.0)
        for attempt in itertools.count():
            try:
                answer = self._connector.run(steps())
            except KgctlError as error:
                is_over = time.monotonic() > give_up_at if self._retries is None else attempt >= self._retries
                if is_over or not (error.retriable or isinstance(error, TimedOut)):
                    raise
                time.sleep(self._pause_s)
            else:
                self._has_answered = True
                return answer
        raise AssertionError("not reached")


def check_found(found: Found, selection: Selection) -> None:
    """Raise NotFound if a selected topic does not exist, or if the pattern matches no topic."""
    if found.missing:
        raise NotFound(f"{' and '.join(found.missing)} {'does' if len(found.missing) == 1 else 'do'} not exist")
    if not found.partitions:
        raise NotFound(f"no topic matches {selection.pattern!r}; internal topics are read with subscribe")


def within(offsets: Offsets, bounds: Bounds, *, fail_on_data_loss: bool) -> Offsets:
    """The offsets, moved into the bounds of the logs; with `fail_on_data_loss` raise DataLoss instead of moving one.

    Offsets behind an open transaction stay: committed readers will come there.
    """
    found = {}
    for partition, offset in offsets.items():
        first, last = bounds.first[partition], bounds.log_end[partition]
        if fail_on_data_loss and offset < first:
            raise losses.deleted(partition, offset, first)
        if fail_on_data_loss and offset > last:
            raise losses.beyond_end(partition, offset, last)
        found[partition] = min(max(offset, first), last)
    return found


def _find(cluster: Cluster, selection: Selection) -> Steps[Found]:
    if selection.pattern is not None:
        return (yield from _find_matching(cluster, re.compile(selection.pattern)))
    names = selection.topics or tuple(dict.fromkeys(one.topic for one in selection.partitions))
    counts = yield from _partition_counts(cluster, names)
    missing = [f"topic {name!r}" for name in names if name not in counts]
    if selection.topics:
        partitions = [TopicPartition(name, number) for name, count in counts.items() for number in range(count)]
        return Found(tuple(sorted(partitions)), tuple(missing))
    there = [one for one in selection.partitions if one.partition < counts.get(one.topic, 0)]
    missing += [f"partition {one}" for one in selection.partitions if one.topic in counts and one not in there]
    return Found(tuple(there), tuple(missing))


def _find_matching(cluster: Cluster, pattern: re.Pattern[str]) -> Steps[Found]:
    def chosen(row: MetadataResponse.Topic) -> bool:
        return bool(row.name) and not row.is_internal and pattern.fullmatch(row.name or "") is not None

    # A topic whose leaders are being elected is not gone.
    rows = yield from _settled(cluster, None, chosen)
    return Found(tuple(sorted(TopicPartition(row.name or "", n) for row in rows for n in range(len(row.partitions)))))


def _partition_counts(cluster: Cluster, topics: Iterable[str]) -> Steps[dict[str, int]]:
    """The number of partitions of each topic that exists."""
    rows = yield from _settled(
        cluster, list(topics), lambda row: row.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    return {row.name or "": len(row.partitions) for row in rows}


def _settled(
    cluster: Cluster, topics: Sequence[str] | None, chosen: Callable[[MetadataResponse.Topic], bool]
) -> Steps[list[MetadataResponse.Topic]]:
    """The chosen topics once none of them has an error that passes. Raises BrokerError."""
    for wait in (*cluster.retry_waits, None):
        answer = yield from cluster.metadata(topics)
        rows = [row for row in answer.topics if chosen(row)]
        failed = next((row for row in rows if row.error_code), None)
        if failed is None:
            return rows
        error = _topic_error(failed)
        if wait is None or not error.retriable:
            raise error
        yield Pause(wait, str(error))
    raise AssertionError("not reached")


def _topic_error(row: MetadataResponse.Topic) -> BrokerError:
    return BrokerError(row.error_code, f"topic {row.name!r}", asked=Asked(MetadataRequest, topic=row.name or ""))


def _check_partitions(given: Iterable[TopicPartition], there: Iterable[TopicPartition], name: str) -> None:
    """As in Spark, every partition must be named: there is no sensible default for one left out by mistake."""
    unknown, left_out = sorted(set(given) - set(there)), sorted(set(there) - set(given))
    if unknown:
        raise BadOption(f"{name} names {unknown[0]}, which is not selected or does not exist")
    if left_out:
        raise BadOption(
            f"{name} leaves out {left_out[0]}; name every partition, with -2 for its earliest offset and -1 for its latest"
        )
