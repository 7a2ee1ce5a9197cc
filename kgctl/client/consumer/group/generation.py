"""Which generation of the group a member is in, and how far its rebalance is."""

from __future__ import annotations

from enum import Enum

from broker.light_named_tuples import NamedTuple


class Generation(NamedTuple):
    """A member may have an id before it is in a generation."""

    generation_id: int = -1
    member_id: str = ""
    protocol_name: str | None = None

    @property
    def is_reset(self) -> bool:
        """The member id may still be valid."""
        return self.generation_id == -1 and self.protocol_name is None

    @property
    def owns_nothing(self) -> bool:
        """What the member had is lost: other members may have it."""
        return self.generation_id == -1 or not self.member_id


NO_GENERATION = Generation()


class MemberState(Enum):
    UNJOINED = "unjoined"
    PREPARING = "preparing rebalance"  # JoinGroup is on its way
    COMPLETING = "completing rebalance"  # JoinGroup is answered, the assignment is not known yet
    STABLE = "stable"

    @property
    def is_rebalancing(self) -> bool:
        return self in (MemberState.PREPARING, MemberState.COMPLETING)

    @property
    def has_joined(self) -> bool:
        """The coordinator expects heartbeats."""
        return self in (MemberState.COMPLETING, MemberState.STABLE)
