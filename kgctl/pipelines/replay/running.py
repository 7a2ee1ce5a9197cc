"""Carries out a replay on a cluster. Imports pyarrow."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broker.protocol.compression import Codec
from kgctl.client.admin.offsets import commit_each
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.client.network.settings import NetworkSettings
from kgctl.client.producer.core.accumulator import AccumulatorSettings
from kgctl.client.producer.core.client import CoreSettings
from kgctl.client.producer.core.sender import SenderSettings
from kgctl.client.producer.core.states import TransactionSettings
from kgctl.client.producer.counting import CountingProducer
from kgctl.client.producer.shared_face import ProducerSettings
from kgctl.model.groups import Committed
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import ArchivedFile, partition_of
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.replay.log import writing
from kgctl.pipelines.replay.pacing import Pace
from kgctl.pipelines.replay.portions import most_open, portions
from kgctl.pipelines.replay.positions import label, read_positions
from kgctl.pipelines.replay.reading import read_runs
from kgctl.pipelines.replay.records import Run, in_time_order
from kgctl.pipelines.replay.sending import Replay, Target
from kgctl.pipelines.replay.settings import ReplaySettings

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

_BATCH_BYTES, _REQUEST_BYTES, _BUFFER_BYTES = 131_072, 32 << 20, 64 << 20
_REQUEST_TIMEOUT_MS, _DELIVERY_TIMEOUT_MS = 30_000, 120_000
_END_TIMEOUT_S = 5.0
# What a replay opens besides the files of the archive: connections, its log, modules that are imported late.
_OTHER_FILES, _FEWEST_OTHER_FILES = 256, 32


@dataclass(frozen=True, slots=True)
class Means:
    """What a replay works with. `state` is its folder; `wait` sleeps or ends the replay, `waits` marks waits of the producer."""

    admin: Admin
    connection: ConnectionSettings
    state: Path
    codec: Codec
    wait: Callable[[float], None]
    waits: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    on_progress: Callable[[int], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic


def run_replay(
    archive: Archive,
    settings: ReplaySettings,
    counts: Mapping[str, int],
    pace: Pace,
    means: Means,
    *,
    restart: bool,
    begun: Callable[[], None] = lambda: None,
) -> dict[TopicPartition, int]:
    """Write what is left, and return how many records each target partition got in this run.

    `counts` is how many partitions each target has; `begun` runs once the replay is locked. Whatever ends the run, the next one with the same settings continues
    after the last committed transaction.
    """
    sources = [source for source in archive.spans if source.topic in settings.targets]
    labels = {source: label(archive, source) for source in sources}
    with writing(means.state) as log:
        begun()
        target = Target(
            settings, counts, labels, log, None if settings.in_transactions else _committer(means.admin), 60.0
        )
        producer = CountingProducer(
            means.connection, _producer_settings(settings, means), waits=means.waits, acknowledged=target.note
        )
        with producer:
            target.producer = producer
            if settings.in_transactions:
                # Ends the transaction of a run that was killed, and fences one that still runs.
                producer.producer.init_transactions(means.connection.timeout)
            positions = read_positions(means.admin, archive, settings, counts)
            parts = {settings.part_of(source) for source in sources}
            if restart:
                log.forget(parts)
                positions = {part: offset for part, offset in positions.items() if part not in parts}
            log.settle(positions, parts)
            starts = {
                source: max(archive.spans[source][0], positions.get(settings.part_of(source), 0)) for source in sources
            }
            # A key may be in several partitions of the archive: only record by record they keep the order of their times.
            most = 1 if settings.by_key else pace.most_records
            replay = Replay(target, pace, means.clock, means.wait, means.on_progress)
            try:
                # Before any record: afterwards, a group without a position was deleted, and --restart reaches all partitions.
                if first := {key: (at, at) for key, at in starts.items() if settings.part_of(key) not in positions}:
                    target.commit(first)
                is_ordered = settings.by_key or pace.speed is not None
                replay.run(_runs(archive, settings, starts, most, is_ordered=is_ordered), starts)
            except BaseException:
                with contextlib.suppress(KgctlError):
                    target.abort()
                raise
            log.finish()
            return {partition: one.records for partition, one in producer.tally.partitions.items()}


def _runs(
    archive: Archive, settings: ReplaySettings, starts: Mapping[TopicPartition, int], most: int, *, is_ordered: bool
) -> Iterator[Run]:
    """With `is_ordered` in the order of time over all partitions, which reads all of them at once.

    Raises Precondition if the process may not open that many files.
    """

    def of(partition: TopicPartition, start: int) -> Iterator[Run]:
        for run in read_runs(archive, partition, start, settings.chosen):
            yield from run.cut(most)

    files: dict[TopicPartition, list[ArchivedFile]] = {}
    for file in archive.files():
        files.setdefault(partition_of(file), []).append(file)
    counts = {partition: most_open(files.get(partition, ()), start) for partition, start in starts.items()}
    chosen = [sorted(counts)] if is_ordered else list(portions(counts))
    _allow_open_files(max((sum(counts[one] for one in some) for some in chosen), default=0))
    for some in chosen:
        yield from in_time_order([of(partition, starts[partition]) for partition in some])


def _allow_open_files(count: int) -> None:
    """Raise the limit of this process if need be. Raises Precondition."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or wanted <= soft:
        return
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    if count + _FEWEST_OTHER_FILES > soft:
        raise Precondition(
            f"{count} files of the archive have to be read at the same time, and this process may open {soft} (ulimit -n): "
            "raise the limit, or replay fewer topics at a time"
        )


def _committer(admin: Admin) -> Callable[[str, Mapping[TopicPartition, OffsetAndMetadata]], None]:
    def committed(group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        wanted = {key: Committed(one.offset, metadata=one.metadata) for key, one in offsets.items()}
        for error in admin.run(commit_each(admin.cluster, {group: wanted}))[group].values():
            if error is not None:
                raise error

    return committed


def _producer_settings(settings: ReplaySettings, means: Means) -> ProducerSettings:
    accumulator = AccumulatorSettings(
        _BATCH_BYTES,
        codec=means.codec,
        max_request_bytes=_REQUEST_BYTES,
        delivery_timeout_ms=_DELIVERY_TIMEOUT_MS,
    )
    sender = SenderSettings(
        request_timeout_ms=_REQUEST_TIMEOUT_MS,
        delivery_timeout_ms=_DELIVERY_TIMEOUT_MS,
        record_noun="record at offset",
    )
    core = CoreSettings(
        buffer_bytes=_BUFFER_BYTES,
        accumulator=accumulator,
        sender=sender,
        transaction=TransactionSettings(settings.id) if settings.in_transactions else None,
    )
    network = NetworkSettings(
        client_id=means.connection.client_id,
        request_timeout_ms=_REQUEST_TIMEOUT_MS,
        max_in_flight_requests_per_connection=5,
        read_only=means.connection.read_only,
    )
    return ProducerSettings(core, network, max_block_ms=_DELIVERY_TIMEOUT_MS)
