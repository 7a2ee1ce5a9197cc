"""One partition of a damaged directory: which of its files to take, and what they and the evidence about it add up to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

from broker.light_dataclasses import dataclass, field
from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import parse_header
from broker.storage.rescue.batches import Batch, SegmentFile, whole_batches
from broker.storage.rescue.reading import Progress
from broker.storage.segments.batch_fields import empty_batch

Range: TypeAlias = tuple[int, int]  # first and last offset


class SegmentStart(NamedTuple):
    base_offset: int


class Gap(NamedTuple):
    """Offsets without a batch, up to `until`. `proven`: their records were acknowledged and are lost."""

    until: int
    proven: bool


Part: TypeAlias = SegmentStart | Batch | Gap


@dataclass(frozen=True, slots=True)
class Evidence:
    """What else is known of a partition. `listed`: base and end offsets of the segments that an intact store lists.

    `keeps_start`: the log may begin before its first file, as compaction removes whole files without moving the start.
    """

    end_offset: int = 0
    log_start_offset: int | None = None
    listed: tuple[tuple[int, int], ...] = ()
    is_compacted: bool = False
    keeps_start: bool = False


@dataclass(slots=True)
class PartitionPlan:
    """`lost` are acknowledged offsets without records; `unknown` those that cleaning may have removed."""

    index: int
    files: list[SegmentFile]
    evidence: Evidence
    log_start_offset: int = 0
    log_end_offset: int = 0
    records: int = 0
    size_bytes: int = 0
    largest_producer_id: int = -1
    has_transactions: bool = False
    lost: list[Range] = field(default_factory=list)
    unknown: list[Range] = field(default_factory=list)

    def parts(self) -> Iterator[Part]:
        """Yield what to write, in order: starts of segments, batches, and gaps to cover."""
        first = self._first_offset()
        if first is None:
            return
        offset = first
        if not self.files or self.files[0].base_offset > first:
            yield SegmentStart(first)
        for number, file in enumerate(self.files):
            if file.base_offset > offset:
                # Compaction leaves no file of a segment without records.
                yield Gap(file.base_offset, proven=self._is_proven(offset, file.base_offset))
            yield SegmentStart(file.base_offset)
            offset = file.base_offset
            following = self.files[number + 1].base_offset if number + 1 < len(self.files) else None
            for batch in whole_batches(file, following):
                if batch.header.base_offset > offset:
                    yield Gap(batch.header.base_offset, proven=True)
                yield batch
                offset = batch.header.next_offset
            if file.end_offset is not None and file.end_offset > offset:
                offset = file.end_offset if following is None else min(file.end_offset, following)
                yield Gap(offset, proven=True)
        if self.evidence.end_offset > offset:
            yield Gap(self.evidence.end_offset, proven=True)

    def _first_offset(self) -> int | None:
        """Where the log begins: with its first file, or with a segment before it that the store lists."""
        starts = [base for base, end in self.evidence.listed if end > max(base, self.evidence.log_start_offset or 0)]
        starts += [file.base_offset for file in self.files]
        if not starts and self.evidence.end_offset:
            return min(self.evidence.log_start_offset or 0, self.evidence.end_offset)
        return min(starts, default=None)

    def _is_proven(self, first: int, until: int) -> bool:
        if self.evidence.listed:
            return any(base < until and end > first for base, end in self.evidence.listed)
        return not self.evidence.is_compacted


def plan_partition(index: int, found: Sequence[SegmentFile], evidence: Evidence, progress: Progress) -> PartitionPlan:
    """Read the files of one partition."""
    plan = PartitionPlan(index, _chosen(found, evidence.end_offset), evidence)
    offset: int | None = None
    for part in plan.parts():
        if isinstance(part, SegmentStart):
            if offset is None:
                plan.log_start_offset = part.base_offset
            offset = part.base_offset
        elif isinstance(part, Gap):
            assert offset is not None
            (plan.lost if part.proven else plan.unknown).append((offset, part.until - 1))
            offset = part.until
        else:
            progress.add(len(part.content))
            plan.records += part.header.record_count
            plan.size_bytes += len(part.content)
            plan.largest_producer_id = max(plan.largest_producer_id, part.header.producer_id)
            plan.has_transactions = plan.has_transactions or part.header.is_transactional
            offset = part.header.next_offset
    plan.log_end_offset = offset or 0
    if evidence.log_start_offset is not None:
        _apply_log_start(plan, evidence.log_start_offset)
    plan.lost, plan.unknown = _joined(plan.lost), _joined(plan.unknown)
    return plan


def cover(offset: int, until: int) -> Iterator[Batch]:
    """Empty batches for these offsets, like the ones that Kafka's compaction leaves."""
    while offset < until:
        content = empty_batch(offset, until)
        header = parse_header(content)
        yield Batch(-1, content, header)
        offset = header.next_offset


def _apply_log_start(plan: PartitionPlan, stored: int) -> None:
    """Records that DeleteRecords or retention removed are not lost, and stay removed."""
    if stored < plan.log_start_offset and not plan.evidence.listed:
        plan.unknown.insert(0, (stored, plan.log_start_offset - 1))
    if plan.evidence.keeps_start or stored > plan.log_start_offset:
        plan.log_start_offset = min(stored, plan.log_end_offset)
    plan.lost = [(max(first, stored), last) for first, last in plan.lost if last >= stored]
    plan.unknown = [(max(first, stored), last) for first, last in plan.unknown if last >= stored]


def _joined(ranges: list[Range]) -> list[Range]:
    """Ranges that touch, as one."""
    joined: list[Range] = []
    for first, last in ranges:
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return joined


def _chosen(found: Sequence[SegmentFile], end_offset: int) -> list[SegmentFile]:
    """The files to take, in the order of offsets: of several revisions, the newest one that lacks the least."""
    revisions: dict[int, list[SegmentFile]] = {}
    for file in found:
        revisions.setdefault(file.base_offset, []).append(file)
    bases = sorted(revisions)
    chosen = []
    for base, following in zip_longest(bases, bases[1:]):
        candidates = sorted(revisions[base], key=lambda file: -file.revision)
        if len(candidates) > 1:
            until = following if following is not None else end_offset
            missing = {file.path: _missing(file, until) for file in candidates}
            candidates.sort(key=lambda file: missing[file.path])
        chosen.append(candidates[0])
    return chosen


def _missing(file: SegmentFile, until: int) -> int:
    """How many offsets have no batch."""
    offset, missing = file.base_offset, 0
    for batch in whole_batches(file, until or None):
        missing += batch.header.base_offset - offset
        offset = batch.header.next_offset
    return missing + max(0, until - offset)
