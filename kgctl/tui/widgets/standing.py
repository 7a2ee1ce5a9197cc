"""Who is awaited in a rebalance and for how long, in a sentence; and what to call the members."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from kgctl.model.groups import REBALANCING, GroupDescription, MemberRow
from kgctl.tui import cells
from kgctl.watch.phases import AWAITING_SYNC, JOINED, MISSING, RECONCILING, STABLE, SYNCED, Standing, standings
from kgctl.watch.track import is_gone

SILENT = "silent"
SIGNS = {
    SILENT: "!",
    JOINED: "\u25cf",
    AWAITING_SYNC: "\u25d0",
    RECONCILING: "\u25d0",
    SYNCED: "\u2713",
    STABLE: "\u2713",
    MISSING: "\u25cb",
}
UNKNOWN = "\u00b7"
_UUID = re.compile(r"-?([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.IGNORECASE)


def is_awaited(group: GroupDescription, word: str | None) -> bool:
    """Whether the group waits for a member that stands there."""
    if word is None:
        return False
    return word != JOINED if group.state == "PreparingRebalance" else word not in (SYNCED, STABLE)


def word_of(group: GroupDescription, one: Standing) -> str | None:
    """Where a member stands; of one that is not heard of, what it has been given says nothing once the group has settled."""
    return SILENT if one.is_dead and group.state not in REBALANCING else one.word


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
    """Who is awaited, or why nobody is; about a line. `now_ms` by the clock of `state_since_ms`."""
    if group.error is not None:
        return cells.name(group.error.message) + (" This screen waits for it." if is_gone(group.error) else "")
    if group.state == "Dead":
        return "The group is gone: it has no members and no offsets."
    if not group.members:
        return "No members: nobody reads for this group." if group.state == "Empty" else "No members yet."
    told = names(group.members)
    everyone = f"{len(told):,} member{'' if len(told) == 1 else 's'}"
    found = standings(group)
    if group.state == "Stable" and (silent := [one for one in found if one.is_dead]):
        return f"{everyone}, not heard of: {_listed([_silence(told, one.member) for one in silent])}"
    if any(one.word is None for one in found):
        return f"{everyone}; where each stands in a rebalance this cluster does not tell"
    awaited = [one for one in found if is_awaited(group, one.word)]
    done = len(found) - len(awaited)
    called = [told[one.member.consumer_id or ""] for one in awaited]
    if group.state == "PreparingRebalance":
        return _joining(done, everyone, called, left_ms(group, now_ms))
    if group.state == "CompletingRebalance":
        return _syncing(group, told, awaited, done, everyone)
    if awaited:
        return f"{done:,} of {everyone} have their assignment, waiting for {_listed(called)}"
    return f"{everyone}, {'each has its' if len(found) > 1 else 'which has its'} assignment"


def _joining(joined: int, everyone: str, awaited: Sequence[str], remaining_ms: int | None) -> str:
    text = f"{joined:,} of {everyone} joined"
    text += f", waiting for {_listed(awaited)}" if awaited else "; others may still come"
    return text if remaining_ms is None else f"{text}, up to {cells.milliseconds(remaining_ms)} more"


def _syncing(
    group: GroupDescription, told: Mapping[str, str], awaited: Sequence[Standing], done: int, everyone: str
) -> str:
    text = f"{done:,} of {everyone} synced"
    if any(one.member.consumer_id == group.leader for one in awaited):
        return f"{text}, waiting for the assignment by the leader {told[group.leader or '']}"
    return (
        f"{text}, waiting for {_listed([told[one.member.consumer_id or ''] for one in awaited])}" if awaited else text
    )


def _silence(told: Mapping[str, str], member: MemberRow) -> str:
    session = cells.milliseconds(member.session_timeout_ms)
    return f"{told[member.consumer_id or '']} for {cells.milliseconds(member.heartbeat_age_ms)} of {session}"


def _listed(named: Sequence[str], most: int = 3) -> str:
    more = len(named) - most
    return ", ".join(named[:most]) + (f" and {more:,} more" if more > 0 else "")
