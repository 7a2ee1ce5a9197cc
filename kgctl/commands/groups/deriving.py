"""Events of groups on clusters without a history, derived from the generations in `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kgctl.client.net.errors import KgctlError, Precondition

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.model.events import EventRow
    from kgctl.model.groups import TopicPartitions


def deriver(admin: Admin, missing: Precondition) -> Callable[[], list[EventRow]]:
    """A function that returns the events since its last call, oldest first. `missing` says why there is no history.

    Its first call raises Precondition if __consumer_offsets cannot be read.
    """
    from kgctl.client.admin.consumer_group_records import ConsumerGroups
    from kgctl.watch.derived_events import DerivedEvents, StoredGeneration, without_conversions

    derived, newer = DerivedEvents(), ConsumerGroups()
    offsets = None
    stored: list[StoredGeneration] = []

    def take(
        group: str,
        timestamp: int,
        generation: int | None,
        members: Mapping[str, tuple[TopicPartitions, ...] | None] | None,
    ) -> None:
        if members is None:
            stored.append(StoredGeneration(group, timestamp, generation, None))
            return
        known = {name: owned for name, owned in members.items() if owned is not None}
        assignment = known if len(known) == len(members) else None
        stored.append(
            StoredGeneration(group, timestamp, generation, tuple(members), assignment, is_deleted=generation is None)
        )

    def read() -> list[EventRow]:
        nonlocal offsets
        is_first = offsets is None
        stored.clear()
        try:
            offsets = admin.read_generations(offsets, newer, take)
        except KgctlError as error:
            if error.retriable or not is_first:
                raise
            raise Precondition(
                f"{missing} Rebalances cannot be derived from __consumer_offsets either: {error}"
            ) from None
        ordered = sorted(stored, key=lambda one: one.timestamp)
        rows = (derived.add(one) for one in without_conversions(ordered))
        return [row for row in rows if row is not None]

    return read
