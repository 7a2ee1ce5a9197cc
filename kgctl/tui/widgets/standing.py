"""Where each member of a group stands in a rebalance, and what to call it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum

from kgctl.model.groups import GroupDescription, MemberRow
from kgctl.tui import cells

_UUID = re.compile(r"-?([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.IGNORECASE)


class Standing(StrEnum):
    JOINED = "joined"
    AWAITING_SYNC = "awaiting sync"
    SYNCED = "synced"
    MISSING = "missing"


SIGNS: Mapping[Standing | None, str] = {
    Standing.JOINED: "\u25cf",
    Standing.AWAITING_SYNC: "\u25d0",
    Standing.SYNCED: "\u2713",
    Standing.MISSING: "\u25cb",
    None: "\u00b7",
}
_OF_PHASES = {
    "joined": Standing.JOINED,
    "join awaited": Standing.MISSING,
    "sync awaited": Standing.AWAITING_SYNC,
    "synced": Standing.SYNCED,
    "stable": Standing.SYNCED,
}


def standing_of(group: GroupDescription, member: MemberRow) -> Standing | None:
    """None where the cluster does not tell; the newer protocol (KIP-848) tells by epochs."""
    if member.phase is not None:
        return _OF_PHASES.get(member.phase)
    if group.group_epoch is None or member.current_epoch is None:
        return None
    return Standing.SYNCED if member.current_epoch >= group.group_epoch else Standing.AWAITING_SYNC


def is_done(group: GroupDescription, standing: Standing | None) -> bool:
    """Whether nobody waits for a member that stands there."""
    if standing is Standing.JOINED:
        return group.state == "PreparingRebalance"
    return standing is Standing.SYNCED


def short_id(member_id: str) -> str:
    """A member id without most of the UUID that brokers and clients end it with."""
    return cells.name(_UUID.sub(lambda found: f"-{found[1]}", member_id).lstrip("-"))


def names(members: Sequence[MemberRow]) -> dict[str, str]:
    """What to call each member, by member id: its instance id or client id if no other has it, else its id, shortened."""
    called = [member.group_instance_id or member.client_id or "" for member in members]
    times = Counter(called)
    return {
        member.consumer_id or "": cells.name(name) if name and times[name] == 1 else short_id(member.consumer_id or "")
        for member, name in zip(members, called, strict=True)
    }


def left_ms(group: GroupDescription, now_ms: int) -> int | None:
    """How long the group waits at most for members to join again; None where that is not known."""
    timeouts = [member.rebalance_timeout_ms for member in group.members if member.rebalance_timeout_ms]
    if group.state != "PreparingRebalance" or group.state_since_ms is None or not timeouts:
        return None
    return max(0, group.state_since_ms + max(timeouts) - now_ms)


def sentence(group: GroupDescription, now_ms: int) -> str:
    """Who is awaited, or why nobody is; at most a line."""
    if group.error is not None:
        return cells.name(group.error.message)
    if group.state == "Dead":
        return "The group is gone: it has no members and no offsets."
    if not group.members:
        return "No members. Nobody reads for this group." if group.state == "Empty" else "No members yet."
    told = names(group.members)
    standings = {member.consumer_id or "": standing_of(group, member) for member in group.members}
    everyone = f"{len(told):,} member{'' if len(told) == 1 else 's'}"
    if all(standing is None for standing in standings.values()):
        return f"{everyone}. Where each stands in a rebalance, this cluster does not tell."
    done = [key for key, standing in standings.items() if is_done(group, standing)]
    awaited = [told[key] for key in standings if key not in done]
    if group.state == "PreparingRebalance":
        return _joining(len(done), everyone, awaited, left_ms(group, now_ms))
    if group.state == "CompletingRebalance":
        return _syncing(group, told, standings, len(done), everyone)
    if awaited:
        return f"{len(done):,} of {everyone} have their assignment, waiting for {_listed(awaited)}"
    return f"{everyone}, {'each has its' if len(told) > 1 else 'which has its'} assignment"


def _joining(joined: int, everyone: str, awaited: Sequence[str], remaining_ms: int | None) -> str:
    text = f"{joined:,} of {everyone} joined"
    text += f", waiting for {_listed(awaited)}" if awaited else "; others may still come"
    return text if remaining_ms is None else f"{text}, up to {cells.milliseconds(remaining_ms)} more"


def _syncing(
    group: GroupDescription, told: Mapping[str, str], standings: Mapping[str, Standing | None], done: int, everyone: str
) -> str:
    text = f"{done:,} of {everyone} synced"
    leader = told.get(group.leader or "")
    if leader is not None and not is_done(group, standings[group.leader or ""]):
        return f"{text}, waiting for the assignment by the leader {leader}"
    return text


def _listed(named: Sequence[str], most: int = 3) -> str:
    more = len(named) - most
    return ", ".join(named[:most]) + (f" and {more:,} more" if more > 0 else "")
