"""One step of the coordinator: what comes in, what it may touch, and the effects that it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from broker.cores import core
from broker.cores.core import Effects, RequestContext
from broker.cores.groups.events import Assignment, GroupEvent, Happening, Names, Tale
from broker.cores.groups.group import Group, Member
from broker.cores.groups.hard_state import HardState
from broker.cores.groups.records import StateRecord
from broker.cores.groups.settings import GroupSettings
from broker.cores.groups.story import DETAIL_CHARACTERS, Cause, Stories
from broker.timers import Timers

GroupEffects: TypeAlias = "Effects[StateRecord, GroupEvent]"

# The kinds of timers; a key is (kind, group id[, member id]).
SESSION, JOIN, SYNC, EXPIRY = "session", "join", "sync", "expiry"


@dataclass(slots=True)
class CoordinatorState:
    """Everything that the coordinator holds between two steps."""

    settings: GroupSettings
    new_id: Callable[[], str]
    hard: HardState
    timers: Timers
    stories: Stories
    to_check: list[str]  # groups that the present check for expired offsets has still to look at


class Step(core.Step[StateRecord, GroupEvent]):
    """A step of the group coordinator: what a handler or a timer may touch, and the effects so far."""

    __slots__ = ("coordinator", "groups")

    def __init__(
        self, coordinator: CoordinatorState, now_ms: int, wall_ms: int, context: RequestContext | None = None
    ) -> None:
        super().__init__(coordinator.hard.apply, coordinator.timers, now_ms, wall_ms, context)
        self.coordinator = coordinator
        self.groups = coordinator.hard.groups

    def tell(
        self,
        group: Group,
        cause: Cause,
        *,
        joined: list[str] | None = None,
        left: list[str] | None = None,
        detail: str = "",
    ) -> None:
        """Add to the group's story an event that leads to its next generation."""
        generation = self.next_generation(group)
        tale = self.tale(group)
        tale.joined.add(joined or ())
        if left:
            tale.left.add_for(cause, detail[:DETAIL_CHARACTERS], left)
        if group.can_rebalance():
            # What comes while a rebalance is under way is not what began it.
            tale.cause, tale.detail = cause, detail[:DETAIL_CHARACTERS]
        self.coordinator.stories.tell(group.group_id, cause, generation, self.wall_ms, joined or (), left or (), detail)

    def tale(self, group: Group) -> Tale:
        """What the group's next event has to tell, to be added to."""
        if group.tale is None:
            group.tale = Tale()
        return group.tale

    def happened(
        self,
        group: Group,
        happening: Happening,
        *,
        partitions_moved: int | None = None,
        assignment: Assignment | None = None,
    ) -> None:
        """Emit an event with what has gathered since the last one. A rebalance that goes on keeps its cause and its members."""
        tale = self.tale(group)
        goes_on = happening is Happening.REBALANCE_STARTED
        prepared, completing = tale.prepared_from_ms, tale.completing_from_ms
        absent = Names()
        absent.add(tale.absent)
        self.events.append(
            GroupEvent(
                group.group_id,
                happening,
                tale.cause,
                tale.detail,
                group.generation,
                self.wall_ms,
                len(group.members),
                tuple(tale.joined.named),
                tale.joined.count,
                tuple(tale.left.named),
                tale.left.count,
                prepare_ms=None
                if goes_on or prepared is None
                else (self.now_ms if completing is None else completing) - prepared,
                complete_ms=None if goes_on or completing is None else self.now_ms - completing,
                partitions_moved=partitions_moved,
                commits_rejected=tale.commits_rejected,
                left_causes=tuple(tale.left.causes),
                absent=tuple(absent.named),
                absent_count=absent.count,
                assignment=assignment,
            )
        )
        tale.commits_rejected = 0
        if not goes_on:
            group.tale = None

    # ---- generations and sessions --------------------------------------------------------------------------------

    def next_generation(self, group: Group) -> int:
        """One above the present generation, and above any that was given out and lost in a crash."""
        return max(group.generation, self.coordinator.hard.floors.get(group.group_id, 0)) + 1

    def restart_session(self, group: Group, member: Member) -> None:
        """The member has shown that it lives: it must show it again within its session timeout."""
        member.heard_ms = self.now_ms
        self.timers.set((SESSION, group.group_id, member.member_id), self.now_ms + member.session_timeout_ms)

    def end_session(self, group: Group, member_id: str) -> None:
        self.timers.cancel((SESSION, group.group_id, member_id))
