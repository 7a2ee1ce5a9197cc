"""A step of the group coordinator: one request, or the timers that are due, and what it may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from broker.cores import core
from broker.cores.core import Effects, RequestContext
from broker.cores.groups.events import (
    NAMED_CHARACTERS,
    STARTED_CHARACTERS,
    Assignment,
    EventType,
    GroupEvent,
    NamedMembers,
    first_named,
)
from broker.cores.groups.group import Group
from broker.cores.groups.hard_state import HardState
from broker.cores.groups.records import OffsetCommitRecord, StateRecord
from broker.cores.groups.settings import GroupConfigs, GroupSettings
from broker.light_dataclasses import dataclass
from broker.timers import Timers

if TYPE_CHECKING:
    from broker.cores.groups.topics import TopicCatalog
    from broker.cores.share.state import ShareState

GroupEffects: TypeAlias = "Effects[StateRecord, GroupEvent]"


class ExpiryCheck:
    """A check for expired offsets under way: what it has not reached yet."""

    __slots__ = ("group_ids", "unchecked")

    def __init__(self) -> None:
        self.group_ids: list[str] = []
        self.unchecked: list[OffsetCommitRecord] = []  # of the last group in `group_ids`, as the check found it


@dataclass(slots=True)
class CoordinatorState:
    """Everything that the coordinator holds between two steps."""

    settings: GroupSettings
    new_id: Callable[[], str]
    topics: TopicCatalog
    hard: HardState
    timers: Timers
    expiry_check: ExpiryCheck
    configs: GroupConfigs
    share_state: Callable[[], ShareState]
    started_ms: int = -1
    """When the broker started, by its wall clock; -1 before it did."""


class Step(core.Step[StateRecord, GroupEvent]):
    """A step of the group coordinator. `groups` are those of all types."""

    __slots__ = ("coordinator", "groups")

    def __init__(
        self, coordinator: CoordinatorState, now_ms: int, wall_ms: int, context: RequestContext | None = None
    ) -> None:
        super().__init__(coordinator.hard.apply, coordinator.timers, now_ms, wall_ms, context)
        self.coordinator = coordinator
        self.groups = coordinator.hard.groups

    def emit(
        self,
        group: Group,
        event_type: EventType,
        *,
        partitions_moved: int | None = None,
        assignment: Assignment | None = None,
    ) -> None:
        """Emit an event with what the group's pending event has collected.

        The start of a rebalance keeps it: the event that ends the rebalance reports its cause and its members again.
        """
        pending = group.pending_event
        has_ended = event_type is not EventType.REBALANCE_STARTED
        absent = NamedMembers()
        absent.add(pending.absent)
        characters = NAMED_CHARACTERS if has_ended else STARTED_CHARACTERS
        joined, left = (first_named(members.named, characters) for members in (pending.joined, pending.left))
        self.events.append(
            GroupEvent(
                group.group_id,
                event_type,
                pending.cause,
                pending.reason,
                group.generation,
                self.wall_ms,
                group.member_count,
                joined,
                pending.joined.count,
                left,
                pending.left.count,
                prepare_ms=pending.prepare_ms(self.now_ms) if has_ended else None,
                complete_ms=pending.complete_ms(self.now_ms) if has_ended else None,
                partitions_moved=partitions_moved,
                commits_rejected=pending.commits_rejected,
                left_causes=tuple(pending.left.causes[: len(left)]),
                absent=tuple(absent.named),
                absent_count=absent.count,
                assignment=assignment,
                group_type=group.TYPE,
                clients={one: pending.clients[one] for one in (*joined, *left) if one in pending.clients},
            )
        )
        pending.commits_rejected = 0
        if has_ended:
            group.clear_pending_event()

    def next_generation(self, group: Group) -> int:
        """One above the present generation and above every generation that members learned before a crash."""
        return max(group.generation, self.coordinator.hard.floors.get(group.group_id, 0)) + 1
