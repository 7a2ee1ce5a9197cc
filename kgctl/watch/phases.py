"""The phase of each member in a rebalance."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.groups import CLASSIC, GroupDescription, MemberRow
from kgctl.model.reconciliation import STABLE
from kgctl.watch.silence import is_silent

JOINED, AWAITING_SYNC, SYNCED = "joined", "awaiting sync", "synced"
NOT_REJOINED = "not rejoined yet"
SILENT = "silent"

_BROKER_PHASES = {
    "joined": JOINED,
    "join awaited": NOT_REJOINED,
    "sync awaited": AWAITING_SYNC,
    "synced": SYNCED,
    "stable": STABLE,
}


@dataclass(frozen=True, slots=True)
class MemberPhase:
    """A member and its phase in a rebalance. `phase` is None if the cluster does not report it.

    `is_silent`: the health of the group names this member as silent.
    """

    member: MemberRow
    phase: str | None
    is_silent: bool


def member_phases(group: GroupDescription) -> tuple[MemberPhase, ...]:
    """The members in the order of the description."""
    return tuple(MemberPhase(member, phase_of(group, member), is_silent(member)) for member in group.members)


def phase_of(group: GroupDescription, member: MemberRow) -> str | None:
    """The phase that the description has; else what the state of a classic group proves."""
    if member.phase is not None:
        # A newer broker may report phases that this version does not know.
        return _BROKER_PHASES.get(member.phase, member.phase)
    return STABLE if group.type == CLASSIC and group.state == "Stable" else None
