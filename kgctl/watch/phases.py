"""Where each member of a group stands in its state machine, in words for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from kgctl.model.groups import CLASSIC, CONSUMER, GroupDescription, MemberRow
from kgctl.watch.verdict import is_dead

JOINED, AWAITING_SYNC, SYNCED, MISSING, STABLE = "joined", "awaiting sync", "synced", "missing", "stable"
RECONCILING = "reconciling"
WORDS = (MISSING, JOINED, AWAITING_SYNC, SYNCED, RECONCILING, STABLE)
WHY_UNKNOWN = (
    "Kafka does not tell where a member stands in a rebalance, nor when it was last heard of; kgctl's own broker does."
)

_BROKER_WORDS = {
    "joined": JOINED,
    "join awaited": MISSING,
    "sync awaited": AWAITING_SYNC,
    "synced": SYNCED,
    "stable": STABLE,
}


@dataclass(frozen=True, slots=True)
class Standing:
    """A member and where it stands: one of WORDS, None where that is not known (WHY_UNKNOWN).

    `silent_share` is the age of its last heartbeat as a share of its session timeout, 1.0 and above: its session is over; None
    where it is not known. `is_dead`: silent for so long that the verdict on the group names it.
    """

    member: MemberRow
    word: str | None
    silent_share: float | None
    is_dead: bool


def standings(group: GroupDescription) -> tuple[Standing, ...]:
    """The members in the order of the description."""
    return tuple(
        Standing(member, standing(group, member), silent_share(member), is_dead(member)) for member in group.members
    )


def standing(group: GroupDescription, member: MemberRow) -> str | None:
    """As our broker tells it; elsewhere what the state of a group or the epochs of a member (KIP-848) say without doubt."""
    if member.phase is not None:
        # A newer broker may have other words.
        return _BROKER_WORDS.get(member.phase, member.phase)
    if group.type == CONSUMER and member.current_epoch is not None:
        is_there = member.current_epoch == member.target_epoch and member.current_assignment == member.target_assignment
        return STABLE if is_there else RECONCILING
    return STABLE if group.type == CLASSIC and group.state == "Stable" else None


def silent_share(member: MemberRow) -> float | None:
    if member.heartbeat_age_ms is None or not member.session_timeout_ms:
        return None
    return member.heartbeat_age_ms / member.session_timeout_ms


def tally(found: Iterable[Standing]) -> tuple[tuple[str, int], ...]:
    """How many members stand where, in the order of WORDS; words without members and members without a word are left out."""
    counts = Counter(each.word for each in found if each.word is not None)
    known = [(word, counts[word]) for word in WORDS if counts[word]]
    return (*known, *sorted((word, number) for word, number in counts.items() if word not in WORDS))
