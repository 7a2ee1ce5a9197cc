"""What all group types share: the offsets, the pending event, and the questions that requests for any type ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from broker.cores import core
from broker.cores.groups.events import PendingEvent
from broker.cores.groups.records import OffsetCommitRecord, StateRecord
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import Message

AnyStep: TypeAlias = "core.Step[Any, Any]"
Handlers: TypeAlias = "Mapping[type[Message], Callable[[Any, Any], None]]"  # by request
NO_HANDLERS: Handlers = {}
# KIP-430: the bits of read, delete, describe, describe configs and alter configs. All operations are allowed.
ALL_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))


class Committer(NamedTuple):
    """Who commits offsets, in which generation or member epoch, and in which version of the request."""

    member_id: str
    group_instance_id: str | None
    generation: int
    api_version: int
    is_transactional: bool = False


class Group(ABC):
    """A group of any type.

    Its offsets are hard state, which only `HardState` changes. A type subclasses this in its package (`classic`), which
    also holds the requests and timers that are specific to it; `coordinator` names these in its tables.
    """

    __slots__ = ("_pending_event", "generation", "group_id", "offsets", "offsets_loaded", "protocol_type")

    # The type as ListGroups spells it.
    TYPE: ClassVar[str]

    def __init__(self, group_id: str, *, offsets_loaded: bool) -> None:
        self.group_id = group_id
        # hard
        self.offsets: dict[str, dict[int, OffsetCommitRecord]] = {}
        self.offsets_loaded = offsets_loaded
        # soft
        self.generation = 0
        self.protocol_type: str | None = None
        self._pending_event: PendingEvent | None = None

    @property
    def pending_event(self) -> PendingEvent:
        """What the next event of this group will report."""
        if self._pending_event is None:
            self._pending_event = PendingEvent()
        return self._pending_event

    @property
    def has_pending_event(self) -> bool:
        return self._pending_event is not None

    def clear_pending_event(self) -> None:
        self._pending_event = None

    def inherit(self, former: Group) -> None:
        """Take the offsets and the pending event of the group's former self, which was of another type."""
        self.offsets, self.offsets_loaded = former.offsets, former.offsets_loaded
        self._pending_event = former._pending_event

    # ---- what requests and events of all types ask ----------------------------------------------------------------

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state as Kafka spells it to users."""

    @property
    @abstractmethod
    def member_count(self) -> int: ...

    def classic_handlers(self) -> Handlers:
        """The requests of the classic protocol that this type handles in another way than classic groups."""
        return NO_HANDLERS

    @abstractmethod
    def check_commit(self, committer: Committer) -> ErrorCode:
        """NONE if this member may commit offsets in this generation now."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """NONE if this member may fetch offsets in this epoch; only types with member epochs refuse any."""
        return ErrorCode.NONE

    @abstractmethod
    def on_commit(self, step: AnyStep, member_id: str) -> None:
        """Note that an accepted commit shows the member to be alive."""

    @abstractmethod
    def check_offset_delete(self) -> ErrorCode:
        """NONE if offsets of topics that no member subscribes to may be deleted."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, as far as its offsets are concerned."""

    @abstractmethod
    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        """When the retention of an offset committed at this time began; None while no offset of the group may expire."""

    @abstractmethod
    def check_delete(self) -> ErrorCode:
        """NONE if the group may be deleted."""

    @abstractmethod
    def is_abandoned(self) -> bool:
        """Whether the group is Empty and no client is about to join."""

    def release(self, step: AnyStep) -> None:  # noqa: B027
        """Remove what the group has besides its records, before it is deleted."""

    @abstractmethod
    def cancel_timers(self, step: AnyStep) -> None:
        """Cancel all timers of the group, before it is deleted or becomes one of another type."""

    @abstractmethod
    def tombstones(self, wall_ms: int, *, keeps_offsets: bool = False) -> list[StateRecord]:
        """The records that delete the group. `keeps_offsets`: it becomes one of another type."""
