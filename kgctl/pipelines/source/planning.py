"""Plans the ranges to read from options and log ends: once for a batch, per micro-batch for a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kgctl.client.admin.offsets import EARLIEST, LATEST
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source import losses
from kgctl.pipelines.source.log_ends import Bounds, Found, LogEnds, check_found, within
from kgctl.pipelines.source.option_names import BadOption
from kgctl.pipelines.source.options import ReadOptions, Where
from kgctl.pipelines.source.ranges import OffsetRange, share, split
from kgctl.pipelines.source.reading import Patience, ReadTask


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What there was to read at one moment; all later actions on the same DataFrame read exactly this."""

    found: Found
    bounds: Bounds


def log_ends_of(options: ReadOptions) -> LogEnds:
    return LogEnds(
        options.connection,
        committed_only=options.fetch.committed_only,
        retries=options.fetch_retries,
        pause_s=options.fetch_pause_s,
    )


def take_snapshot(options: ReadOptions) -> Snapshot:
    with log_ends_of(options) as log_ends:
        found = log_ends.find(options.selection)
        return Snapshot(found, log_ends.bounds(found.partitions))


def plan_batch(options: ReadOptions, snapshot: Snapshot) -> list[OffsetRange]:
    """One range per partition, including empty ones. Raises NotFound, BadOption or DataLoss."""
    starting = EARLIEST if options.starting is None else options.starting
    if starting == LATEST or (isinstance(starting, Mapping) and LATEST in starting.values()):
        raise BadOption("startingOffsets: a batch that starts at the latest offset reads nothing; use earliest")
    check_found(snapshot.found, options.selection)
    with log_ends_of(options) as log_ends:
        first = log_ends.resolve(starting, snapshot.bounds, "startingOffsets")
        last = log_ends.resolve(options.ending, snapshot.bounds, "endingOffsets")
    first = within(first, snapshot.bounds, fail_on_data_loss=options.fail_on_data_loss)
    last = within(last, snapshot.bounds, fail_on_data_loss=options.fail_on_data_loss)
    for partition in sorted(first):
        stable = snapshot.bounds.last[partition]
        if last[partition] == stable and not _is_offset(options.ending, partition):
            # A start behind an open transaction: nothing to read yet.
            last[partition] = max(last[partition], first[partition])
        elif stable < last[partition] > first[partition]:
            raise losses.open_transaction(partition, last[partition], stable)
        if first[partition] > last[partition]:
            raise BadOption(
                f"{partition}: the batch would start at offset {first[partition]} and end before {last[partition]}; "
                "correct the starting or the ending option"
            )
    return [OffsetRange(partition, first[partition], last[partition]) for partition in sorted(first)]


def _is_offset(ending: Where, partition: TopicPartition) -> bool:
    """Whether the option has a number for the partition, not the latest offset or a time."""
    return isinstance(ending, Mapping) and ending[partition] != LATEST


def to_tasks(ranges: Iterable[OffsetRange], options: ReadOptions) -> list[ReadTask]:
    patience = Patience()
    if (timeout := options.poll_timeout_s) is not None:
        patience = Patience(outage=timeout, no_progress=min(timeout, patience.no_progress))
    return [
        ReadTask(
            options.connection,
            one,
            options.fetch,
            options.fail_on_data_loss,
            options.columns,
            patience,
        )
        for one in split(list(ranges), options.min_partitions, options.max_records_per_partition)
    ]


Offsets = dict[TopicPartition, int]
# Looks up where the logs of partitions begin; called only for partitions that are new to a query.
Beginnings = Callable[[Sequence[TopicPartition]], Offsets]


def check_stream_options(options: ReadOptions) -> None:
    if options.ending_given:
        raise BadOption("endingOffsets and the other ending options are for batches only; a stream has no end")


def next_end(
    start: Offsets, ends: Offsets, beginnings: Beginnings, most: int | None, *, fail_on_data_loss: bool
) -> Offsets:
    """Where the next micro-batch ends: at the ends of the logs, or after `most` offsets in total.

    With `fail_on_data_loss`, raises DataLoss if a partition is gone, or a log ends before the offset that the stream has
    reached: now, because Spark repeats a batch that it has planned for ever, also when the partition is back.
    """
    if fail_on_data_loss:
        for partition in sorted(start.keys() - ends.keys()):
            raise losses.gone(partition)
    ranges = _stream_ranges(start, ends, beginnings)
    for one in ranges:
        if fail_on_data_loss and one.end < one.start:
            raise losses.went_back(one.partition, one.start, one.end)
    if most is None or sum(one.size for one in ranges) <= most:
        return dict(ends)
    return share([one for one in ranges if one.size], most) | {one.partition: one.end for one in ranges if not one.size}


def plan_micro_batch(
    start: Offsets, end: Offsets, beginnings: Beginnings, *, fail_on_data_loss: bool
) -> list[OffsetRange]:
    """The ranges of a micro-batch: the same for the same start and end, so that a batch can be repeated. Raises DataLoss."""
    ranges = _stream_ranges(start, end, beginnings)
    if fail_on_data_loss:
        for partition in sorted(start.keys() - end.keys()):
            raise losses.gone(partition)
        for one in ranges:
            if one.partition not in start and one.start > 0:
                raise losses.late(one.partition, one.start)
    return ranges


def _stream_ranges(start: Offsets, end: Offsets, beginnings: Beginnings) -> list[OffsetRange]:
    new = sorted(end.keys() - start.keys())
    known = start | (beginnings(new) if new else {})
    return [OffsetRange(partition, known[partition], end[partition]) for partition in sorted(end)]
