"""One partition of a damaged directory: which of its files to take, and what they and the acknowledged end add up to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from broker.protocol.record_batch import build_batch, parse_header
from broker.storage.partition_log import LEADER_EPOCH
from broker.storage.rescue.batches import Batch, SegmentFile, segment_file, whole_batches
from broker.storage.rescue.reading import Progress
from broker.storage.segments.synced_ends import SyncedEnd

MAX_OFFSETS_PER_BATCH = 2**31
Range: TypeAlias = tuple[int, int]  # first and last offset


class SegmentStart(NamedTuple):
    base_offset: int


class Gap(NamedTuple):
    """Offsets without a batch, up to `until`. `proven`: their records were acknowledged and are lost."""

    until: int
    proven: bool


Part: TypeAlias = SegmentStart | Batch | Gap


@dataclass(slots=True)
class PartitionPlan:
    """`lost` are acknowledged offsets without records; `unknown` those that cleaning may have removed."""

    index: int
    files: list[SegmentFile]
    end: SyncedEnd | None
    is_compacted: bool
    log_start_offset: int = 0
    log_end_offset: int = 0
    records: int = 0
    size_bytes: int = 0
    largest_producer_id: int = -1
    lost: list[Range] = field(default_factory=list)
    unknown: list[Range] = field(default_factory=list)

    def parts(self) -> Iterator[Part]:
        """Yield what to write, in order: starts of segments, batches, and gaps to cover."""
        offset = -1
        for number, file in enumerate(self.files):
            until = self.files[number + 1].base_offset if number + 1 < len(self.files) else None
            yield SegmentStart(file.base_offset)
            offset = file.base_offset
            for batch in whole_batches(file, until, _ends_in(file, self.end)):
                if batch.header.base_offset > offset:
                    yield Gap(batch.header.base_offset, proven=True)
                yield batch
                offset = batch.header.next_offset
            if until is not None and until > offset:
                # Compaction leaves no file of a segment without records.
                yield Gap(until, proven=not self.is_compacted)
                offset = until
        if self.end is not None and self.end.end_offset > offset:
            if not self.files:
                yield SegmentStart(self.end.base_offset)
            yield Gap(self.end.end_offset, proven=True)


def plan_partition(
    directory: Path,
    index: int,
    end: SyncedEnd | None,
    log_start_offset: int | None,
    progress: Progress,
    *,
    is_compacted: bool,
) -> PartitionPlan:
    """Read the files of one partition."""
    plan = PartitionPlan(index, _files(directory, end), end, is_compacted)
    offset: int | None = None
    for part in plan.parts():
        if isinstance(part, SegmentStart):
            if offset is None:
                plan.log_start_offset = offset = part.base_offset
        elif isinstance(part, Gap):
            assert offset is not None
            (plan.lost if part.proven else plan.unknown).append((offset, part.until - 1))
            offset = part.until
        else:
            progress.add(len(part.content))
            plan.records += part.header.record_count
            plan.size_bytes += len(part.content)
            plan.largest_producer_id = max(plan.largest_producer_id, part.header.producer_id)
            offset = part.header.next_offset
    plan.log_end_offset = offset or 0
    if log_start_offset is not None:
        _apply_log_start(plan, log_start_offset)
    return plan


def cover(offset: int, until: int) -> Iterator[Batch]:
    """Empty batches for these offsets, like the ones that Kafka's compaction leaves."""
    while offset < until:
        last_offset = min(until, offset + MAX_OFFSETS_PER_BATCH) - 1
        content = build_batch([], base_offset=offset, last_offset=last_offset, leader_epoch=LEADER_EPOCH)
        yield Batch(content, parse_header(content))
        offset = last_offset + 1


def _apply_log_start(plan: PartitionPlan, stored: int) -> None:
    """Records that DeleteRecords or retention removed are not lost, and stay removed."""
    if stored < plan.log_start_offset and plan.files:
        plan.unknown.insert(0, (stored, plan.log_start_offset - 1))
    plan.log_start_offset = min(max(plan.log_start_offset, stored), plan.log_end_offset)
    plan.lost = [(max(a, stored), b) for a, b in plan.lost if b >= stored]
    plan.unknown = [(max(a, stored), b) for a, b in plan.unknown if b >= stored]


def _files(directory: Path, end: SyncedEnd | None) -> list[SegmentFile]:
    """The files to take, in the order of offsets: of several revisions, the newest one that lacks the least."""
    revisions: dict[int, list[SegmentFile]] = {}
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        file = segment_file(path)
        if file is not None and path.is_file():
            revisions.setdefault(file.base_offset, []).append(file)
    bases = sorted(revisions)
    chosen = []
    for base, following in zip(bases, [*bases[1:], None], strict=True):
        candidates = sorted(revisions[base], key=lambda file: -file.revision)
        until = following
        if len(candidates) > 1:
            candidates.sort(key=lambda file: _missing(file, until, end))
        chosen.append(candidates[0])
    return chosen


def _missing(file: SegmentFile, until: int | None, end: SyncedEnd | None) -> int:
    """How many offsets have no batch."""
    offset, missing = file.base_offset, 0
    for batch in whole_batches(file, until, _ends_in(file, end)):
        missing += batch.header.base_offset - offset
        offset = batch.header.next_offset
    wanted = until if until is not None else end.end_offset if end is not None else offset
    return missing + max(0, wanted - offset)


def _ends_in(file: SegmentFile, end: SyncedEnd | None) -> Sequence[int]:
    return (end.position,) if end is not None and end.base_offset == file.base_offset else ()
