"""Compaction of __consumer_offsets: of older rows only the newest of each key stays, and tombstones for a while."""

from __future__ import annotations

from collections.abc import Iterator

from broker.storage.rows.offsets_rows import OffsetsRows
from broker.storage.store.database import Store

# Like an active segment, the newest rows are left alone: who reads along sees every commit.
KEPT_ROWS = 10_000
SLICE_ROWS = 2_000


def wants_compaction(rows: OffsetsRows, store: Store) -> bool:
    """At least as many rows have come as stayed after the last pass."""
    compacted_seq = int(store.meta("compacted_seq") or 0)
    stayed = int(store.meta("compacted_rows") or 0)
    return rows.last_seq - compacted_seq >= max(2 * KEPT_ROWS, stayed)


def compact(rows: OffsetsRows, store: Store, oldest_tombstone_ms: int) -> Iterator[None]:
    """One pass, in slices; other calls and commits may come between two of them.

    Tombstones from before `oldest_tombstone_ms` go. The newest row of a partition stays whatever it is: the end
    of the partition is known by it.
    """
    rows.settle()
    end = rows.last_seq - KEPT_ROWS
    stayed = KEPT_ROWS
    seq = 0
    while seq < end:
        upto = min(end, _slice_end(store, seq))
        last_offsets = [offset - 1 for offset in rows.next_offsets]
        superseded: list[tuple[int, int, int]] = []
        forgotten: list[tuple[bytes]] = []
        for found in store.query(
            'SELECT o.seq, o.partition, o."offset", o.key, o.value IS NULL AND o.timestamp < ?, l.seq = o.seq'
            " FROM offsets_log AS o LEFT JOIN offsets_latest AS l ON l.key = o.key WHERE o.seq > ? AND o.seq <= ?",
            (oldest_tombstone_ms, seq, upto),
        ):
            row_seq, partition, offset, key, expired, newest = found
            assert isinstance(row_seq, int)
            assert isinstance(partition, int)
            assert isinstance(offset, int)
            assert isinstance(key, bytes)
            if offset == last_offsets[partition] or (newest and not expired):
                stayed += 1
                continue
            superseded.append((row_seq, partition, offset))
            if newest:
                forgotten.append((key,))
        if superseded:
            store.execute_many(
                'DELETE FROM offsets_positions WHERE partition = ? AND "offset" = ?',
                [(partition, offset) for _, partition, offset in superseded],
            )
            store.execute_many("DELETE FROM offsets_log WHERE seq = ?", [(row[0],) for row in superseded])
        if forgotten:
            store.execute_many("DELETE FROM offsets_latest WHERE key = ?", forgotten)
        seq = upto
        yield
    store.set_meta("compacted_seq", str(rows.last_seq))
    store.set_meta("compacted_rows", str(stayed))


def _slice_end(store: Store, after: int) -> int:
    """The sequence number some SLICE_ROWS rows further on; gaps that earlier passes left cost nothing."""
    found = store.query("SELECT seq FROM offsets_log WHERE seq > ? ORDER BY seq LIMIT 1 OFFSET ?", (after, SLICE_ROWS))
    if found and isinstance(found[0][0], int):
        return found[0][0]
    return 2**63 - 1
