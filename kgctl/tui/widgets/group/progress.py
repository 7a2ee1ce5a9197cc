"""The progress of a rebalance in one sentence: which members the group waits for and how long; and the names of members."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from kgctl.model.groups import REBALANCING, GroupDescription, MemberRow
from kgctl.tui import cells
from kgctl.watch.figures import counted
from kgctl.watch.phases import (
    AWAITING_SYNC,
    JOINED,
    NOT_REJOINED,
    RECONCILING,
    SILENT,
    STABLE,
    SYNCED,
    MemberPhase,
    member_phases,
)
from kgctl.watch.tracker import is_gone

SIGNS = {
    SILENT: "!",
    JOINED: "\u25cf",
    AWAITING_SYNC: "\u25d0",
    RECONCILING: "\u25d0",
    SYNCED: "\u2713",
    STABLE: "\u2713",
    NOT_REJOINED: "\u25cb",
}
UNKNOWN = "\u00b7"
_UUID = re.compile(r"-?([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.IGNORECASE)


def is_awaited(group: GroupDescription, phase: str | None) -> bool:
    """Whether the group waits for a member in this phase."""
    if phase is None:
        return False
    return phase != JOINED if group.state == "PreparingRebalance" else phase not in (SYNCED, STABLE)


def shown_phase(group: GroupDescription, one: MemberPhase) -> str | None:
    """The phase to show for a member: a silent member of a settled group is SILENT, whatever the broker reports."""
    return SILENT if one.is_silent and group.state not in REBALANCING else one.phase


def short_id(member_id: str) -> str:
    """A member id without most of the UUID at its end, which brokers and clients append."""
    return cells.name(_UUID.sub(lambda found: f"-{found[1]}", member_id).lstrip("-"))


def names(members: Sequence[MemberRow]) -> dict[str, str]:
    """A name per member id: the instance id or client id if it is unique in the group, else the shortened member id."""
    found = [member.group_instance_id or member.client_id or "" for member in members]
    times = Counter(found)
    return {
        member.consumer_id or "": cells.name(name) if name and times[name] == 1 else short_id(member.consumer_id or "")
        for member, name in zip(members, found, strict=True)
    }


def left_ms(group: GroupDescription, now_ms: int) -> int | None:
    """How much longer the group waits at most for members to rejoin; None if not known."""
    timeouts = [member.rebalance_timeout_ms for member in group.members if member.rebalance_timeout_ms]
    if group.state != "PreparingRebalance" or group.state_since_ms is None or not timeouts:
        return None
    return max(0, group.state_since_ms + max(timeouts) - now_ms)


def sentence(group: GroupDescription, now_ms: int) -> str:
    """Which members the group waits for, or why it waits for none. `now_ms` is of the clock that `state_since_ms` comes from."""
    if group.error is not None:
        message = cells.name(group.error.message)
        return f"{message} It will appear here once it exists." if is_gone(group.error) else message
    if group.state == "Dead":
        return "The group no longer exists: it has no members and no offsets."
    if not group.members:
        return "No members: no consumer of this group is running." if group.state == "Empty" else "No members yet."
    called = names(group.members)
    everyone = counted(len(called), "member")
    found = member_phases(group)
    if group.state == "Stable" and (silent := [one for one in found if one.is_silent]):
        return f"{everyone}, no heartbeat from {_listed([_silence(called, one.member) for one in silent])}"
    if any(one.phase is None for one in found):
        return f"{everyone}; this cluster does not report their phases"
    awaited = [one for one in found if is_awaited(group, one.phase)]
    done = len(found) - len(awaited)
    missing = [called[one.member.consumer_id or ""] for one in awaited]
    if group.state == "PreparingRebalance":
        return _joining(done, everyone, missing, left_ms(group, now_ms))
    if group.state == "CompletingRebalance":
        return _syncing(group, called, awaited, done, everyone)
    if awaited:
        return f"{done:,} of {everyone} have their assignment, waiting for {_listed(missing)}"
    return f"{everyone}, each with its assignment" if len(found) > 1 else f"{everyone} with its assignment"


def _joining(joined: int, everyone: str, missing: Sequence[str], remaining_ms: int | None) -> str:
    text = f"{joined:,} of {everyone} joined"
    text += f", waiting for {_listed(missing)}" if missing else "; more members may join"
    return text if remaining_ms is None else f"{text}, for up to {cells.milliseconds(remaining_ms)}"


def _syncing(
    group: GroupDescription, called: Mapping[str, str], awaited: Sequence[MemberPhase], done: int, everyone: str
) -> str:
    text = f"{done:,} of {everyone} synced"
    if any(one.member.consumer_id == group.leader for one in awaited):
        return f"{text}, waiting for leader {called[group.leader or '']} to assign partitions"
    missing = [called[one.member.consumer_id or ""] for one in awaited]
    return f"{text}, waiting for {_listed(missing)}" if missing else text


def _silence(called: Mapping[str, str], member: MemberRow) -> str:
    session = cells.milliseconds(member.session_timeout_ms)
    age = cells.milliseconds(member.heartbeat_age_ms)
    return f"{called[member.consumer_id or '']} ({age} of {session})"


def _listed(found: Sequence[str], most: int = 3) -> str:
    more = len(found) - most
    return ", ".join(found[:most]) + (f" and {more:,} more" if more > 0 else "")
