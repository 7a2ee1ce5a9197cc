"""A feed with prepared answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import KgctlError, Refused
from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.cluster_label import ClusterLabel

T = TypeVar("T")
LOCAL = ClusterLabel("127.0.0.1:9092")


class PreparedFeed:
    """Each call takes the next prepared answer; the last one stays. An error is raised; None never answers."""

    def __init__(
        self,
        snapshots: Sequence[Snapshot | KgctlError | None] = (),
        groups: Mapping[str, Sequence[GroupSnapshot | KgctlError | None]] | None = None,
        cluster: ClusterLabel = LOCAL,
    ) -> None:
        self.cluster = cluster
        self._snapshots = list(snapshots)
        self._groups = {group: list(some) for group, some in (groups or {}).items()}
        self.asked = 0

    async def snapshot(self) -> Snapshot:
        return await self._next(self._snapshots)

    async def group_snapshot(self, group: str, *, whole_history: bool) -> GroupSnapshot:
        return await self._next(self._groups[group])

    async def ask(self, question: Callable[[Admin], T]) -> T:
        raise Refused("a prepared feed answers no questions")

    def close(self) -> None:
        pass

    async def _next(self, prepared: list[T | KgctlError | None]) -> T:
        self.asked += 1
        found = prepared.pop(0) if len(prepared) > 1 else prepared[0]
        if found is None:
            await asyncio.Event().wait()
        if isinstance(found, KgctlError):
            raise found
        assert found is not None
        return found
