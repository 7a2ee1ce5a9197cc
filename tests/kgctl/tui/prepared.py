"""A feed with prepared answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import KgctlError, Refused
from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.groups import AllGroups, OneGroup
from kgctl.tui.feed.read import Read

T = TypeVar("T")
LOCAL = ClusterLabel("127.0.0.1:9092")


class PreparedFeed:
    """Each read takes its next prepared answer; the last one stays. An error is raised; None never answers.

    `snapshots` are for AllGroups(), `groups` for OneGroup(name), `reads` for any other read.
    """

    def __init__(
        self,
        snapshots: Sequence[Snapshot | KgctlError | None] = (),
        groups: Mapping[str, Sequence[GroupSnapshot | KgctlError | None]] | None = None,
        cluster: ClusterLabel = LOCAL,
        reads: Mapping[Read[Any], Sequence[Any]] | None = None,
    ) -> None:
        self.cluster = cluster
        self._prepared: dict[Read[Any], list[Any]] = {AllGroups(): list(snapshots) or [None]}
        self._prepared |= {OneGroup(group): list(some) for group, some in (groups or {}).items()}
        self._prepared |= {read: list(some) for read, some in (reads or {}).items()}
        self._asked: Counter[Read[Any]] = Counter()

    def asked(self, read: Read[Any]) -> int:
        """How often this was read."""
        return self._asked[read]

    async def read(self, read: Read[T]) -> T:
        self._asked[read] += 1
        if read not in self._prepared:
            raise Refused(f"no answer is prepared for {read}")
        found: T = await self._next(self._prepared[read])
        return found

    async def ask(self, question: Callable[[Admin], T]) -> T:
        raise Refused("a prepared feed answers no questions")

    def close(self) -> None:
        pass

    async def _next(self, prepared: list[T | KgctlError | None]) -> T:
        found = prepared.pop(0) if len(prepared) > 1 else prepared[0]
        if found is None:
            await asyncio.Event().wait()
        if isinstance(found, KgctlError):
            raise found
        assert found is not None
        return found
