"""Users, ACLs and quotas in the store: texts by kind and name, whose meaning their owners know."""

from __future__ import annotations

from broker.storage.store.database import Store
from broker.storage.store.values import as_text


class SecurityRecords:
    """Every change is part of the store's transaction and durable after the next flush. Nothing is kept in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, kind: str, name: str, value: str) -> None:
        """Add a record, or replace the one of this name."""
        sql = "INSERT INTO security_records VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
        self._store.execute(sql, (kind, name, value))

    def delete(self, kind: str, name: str) -> None:
        """Do nothing if there is no such record."""
        self._store.execute("DELETE FROM security_records WHERE kind = ? AND name = ?", (kind, name))

    def all(self, kind: str) -> dict[str, str]:
        """The values by name, changes of this transaction included."""
        rows = self._store.query("SELECT name, value FROM security_records WHERE kind = ? ORDER BY name", (kind,))
        return {as_text(name): as_text(value) for name, value in rows}
