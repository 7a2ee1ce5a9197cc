"""Finalized feature levels, such as transaction.version, that were set to another level than the default."""

from __future__ import annotations

from collections.abc import Mapping

from broker.storage.store.database import Store
from broker.storage.store.values import as_int, as_text


class FeatureLevels:
    """Changes are part of the next flush. `epoch` counts them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        rows = store.query("SELECT name, level FROM feature_levels")
        self._levels = {as_text(name): as_int(level) for name, level in rows}
        self.epoch = int(store.meta("feature_epoch") or 0)

    @property
    def levels(self) -> Mapping[str, int]:
        return self._levels

    def set(self, name: str, level: int | None) -> None:
        """None removes the level: the default applies."""
        self.epoch += 1
        self._store.set_meta("feature_epoch", str(self.epoch))
        if level is None:
            self._levels.pop(name, None)
            self._store.execute("DELETE FROM feature_levels WHERE name = ?", (name,))
        else:
            self._levels[name] = level
            self._store.execute("INSERT OR REPLACE INTO feature_levels VALUES (?, ?)", (name, level))
