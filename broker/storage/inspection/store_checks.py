"""Checks of store.db, of its WAL, and of the files beside it that prove which commits it must have.

Each check returns how many things it checked, their size, and pairs of a place and a damage.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from broker.storage.errors import StorageError, StoreDamageError
from broker.storage.inspection.reader import DataDirectory, read_ends
from broker.storage.inspection.stored_rows import EVENTS, OFFSETS, PREFIXES, rows_by_offset
from broker.storage.store.checked_pages import HEADER_BYTES, LOCKED_PAGE, PAGE_BYTES, page_is_intact, stamp_in
from broker.storage.store.evidence import STAMPS, link, stamp_of
from broker.storage.store.values import as_bytes, as_int
from broker.storage.store.wal_frames import frames

Found: TypeAlias = tuple[int, int, list[tuple[str, str]]]

CHUNK_PAGES = 256
MOST_PROBLEMS = 100


def check_pages(directory: DataDirectory) -> Found:
    """Checksums of all pages, and of the frames in the WAL. A page counts as replaced by the frames of commits only."""
    copy = directory.copy
    size, wal_size = os.fstat(copy.database).st_size, os.fstat(copy.wal).st_size
    newer: set[int] = set()
    uncommitted: set[int] = set()
    damages: list[tuple[str, str]] = []
    bad_frame, count = -1, 0
    for frame in frames(lambda position, amount: os.pread(copy.wal, amount, position), wal_size):
        count += 1
        if not frame.is_intact:
            bad_frame = frame.position if bad_frame < 0 else bad_frame
        elif bad_frame >= 0:
            # What follows shows that this was no torn tail.
            damages.append(
                (
                    f"store.db-wal, position {bad_frame}",
                    "a frame fails its checksum; SQLite ignores the WAL from here on",
                )
            )
            break
        else:
            uncommitted.add(frame.number)
            if frame.page_count:
                newer |= uncommitted
                uncommitted.clear()
    pages = -(-size // PAGE_BYTES)
    for first in range(1, pages + 1, CHUNK_PAGES):
        content = os.pread(copy.database, CHUNK_PAGES * PAGE_BYTES, (first - 1) * PAGE_BYTES)
        for number in range(first, min(first + CHUNK_PAGES, pages + 1)):
            at = (number - first) * PAGE_BYTES
            if number not in newer and not page_is_intact(content[at : at + PAGE_BYTES], number):
                damages.append((f"page {number}, position {(number - 1) * PAGE_BYTES}", "the page fails its checksum"))
    # Without SQLite, the count in the first page.
    last = copy.page_count or int.from_bytes(os.pread(copy.database, 4, 28), "big")
    missing = [number for number in range(pages + 1, last + 1) if number not in newer and number != LOCKED_PAGE]
    if missing:
        damages.append((f"page {missing[0]}", f"the file is truncated: it has {pages} pages of {last}"))
    return pages + count, size + wal_size, damages


def check_structure(directory: DataDirectory) -> Found:
    """What SQLite finds: cells, b-trees, indexes, types of columns."""
    rows = directory.copy.query(f"PRAGMA integrity_check({MOST_PROBLEMS})")
    return 1, 0, [("structure", str(row[0])) for row in rows if row[0] != "ok"]


def check_commits(directory: DataDirectory) -> Found:
    """The hash chain of the commits, and the commit marker: no acknowledged commit is missing."""
    damages: list[tuple[str, str]] = []
    rows = directory.copy.query("SELECT seq, digest, chain FROM commits ORDER BY seq")
    chains: dict[int, bytes] = {}
    before: bytes | None = None
    for seq, digest, chain in rows:
        if before is not None and chain != link(before, as_int(seq), as_int(digest)):
            damages.append((f"commit {as_int(seq)}", "the hash chain breaks"))
        before = chains[as_int(seq)] = as_bytes(chain)
    if not rows:
        damages.append(("table commits", "the commit sequence is missing"))
    marker, last = directory.marker, max(chains, default=0)
    if marker is None:
        damages.append(("commit-marker", "the file is missing or damaged: lost commits cannot be ruled out"))
        return len(rows), 0, damages
    lost = directory.lost_commits
    if lost is not None:
        damages.append(("store.db-wal", f"the acknowledged commits {lost[0]} to {lost[1]} are missing"))
    elif marker.chain != chains.get(marker.commit_seq, marker.chain):
        damages.append((f"commit {marker.commit_seq}", "store.db and commit-marker do not share one history"))
    stamp = stamp_in(os.pread(directory.copy.database, HEADER_BYTES, 0))
    if marker.checkpoint and 0 < (marker.checkpoint - stamp) % STAMPS < STAMPS // 2:
        damages.append(("page 1", "store.db is an older copy: the last WAL checkpoint did not write it"))
    elif stamp and last and 0 < (stamp - stamp_of(last)) % STAMPS < STAMPS // 2:
        damages.append(("store.db-wal", "the WAL is an older copy: it ends before the last checkpoint"))
    return len(rows), 0, damages


def check_rows(directory: DataDirectory, topic: str) -> Found:
    """The checksum of each row of a topic kept in the store, and the indexes over the rows."""
    damages: list[tuple[str, str]] = []
    count = size = 0
    try:
        for _, row in rows_by_offset(directory.copy, topic):
            count += 1
            size += len(row.key) + len(row.value or b"")
    except StorageError as error:
        return count, size, [(f"row {count + 1} of {topic}", str_of(error))]
    if topic != EVENTS:
        damages += _index_damages(directory, PREFIXES[topic], topic)
    return count, size, damages


def _index_damages(directory: DataDirectory, prefix: str, topic: str) -> list[tuple[str, str]]:
    copy = directory.copy
    settled = copy.meta("settled_seq" if topic == OFFSETS else f"{prefix}_settled_seq") or "0"
    checks = {
        f"{prefix}_positions": f"SELECT count(*) FROM {prefix}_log AS o LEFT JOIN {prefix}_positions AS p"
        f' ON p.partition = o.partition AND p."offset" = o."offset" WHERE o.seq <= {int(settled)} AND p.seq IS NOT o.seq',
        f"{prefix}_latest": f"SELECT count(*) FROM {prefix}_latest AS l LEFT JOIN {prefix}_log AS o"
        " ON o.seq = l.seq AND o.key = l.key WHERE o.seq IS NULL",
    }
    found = []
    for table, sql in checks.items():
        try:
            wrong = as_int(copy.query(sql)[0][0])
        except StoreDamageError as error:
            found.append((f"table {table}", str_of(error)))
            continue
        if wrong:
            found.append((f"table {table}", f"{wrong} entries of {topic} do not lead to their rows"))
    return found


def check_ends(directory: DataDirectory) -> Found:
    """The slots of synced-ends, and that they, the marker and the store share one history."""
    before, marker = directory.ends_before, directory.marker
    listed = directory.listed_partitions()
    if before.head is None and directory.format_version < 5:
        return len(before.content), len(before.content), []
    damages: list[tuple[str, str]] = []
    if before.head is None:
        place, why = ("whole file", "the file is missing") if not before.content else ("head", "the head is damaged")
        return 0, len(before.content), [(place, f"{why}: lost records cannot be ruled out")]
    if marker is not None and before.head.epoch < marker.ends_epoch and not directory.is_in_use:
        damages.append(("head", "the file is older than commit-marker: lost records cannot be ruled out"))
    # A slot that the broker was writing is whole the next time.
    damaged = before.damaged & read_ends(directory.path).damaged if directory.is_in_use else before.damaged
    last = directory.last_commit
    for one in listed:
        end, name = directory.ends_after.ends.get(one.partition_id), f"{one.topic}-{one.partition}"
        if end is None or (end.topic_id, end.partition) != (one.topic_id, one.partition):
            damages.append((name, "the file does not hold the end of this partition"))
        elif one.partition_id in damaged:
            damages.append((name, "a slot fails its checksum"))
        known = before.ends.get(one.partition_id)
        if known is not None and known.commit_seq > last:
            damages.append((name, f"the end follows commit {known.commit_seq}, which the store does not have"))
    return len(before.ends), len(before.content), damages


def str_of(error: StorageError) -> str:
    """The message without advice for a start."""
    return Exception.__str__(error)
