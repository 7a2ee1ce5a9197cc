"""The groups with a live offset (table offsets_groups), so that a start need not search the whole store for them."""

from __future__ import annotations

from collections.abc import Iterator

from broker.storage.rows.group_keys import METADATA_KEYS, OFFSET_KEYS, after, group_of
from broker.storage.store.database import Store
from broker.storage.store.values import as_bytes

_ADD_GROUP = "INSERT INTO offsets_groups VALUES (?) ON CONFLICT DO NOTHING"


def fill_group_index(store: Store) -> None:
    """Fill the index from the rows if the store is new, or of a format without it."""
    if store.meta("groups_indexed") is None:
        store.derive_many(_ADD_GROUP, [(prefix,) for prefix in _scan(store)])
        store.set_meta("groups_indexed", "1")


def update_group_index(store: Store, after_seq: int) -> None:
    """Bring the index up to date with the rows after `after_seq`. offsets_latest has them already."""
    rows = store.query(
        "SELECT key, value IS NULL, max(seq) FROM offsets_log WHERE seq > ? AND key >= ? AND key < ? GROUP BY key",
        (after_seq, OFFSET_KEYS, METADATA_KEYS),
    )
    live, doubtful = dict[bytes, None](), dict[bytes, None]()
    for key, is_tombstone, _ in rows:
        (doubtful if is_tombstone else live)[group_of(as_bytes(key))[0]] = None
    store.derive_many(_ADD_GROUP, [(prefix,) for prefix in live])
    gone = [(p,) for p in doubtful if p not in live and _first_live(store, p, after(p)) is None]
    store.derive_many("DELETE FROM offsets_groups WHERE prefix = ?", gone)


def indexed_groups(store: Store) -> Iterator[str]:
    """The ids of the groups in the index."""
    for (prefix,) in store.query("SELECT prefix FROM offsets_groups"):
        yield group_of(as_bytes(prefix))[1]


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
