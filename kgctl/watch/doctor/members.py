"""Rules about members and rebalances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kgctl.model.groups import CONSUMER, REBALANCING, SHARE
from kgctl.model.history import EMPTY, REQUESTED, STABLE, STARTED
from kgctl.model.reconciliation import AWAY
from kgctl.watch.doctor.facts import GroupFacts
from kgctl.watch.figures import counted, span
from kgctl.watch.silence import is_silent, partitions, reconciling_members

# A rebalance takes as long as the slowest member, up to its rebalance timeout: nothing is read for longer than this.
STUCK_S = 60.0
# Several samples over this time that show nothing but rebalances prove one that is stuck.
STUCK_SAMPLE_S = 30.0
STORM, STORM_MS = 5, 600_000
RECENT_MS = 3_600_000
SKEW_TIMES, SKEW_LEAST = 2, 2
NAMED = 3


def silent_member(facts: GroupFacts) -> Iterator[str]:
    for member in facts.group.members:
        if is_silent(member) and not member.group_instance_id:
            yield f"{member.consumer_id} has sent no heartbeat for {_age(member.heartbeat_age_ms)}"


def ghost(facts: GroupFacts) -> Iterator[str]:
    """A static member that is away: the group keeps its partitions for it until its session times out."""
    last = next((event for event in reversed(facts.events) if event.event in (STABLE, EMPTY)), None)
    absent = frozenset(last.absent if last is not None else ())
    for member in facts.group.members:
        if not member.group_instance_id:
            continue
        name = f"{member.group_instance_id} ({member.consumer_id})"
        owns = f"it owns {counted(member.partitions or 0, 'partition')}"
        if is_silent(member):
            yield f"{name} has sent no heartbeat for {_age(member.heartbeat_age_ms)}; {owns}"
        elif member.phase == AWAY:
            kept = f"keeps {partitions(member.current_assignment)}" if member.current_assignment else "owns nothing"
            yield f"{name} left and is expected back; it {kept}"
        elif member.consumer_id in absent:
            yield f"{name} did not rejoin in the last rebalance; {owns}"


def stuck_rebalance(facts: GroupFacts) -> Iterator[str]:
    group = facts.group
    if group.state not in REBALANCING:
        return
    timeouts = [member.rebalance_timeout_ms for member in group.members if member.rebalance_timeout_ms]
    limit_s = max(timeouts) / 1000 if timeouts else STUCK_S
    missing = [member.consumer_id or "" for member in group.members if member.phase == "join awaited"]
    whom = f"; waiting for {_names(missing)}" if missing else ""
    if group.type == CONSUMER:
        whom = "".join(f"; {text}" for text in reconciling_members(group))
    if facts.state_s is not None:
        if facts.state_s > min(limit_s, STUCK_S):
            yield f"{group.state} for {span(facts.state_s)}{whom}"
    elif facts.sampled_s >= STUCK_SAMPLE_S and all(one.state in REBALANCING for one in facts.course):
        yield f"{group.state} for at least {span(facts.sampled_s)}{whom}"


def storm(facts: GroupFacts) -> Iterator[str]:
    recent = [event for event in facts.events if event.timestamp > facts.now_ms - STORM_MS]
    # Derived events have no starts: each generation is the end of a rebalance.
    kinds = (STARTED,) if any(event.event == STARTED for event in facts.events) else (STABLE, EMPTY)
    starts = [event for event in recent if event.event in kinds and event.cause != REQUESTED]
    if len(starts) >= STORM:
        causes = Counter(event.cause or "unknown cause" for event in starts)
        text = ", ".join(f"{count} x {cause}" for cause, count in causes.most_common(NAMED))
        yield f"{len(starts)} rebalances in {span(STORM_MS / 1000)}: {text}"


def rejected_commits(facts: GroupFacts) -> Iterator[str]:
    recent = [event for event in facts.events if event.timestamp > facts.now_ms - RECENT_MS]
    count = sum(event.commits_rejected for event in recent)
    if count:
        yield f"{counted(count, 'commit')} rejected in the last hour"


def idle_member(facts: GroupFacts) -> Iterator[str]:
    idle = [member.consumer_id or "" for member in facts.consumers if not member.partitions]
    if idle:
        owned = len({key for member in facts.consumers for key in member.owned()})
        yield (
            f"{len(idle)} of {counted(len(facts.consumers), 'member')} own none of {counted(owned, 'partition')}: "
            f"{_names(idle)}"
        )


def skew(facts: GroupFacts) -> Iterator[str]:
    """Among members with the same subscription: the others cannot own the same partitions. Members of share groups can."""
    if facts.group.type == SHARE:
        return
    for wanted in dict.fromkeys(member.subscribed for member in facts.consumers):
        some = (member for member in facts.consumers if member.subscribed == wanted)
        counts = {member.consumer_id or "": member.partitions for member in some if member.partitions}
        if len(counts) < 2:
            continue
        most, least = max(counts, key=lambda name: counts[name]), min(counts, key=lambda name: counts[name])
        if counts[most] >= SKEW_TIMES * counts[least] and counts[most] - counts[least] >= SKEW_LEAST:
            yield f"{most} owns {counted(counts[most], 'partition')}, {least} owns {counts[least]}"


def mixed(facts: GroupFacts) -> Iterator[str]:
    found = facts.group.member_protocols
    if len(found) > 1:
        yield f"members speak {', '.join(found[:-1])} and {found[-1]}"


def _age(milliseconds: int | None) -> str:
    return span((milliseconds or 0) / 1000)


def _names(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
