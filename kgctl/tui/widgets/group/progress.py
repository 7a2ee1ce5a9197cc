"""The progress of a group: how many members have joined, whom it waits for and how long, and who is silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.content import Content

from broker.light_dataclasses import replace
from kgctl.model.groups import CONSUMER, REBALANCING, GroupDescription, MemberRow
from kgctl.model.reconciliation import AWAY, RECONCILING, REVOKING, STABLE, WAITING
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.looks import Look
from kgctl.tui.widgets.group.names import listed, names
from kgctl.watch.figures import counted
from kgctl.watch.phases import (
    AWAITING_SYNC,
    JOINED,
    NOT_REJOINED,
    SILENT,
    SYNCED,
    MemberPhase,
    member_phases,
)
from kgctl.watch.silence import evicted_in_s
from kgctl.watch.tracker import is_gone

LOOKS = {
    SILENT: Look(glyphs.FAULT, "bad"),
    JOINED: Look(glyphs.GOOD, "good"),
    AWAITING_SYNC: Look("\u25d0", "warn"),
    RECONCILING: Look("\u25d0", "warn"),
    REVOKING: Look("\u25d0", "warn"),
    WAITING: Look(glyphs.UNUSED, "warn"),
    AWAY: Look(glyphs.FAULT, "bad"),
    SYNCED: Look("\u2713", "good"),
    STABLE: Look("\u2713", "good"),
    NOT_REJOINED: Look(glyphs.UNUSED, "warn"),
}
NO_LOOK = Look(glyphs.SEPARATOR, "dim")
LEAST_BAR, MOST_BAR = 6, 24
NO_GROUP = "It will appear here once it exists."


def is_awaited(group: GroupDescription, phase: str | None) -> bool:
    """Whether the group waits for a member in this phase."""
    if phase is None:
        return False
    return phase != JOINED if group.state == "PreparingRebalance" else phase not in (SYNCED, STABLE)


def shown_phase(one: MemberPhase) -> str | None:
    """The word for a member: a silent one is silent, whatever else the broker reports."""
    return SILENT if one.is_silent else one.phase


def grown(member: MemberRow, passed_s: float) -> MemberRow:
    """A member as it is some seconds after the snapshot, if it stays silent."""
    if member.heartbeat_age_ms is None or passed_s <= 0:
        return member
    return replace(member, heartbeat_age_ms=member.heartbeat_age_ms + int(passed_s * 1000))


def left_ms(group: GroupDescription, now_ms: int) -> int | None:
    """How much longer the group waits at most for members to rejoin; None if not known."""
    timeouts = [member.rebalance_timeout_ms for member in group.members if member.rebalance_timeout_ms]
    if group.state != "PreparingRebalance" or group.state_since_ms is None or not timeouts:
        return None
    return max(0, group.state_since_ms + max(timeouts) - now_ms)


def progress(group: GroupDescription, now_ms: int, passed_s: float, width: int) -> list[Content]:
    """A bar of a rebalance with the countdowns below it; else one sentence. `now_ms` is of the clock of `state_since_ms`."""
    if (sentence := _plain(group)) is not None:
        return [Content.styled(cells.name(sentence), "bold $text-error" if group.error is not None else "")]
    called, found = names(group.members), member_phases(group)
    waits = [one for one in found if is_awaited(group, one.phase)]
    done, missing = len(found) - len(waits), [called[one.member.consumer_id or ""] for one in waits]
    clocks = _silent(group, called, passed_s)
    if group.state == "PreparingRebalance":
        remaining_ms = left_ms(group, now_ms)
        if remaining_ms is not None:
            clocks.insert(0, Content(f"rebalance timeout in {cells.age(remaining_ms / 1000)}"))
        rest = f"waits for {listed(missing)}" if missing else "more members may join"
        return [_bar("joined", done, len(found), rest, missing, width), _joined(clocks)]
    if group.state == "CompletingRebalance":
        rest = f"waits for {listed(missing)}" if missing else ""
        if any(one.member.consumer_id == group.leader for one in waits):
            rest = f"leader {called[group.leader or '']} assigns partitions"
        return [_bar("synced", done, len(found), rest, missing, width), _joined(clocks)]
    if group.type == CONSUMER and group.state in REBALANCING:
        return [_reconciling(group, found, called, width), _joined(clocks)]
    if waits and group.state != "Stable":
        return [_bar("assigned", done, len(found), f"waits for {listed(missing)}", missing, width), _joined(clocks)]
    everyone = counted(len(found), "member")
    if waits and group.type == CONSUMER:
        return [Content(f"{done:,} of {everyone} reconciled, waits for {listed(missing)}"), _joined(clocks)]
    if waits:
        return [Content(f"{done:,} of {everyone} have their assignment, waits for {listed(missing)}"), _joined(clocks)]
    return [_joined(clocks)] if clocks else [Content(f"{everyone}, {'each ' * (len(found) > 1)}with its assignment")]


def _reconciling(
    group: GroupDescription, found: Sequence[MemberPhase], called: Mapping[str, str], width: int
) -> Content:
    """How many members have their targets, and on whom the others wait."""
    if group.state == "Assigning":
        # One heartbeat later the targets are computed.
        return Content(
            f"epoch {group.group_epoch} has no targets yet; members keep those of epoch {group.target_assignment_epoch}"
        )
    waits = [one for one in found if one.phase != STABLE]
    blocking = [one for one in waits if one.phase != WAITING] or waits
    missing = [called[one.member.consumer_id or ""] for one in blocking]
    return _bar("reconciled", len(found) - len(waits), len(found), f"waits for {listed(missing)}", missing, width)


def _plain(group: GroupDescription) -> str | None:
    """What a sentence says of a group without members whose phases are known."""
    if group.error is not None:
        return f"{group.error.message} {NO_GROUP}" if is_gone(group.error) else group.error.message
    if group.state == "Dead":
        return "The group no longer exists: it has no members and no offsets."
    if not group.members:
        return "No members: no consumer of this group is running." if group.state == "Empty" else "No members yet."
    if any(one.phase is None for one in member_phases(group)):
        return f"{counted(len(group.members), 'member')}; this cluster does not report their phases"
    return None


def _bar(word: str, done: int, total: int, rest: str, missing: Sequence[str], width: int) -> Content:
    """`joined ████░░░░ 50/110  waits for ...`; the bar gives way to the text, which names as many as fit."""
    figures = f" {done:,}/{total:,}"
    texts = [rest] if not missing else [rest.replace(listed(missing), listed(missing, most)) for most in (3, 2, 1)]
    room = width - len(word) - 1 - len(figures) - LEAST_BAR
    text = next((f"  {one}" for one in texts if one and Content(one).cell_length + 2 <= room), "")
    length = min(MOST_BAR, room + LEAST_BAR - Content(text).cell_length)
    full = length * done // total if total else 0
    return Content.assemble(
        f"{word} ",
        (glyphs.FULL * full, "$text-success"),
        (glyphs.SHADE * (length - full), "$text-muted"),
        (figures, "bold"),
        (text, "$text-warning"),
    )


def _silent(group: GroupDescription, called: dict[str, str], passed_s: float) -> list[Content]:
    """The members that are silent, with the time until they are evicted, the first to go first."""
    silent = [one.member for one in member_phases(group) if one.is_silent]
    found = sorted((evicted_in_s(grown(one, passed_s)) or 0.0, called[one.consumer_id or ""]) for one in silent)
    texts = [f"{name} silent, evicted in {cells.age(seconds)}" for seconds, name in found[:2]]
    if len(found) > 2:
        texts.append(f"{len(found) - 2:,} more silent")
    return [Content.styled(text, "bold $text-error") for text in texts]


def _joined(parts: Sequence[Content]) -> Content:
    return Content(f" {glyphs.SEPARATOR} ").join(parts)
