"""With accepted losses: rebuild one partition from its files, as the store may have lost rows or list lost files.

Every whole batch is kept, and no end moves back: files that the store does not list are listed again, damaged ones are
replaced by a repaired one, and offsets that no file has are covered and reported. As in recovery, the first batch beyond
the checkpoint that begins or ends a transaction ends the partition, unless the store may have lost its commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

from broker.light_dataclasses import dataclass
from broker.protocol.record_batch import HEADER_BYTES, BatchHeader, parse_header
from broker.storage.errors import DamageError
from broker.storage.segments.attempt import Attempt
from broker.storage.segments.leftovers import DAMAGED_SUFFIX, damaged_name, note_damaged_file
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.partition_table import delete_segment, load_segments, save_segments, set_log_start
from broker.storage.segments.repair import new_segment, rewrite, spell
from broker.storage.segments.segment import Segment
from broker.storage.segments.shared import Shared
from broker.storage.segments.survey import ANY_OFFSET, Offsets, Source, Survey, survey
from broker.storage.segments.synced_ends import SyncedEnd
from broker.storage.segments.trailer import parse_trailer
from broker.storage.segments.verification import SCAN_BYTES

# Who wrote the last batch of a segment: its base offset, end offset, size and CRC -> topic id and partition.
Owners = Mapping[tuple[int, int, int, int], tuple[bytes, int]]

SEGMENT_NAME = re.compile(r"(\d{20})(?:\.(\d+))?\.log")


@dataclass(slots=True)
class _Link:
    """One segment of the partition to be: what the store lists, or the best file found, or both."""

    base_offset: int
    listed: Segment | None = None
    found: Survey | None = None  # None: the listed file is as the store says

    @property
    def is_blank(self) -> bool:
        """A file that the store does not list, without a whole batch."""
        return self.listed is None and self.found is not None and not self.found.batches

    @property
    def is_missing(self) -> bool:
        return self.found is not None and not self.found.batches and not os.path.exists(self.found.source.path)

    @property
    def end_offset(self) -> int:
        """How far it reaches."""
        if self.found is not None:
            return self.found.end_offset
        assert self.listed is not None
        return self.listed.end_offset


class Rebuild:
    """`end`: the synced end of the last run, `slots`: those that name a batch; `is_exact`: nothing beyond it was acknowledged.

    `has_all_commits`: nothing suggests that the store lost one, so transactions are as its checkpoints say.
    """

    def __init__(
        self,
        partition: SegmentPartition,
        shared: Shared,
        end: SyncedEnd | None,
        slots: Sequence[SyncedEnd],
        owners: Owners,
        attempt: Attempt,
        show: Callable[[str], None],
        *,
        is_exact: bool,
        has_all_commits: bool,
    ) -> None:
        self._partition = partition
        self._shared = shared
        self._end = end
        self._slots = slots
        self._owners = owners
        self._attempt = attempt
        self._show = show
        # As the store lists them: a scan may have gone further.
        partition.segments = load_segments(
            shared.store, partition.partition_id, shared.files, partition.place, partition.policy.index_interval_bytes
        )
        self._known_until = partition.log_end_offset
        self._target = max(self._known_until, end.end_offset if end is not None else 0)
        self._acknowledged_until = self._target if is_exact and end is not None else None
        self._revisions = revisions(partition.directory)
        self._has_all_commits = has_all_commits
        self._is_cut = False  # what follows the links is of transactions that no commit has
        self._covered_until = 0  # unless it is known that what is cut was not acknowledged

    def run(self) -> bool:
        """Rebuild the partition; the caller announces it and flushes. False if it was as the store says."""
        links = self._links()
        self._skip_deleted(links)
        if not links and max(self._target, self._covered_until) > self._partition.log_start_offset:
            start = self._partition.log_start_offset
            links = [_Link(start, None, Survey.nothing(Source(self._partition.place, start, 0, before_offset=start)))]
        segments = [self._segment(link, links[at + 1 : at + 2]) for at, link in enumerate(links)]
        changed = segments != self._partition.segments
        if changed:
            self._list(segments)
        self._keep_unlisted()
        return changed

    def _list(self, segments: list[Segment]) -> None:
        """List these segments, all of which are synced, and nothing else, as complete."""
        shared, partition = self._shared, self._partition
        for segment in partition.segments:
            shared.loaded_indexes.pop(segment, None)
            delete_segment(shared.store, partition.partition_id, segment.base_offset)
        partition.segments = segments
        save_segments(shared.store, partition.partition_id, segments)
        if segments:
            partition.checkpoint(complete=True)
            partition.advance()

    def announce(self) -> None:
        """Just before the commit: until then the synced end must fit the old files and the new ones; it names no batch."""
        ends = self._shared.ends
        if self._partition.segments:
            end = self._partition.synced_end()._replace(last_size=0, last_crc=0)
            if self._end is not None:
                end = end._replace(commit_seq=max(end.commit_seq, self._end.commit_seq))
            if end != self._end:
                ends.write(self._partition.partition_id, end)
            ends.must_sync = True
            self._shared.pending.written[self._partition] = None

    def _skip_deleted(self, links: list[_Link]) -> None:
        """If the store lost commits, one of them may have deleted the first segments: the log starts behind them."""
        partition, store = self._partition, self._shared.store
        is_older = store.evidence.lost_commits or any(link.listed is None for link in links)
        lost: list[Offsets] = []
        while is_older and links and links[0].is_missing and not all(link.is_missing for link in links[1:]):
            link = links.pop(0)
            if link.listed is not None and link.listed.end_offset > link.base_offset:
                lost.append((link.base_offset, link.listed.end_offset - 1))
        if lost:
            partition.log_start_offset = links[0].base_offset
            set_log_start(store, partition.partition_id, partition.log_start_offset)
            store.evidence.lose(
                f"{partition.directory} has no files before offset {partition.log_start_offset}: lost {spell(lost)} of"
                f" {partition.name}, unless retention deleted them",
                accepted=True,
            )

    # -- which files

    def _links(self) -> list[_Link]:
        listed = {segment.base_offset: segment for segment in self._partition.segments}
        last = max(listed, default=-1)
        links = [_Link(base, segment, self._examine(segment, base == last)) for base, segment in listed.items()]
        for base in sorted(base for base in self._revisions if base > last):
            was_cut, best = self._is_cut, self._best(base, ANY_OFFSET)
            reached = max(links[-1].end_offset, self._known_until) if links else 0
            if best is None or (links and base < links[-1].end_offset):
                continue
            if was_cut or (best.is_cut and not best.batches):
                continue
            is_unacknowledged = self._acknowledged_until is not None and base >= self._acknowledged_until
            if base > reached and links and is_unacknowledged:
                continue
            if best.batches and not self._shared.store.evidence.lost_commits:
                self._shared.store.evidence.lose_commits(
                    f"{self._shared.store.path} does not list {best.source.path}: lost commits cannot be ruled out",
                    accepted=True,
                )
            links.append(_Link(base, None, best))
        # The name of an empty file proves that the log reached its offset, unless it is known to end before.
        until = self._acknowledged_until
        while until is not None and links and links[-1].is_blank and links[-1].base_offset > until:
            links.pop()
        return links

    def _examine(self, segment: Segment, is_last: bool) -> Survey | None:
        """None if a sealed segment is as the store says."""
        self._show(segment.path)
        if not is_last:
            try:
                segment.file()
                segment.verify()
            except DamageError:
                return self._best(segment.base_offset, segment.end_offset, segment) or self._nothing(segment)
            return None
        return self._best(segment.base_offset, ANY_OFFSET, segment) or self._nothing(segment)

    def _nothing(self, segment: Segment) -> Survey:
        return Survey.nothing(Source(self._partition.place, segment.base_offset, segment.revision))

    def _best(self, base_offset: int, before: int, listed: Segment | None = None) -> Survey | None:
        """The file to use; None if there is none.

        An earlier revision holds all that a later one has: it is removed once the later one is committed.
        """
        revisions_found = self._revisions.get(base_offset)
        if not revisions_found:
            return None
        is_here = listed is not None and listed.revision in revisions_found
        revision = listed.revision if listed is not None and is_here else min(revisions_found)
        source = Source(self._partition.place, base_offset, revision, before, self._acknowledged_until)
        self._show(source.path)
        others = self._others(base_offset, listed if is_here else None)
        found = survey(self._shared.files, source, others, self._is_uncommitted)
        complete = found
        if before != ANY_OFFSET:
            whole = source._replace(before_offset=ANY_OFFSET)
            complete = survey(self._shared.files, whole, others, self._is_uncommitted)
        if complete.is_foreign or self._is_of_another(complete, listed if is_here else None):
            return Survey.nothing(source, is_foreign=True)
        if found.is_cut or self._is_cut:
            self._is_cut = True
            if self._acknowledged_until is None:
                self._covered_until = max(self._covered_until, found.end_offset, found.torn_until)
        return found

    def _is_uncommitted(self, header: BatchHeader) -> bool:
        """Its commit would have moved the checkpoint past it."""
        # An end that names no batch is of a killed attempt, which covered what it cut.
        committed = self._target if self._end is not None and self._end.last_size else self._known_until
        if not self._has_all_commits or header.base_offset < committed:
            return False
        return self._is_cut or self._partition.transactions.changes_open_transactions(header)

    def _is_of_another(self, found: Survey, listed: Segment | None) -> bool:
        """The file ends with the last batch of another partition, and nothing shows that it is of this one."""
        last, base_offset = found.last, found.source.base_offset
        if last is None:
            return False
        owner = self._owners.get((base_offset, last.next_offset, last.size_bytes, last.crc))
        if owner is None or owner == self._partition.place[1:]:
            return False
        # The markers of a transaction look alike in all its partitions.
        has_digest = listed is not None and listed.digest is not None and 0 < listed.size_bytes <= found.whole_bytes
        return not (has_digest or any(self._has_batch_of(end, found.source) for end in self._slots))

    def _has_batch_of(self, end: SyncedEnd, source: Source) -> bool:
        """The file has the batch that this synced end names."""
        if end.base_offset != source.base_offset:
            return False
        head = self._shared.files.get(source.path).read(HEADER_BYTES, end.position - end.last_size)
        if len(head) < HEADER_BYTES:
            return False
        header = parse_header(head)
        return (header.next_offset, header.size_bytes, header.crc) == (end.end_offset, end.last_size, end.last_crc)

    def _others(self, base_offset: int, listed: Segment | None) -> Callable[[int, BatchHeader, int], bool]:
        """Recognize batches that are not those that this partition wrote."""
        # Without a batch, its position may be that in a file which a killed attempt wrote.
        is_own = self._end is not None and self._end.base_offset == base_offset and self._end.last_size > 0
        own = self._end if is_own else None
        known = (listed.size_bytes, listed.digest) if listed is not None and listed.digest is not None else None
        boundaries = [position for position in (known and known[0], own and own.position) if position]

        def is_other(end: int, header: BatchHeader, digest: int) -> bool:
            if any(end - header.size_bytes < boundary < end for boundary in boundaries):
                return True
            if known is not None and end == known[0] and digest != known[1]:
                return True
            is_last = own is not None and header.next_offset == own.end_offset
            return own is not None and is_last and (header.size_bytes, header.crc) != (own.last_size, own.last_crc)

        return is_other

    # -- what becomes of them

    def _segment(self, link: _Link, following: list[_Link]) -> Segment:
        found, listed = link.found, link.listed
        if found is None:
            assert listed is not None
            return listed
        expected = self._expected_end(link, following)
        is_there = found.batches > 0 or (listed is not None and expected == link.base_offset)
        is_there = is_there and not self._has_doubtful_end(found)
        if is_there and found.is_contiguous and found.end_offset >= expected and os.path.exists(found.source.path):
            return self._adopt(found, listed, is_last=not following)
        return self._write(found, link, expected, is_last=not following)

    def _has_doubtful_end(self, found: Survey) -> bool:
        """Bytes behind the whole batches may be those of an acknowledged one: the file is kept as it is."""
        if self._acknowledged_until is not None or not os.path.exists(found.source.path):
            return False
        file = self._shared.files.get(found.source.path)
        remains = file.read(min(SCAN_BYTES, max(0, file.size() - found.whole_bytes)), found.whole_bytes)
        return parse_trailer(remains) is None and bool(remains.strip(b"\0"))

    def _expected_end(self, link: _Link, following: list[_Link]) -> int:
        known = link.listed.end_offset if link.listed is not None else link.base_offset
        if not following:
            torn_until = link.found.torn_until if link.found is not None else 0
            return max(known, self._target, link.end_offset, torn_until, self._covered_until)
        is_listed_before = following[0].listed is not None
        if is_listed_before or self._partition.policy.compact:
            # Compaction removes whole segments.
            return max(known, link.end_offset)
        return max(known, following[0].base_offset)

    def _adopt(self, found: Survey, listed: Segment | None, *, is_last: bool) -> Segment:
        """List a whole file as it is."""
        source, files = found.source, self._shared.files
        if listed is not None and _is_as_listed(listed, found):
            if is_last and not listed.has_trailer:
                listed.cut_remains()
            return listed
        compacted_at_ms = listed.compacted_at_ms if listed is not None else -1
        segment = new_segment(self._partition, files, source.base_offset, source.revision, compacted_at_ms)
        for batch in segment.scan_tail(lambda header: header.base_offset >= found.end_offset):
            if batch.header.base_offset >= self._known_until:
                self._partition.transactions.replay(batch.header, batch.content)
        if is_last:
            segment.cut_remains()
        self._finish(segment, is_last)
        return segment

    def _finish(self, segment: Segment, is_last: bool) -> None:
        segment.save_index()
        if not is_last:
            segment.seal()
        self._shared.files.sync(segment.file())
        self._shared.files.sync_directory(segment.place.directory)

    def _write(self, found: Survey, link: _Link, expected: int, *, is_last: bool) -> Segment:
        """Replace a damaged or missing file, and report what is lost."""
        shared, source = self._shared, found.source
        harm = self._harm(found, link.listed, is_last=is_last)
        compacted_at_ms = link.listed.compacted_at_ms if link.listed is not None else -1
        revision = max([source.revision, *self._revisions.get(link.base_offset, [])]) + 1
        segment = new_segment(self._partition, shared.files, link.base_offset, revision, compacted_at_ms)
        self._attempt.note(segment.path)
        lost = rewrite(segment, found, self._partition, end_offset=expected, known_until=self._known_until)
        self._finish(segment, is_last)
        kept = ""
        if os.path.exists(source.path):
            kept = f"; it is kept as {os.path.basename(damaged_name(source.path))}"
            note_damaged_file(shared, source.path)
        if lost or found.is_foreign or kept:
            what = f"lost {spell(lost)} of {self._partition.name}" if lost else "no whole batch is lost"
            shared.store.evidence.lose(f"{source.path} {harm}: {what}{kept}", accepted=True)
        return segment

    def _harm(self, found: Survey, listed: Segment | None, *, is_last: bool) -> str:
        path = found.source.path
        if self._is_cut and is_last:
            return "has a transaction behind it that no commit confirms"
        if not os.path.exists(path):
            return "is missing"
        if found.is_foreign:
            return "holds other records"
        is_short = listed is not None and os.stat(path).st_size < listed.size_bytes
        return "is truncated" if is_short else "is damaged"

    def _keep_unlisted(self) -> None:
        """Set aside the files that are not used: they may hold records that nothing else has."""
        partition = self._partition
        if not os.path.isdir(partition.directory):
            return
        known = {os.path.basename(path) for s in partition.segments for path in (s.path, s.index_path)}
        for name in os.listdir(partition.directory):
            path = os.path.join(partition.directory, name)
            if name not in known and not name.endswith(DAMAGED_SUFFIX) and name.endswith(".log"):
                note_damaged_file(self._shared, path)


def _is_as_listed(listed: Segment, found: Survey) -> bool:
    known = (listed.revision, listed.size_bytes, listed.end_offset)
    return known == (found.source.revision, found.whole_bytes, found.end_offset)


def revisions(directory: str) -> dict[int, list[int]]:
    """The revisions of each segment that are on disk, by base offset."""
    found: dict[int, list[int]] = {}
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        match = SEGMENT_NAME.fullmatch(name)
        if match is not None:
            found.setdefault(int(match[1]), []).append(int(match[2] or 0))
    return found
