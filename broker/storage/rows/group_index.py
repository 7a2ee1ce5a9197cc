"""The groups with a live offset (table offsets_groups), so that a start need not search the whole store for them.

Whether a tombstone was that of the last offset of its group is not looked up at once: the group becomes doubtful, and the next
check for expired offsets, end of a removal, or start resolves this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from broker.storage.rows.group_keys import METADATA_KEYS, OFFSET_KEYS, after, group_of, offset_prefix
from broker.storage.store.database import Store
from broker.storage.store.values import as_bytes, as_int

# How many keys a query reads.
SCANNED_KEYS = 500
_ADD_GROUP = "INSERT INTO offsets_groups VALUES (?, 0) ON CONFLICT DO UPDATE SET doubtful = 0"
_DOUBT_GROUP = "UPDATE offsets_groups SET doubtful = ? WHERE prefix = ?"

# Whether the row of this sequence number, the newest of its key, was removed with its topic or group.
IsRemoved = Callable[[bytes, int], bool]


def fill_group_index(store: Store) -> None:
    """Fill the index from the rows if the store is new, or of a format without it."""
    if store.meta("groups_indexed") is None:
        store.derive_many(_ADD_GROUP, [(prefix,) for prefix in _scan(store)])
        store.set_meta("groups_indexed", "1")


def update_group_index(store: Store, after_seq: int, until_seq: int) -> None:
    """Bring the index up to date with the rows after_seq < seq <= until_seq."""
    rows = store.query(
        "SELECT key, value IS NULL, max(seq) FROM offsets_log WHERE seq > ? AND seq <= ? AND key >= ? AND key < ? GROUP BY key",
        (after_seq, until_seq, OFFSET_KEYS, METADATA_KEYS),
    )
    live, buried = dict[bytes, None](), dict[bytes, int]()
    for key, is_tombstone, seq in rows:
        prefix = group_of(as_bytes(key))[0]
        if is_tombstone:
            buried[prefix] = max(as_int(seq), buried.get(prefix, 0))
        else:
            live[prefix] = None
    store.derive_many(_ADD_GROUP, [(prefix,) for prefix in live])
    store.derive_many(_DOUBT_GROUP, [(seq, prefix) for prefix, seq in buried.items() if prefix not in live])


def doubt_group(store: Store, group_id: str, seq: int) -> None:
    """Note that the group may have no live offset after the row `seq`."""
    store.derive_many(_DOUBT_GROUP, [(seq, offset_prefix(group_id))])


def indexed_groups(store: Store, is_removed: IsRemoved) -> Iterator[str]:
    """The ids of the groups in the index."""
    for _ in resolve_doubts(store, is_removed):
        pass
    for (prefix,) in store.query("SELECT prefix FROM offsets_groups"):
        yield group_of(as_bytes(prefix))[1]


def resolve_doubts(store: Store, is_removed: IsRemoved) -> Iterator[None]:
    """Look for a live offset of each doubtful group, in slices; appends and flushes may run between them."""
    for prefix, doubtful in store.query("SELECT prefix, doubtful FROM offsets_groups WHERE doubtful > 0"):
        assert isinstance(prefix, bytes)
        low, is_live = prefix, False
        while not is_live and (found := _newest_rows(store, low, after(prefix))):
            is_live = any(value and not is_removed(key, seq) for key, seq, value in found)
            low = found[-1][0] + b"\0"
            yield
        # Unless the group changed since: then it is either live, or doubtful because of a newer tombstone.
        change = "UPDATE offsets_groups SET doubtful = 0" if is_live else "DELETE FROM offsets_groups"
        store.derive(f"{change} WHERE prefix = ? AND doubtful = ?", (prefix, doubtful))


def _newest_rows(store: Store, low: bytes, high: bytes) -> list[tuple[bytes, int, bool]]:
    """The first keys from `low` on, with the number of their newest row and whether it has a value."""
    rows = store.query(
        "SELECT l.key, l.seq, o.value IS NOT NULL FROM offsets_latest AS l CROSS JOIN offsets_log AS o ON o.seq = l.seq"
        " WHERE l.key >= ? AND l.key < ? ORDER BY l.key LIMIT ?",
        (low, high, SCANNED_KEYS),
    )
    return [(as_bytes(key), as_int(seq), bool(value)) for key, seq, value in rows]


def _scan(store: Store) -> list[bytes]:
    """Prefixes of the groups with a live offset, from the settled rows: one seek per group, all over the store."""
    found, low = list[bytes](), OFFSET_KEYS
    while (key := _first_live(store, low, METADATA_KEYS)) is not None:
        found.append(group_of(key)[0])
        low = after(found[-1])
    return found


def _first_live(store: Store, low: bytes, high: bytes) -> bytes | None:
    found = store.query(
        "SELECT l.key FROM offsets_latest AS l CROSS JOIN offsets_log AS o ON o.seq = l.seq"
        " WHERE l.key >= ? AND l.key < ? AND o.value IS NOT NULL ORDER BY l.key LIMIT 1",
        (low, high),
    )
    return as_bytes(found[0][0]) if found else None
