"""One step of the coordinator: what comes in, what it may touch, and the effects that it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from broker.cores.groups.events import Assignment, GroupEvent, Happening, Names, Tale
from broker.cores.groups.group import Group, Member, Parked
from broker.cores.groups.hard_state import HardState
from broker.cores.groups.records import HardRecord
from broker.cores.groups.settings import GroupSettings
from broker.cores.groups.story import DETAIL_CHARACTERS, Cause, Stories
from broker.protocol.wire_types import Message
from broker.timers import Timers

# The kinds of timers; a key is (kind, group id[, member id]).
SESSION, JOIN, SYNC, EXPIRY = "session", "join", "sync", "expiry"


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Who sent a request and when; `ticket` is the handle of its one answer, `client_host` looks like "/127.0.0.1"."""

    ticket: int
    api_version: int
    client_id: str
    client_host: str
    principal: str
    wall_ms: int


@dataclass(slots=True)
class Reply:
    ticket: int
    response: Message


@dataclass(slots=True)
class Effects:
    """What a step asks of the runner: append records and events, once they are durable send the replies, and come back in time.

    `wake_at_ms` is the one deadline of the whole core, on the monotonic clock: call `advance` no later than that.
    """

    records: list[HardRecord]
    replies: list[Reply]
    wake_at_ms: int | None
    events: list[GroupEvent] = field(default_factory=list)


@dataclass(slots=True)
class Core:
    """All that the coordinator knows between two steps."""

    settings: GroupSettings
    new_id: Callable[[], str]
    hard: HardState
    timers: Timers
    stories: Stories
    to_check: list[str]  # groups that the present check for expired offsets has still to look at


class Step:
    """The world as one request, or one timer, finds and leaves it."""

    __slots__ = ("context", "core", "events", "groups", "now_ms", "records", "replies", "timers", "wall_ms")

    def __init__(self, core: Core, now_ms: int, wall_ms: int, context: RequestContext | None = None) -> None:
        self.core = core
        self.groups = core.hard.groups
        self.timers = core.timers
        self.now_ms = now_ms
        self.wall_ms = wall_ms
        self.context = context
        self.records: list[HardRecord] = []
        self.replies: list[Reply] = []
        self.events: list[GroupEvent] = []

    def effects(self) -> Effects:
        return Effects(self.records, self.replies, self.timers.wake_at(), self.events)

    @property
    def request(self) -> RequestContext:
        """The context of the request that this step handles."""
        assert self.context is not None, "a timer has no request"
        return self.context

    # ---- what a step does ----------------------------------------------------------------------------------------

    def record(self, record: HardRecord) -> None:
        """Change hard state: at once here, and for good when the runner has committed the record."""
        self.records.append(record)
        self.core.hard.apply(record)

    def reply(self, response: Message) -> None:
        self.replies.append(Reply(self.request.ticket, response))

    def answer(self, parked: Parked, response: Message) -> None:
        self.replies.append(Reply(parked.ticket, response))

    def park(self) -> Parked:
        """The request of this step, to be answered by a later one."""
        return Parked(self.request.ticket, self.request.api_version)

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
        self.core.stories.tell(group.group_id, cause, generation, self.wall_ms, joined or (), left or (), detail)

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
        return max(group.generation, self.core.hard.floors.get(group.group_id, 0)) + 1

    def restart_session(self, group: Group, member: Member) -> None:
        """The member has shown that it lives: it must show it again within its session timeout."""
        member.heard_ms = self.now_ms
        self.timers.set((SESSION, group.group_id, member.member_id), self.now_ms + member.session_timeout_ms)

    def end_session(self, group: Group, member_id: str) -> None:
        self.timers.cancel((SESSION, group.group_id, member_id))
