"""The members of a group: names, partitions, phases, and the age of the last heartbeat."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from broker.light_dataclasses import dataclass
from kgctl.model.groups import REBALANCING, GroupDescription, MemberRow
from kgctl.render.table import MISSING
from kgctl.tui import cells
from kgctl.tui.widgets.group.progress import SIGNS, UNKNOWN, is_awaited, names
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.tui.widgets.text.line import Line, as_fits
from kgctl.watch.phases import MemberPhase, member_phases

LEADER = "\u2605 "
PART = " \u00b7 "
FULL, HOLLOW, BAR_CELLS = "\u2588", "\u2591", 5


@dataclass(frozen=True, slots=True)
class MemberItem:
    """A member as a row. `is_awaited`: the group waits for it. `partitions` is None if not reported."""

    phase: MemberPhase
    name: str
    is_awaited: bool
    partitions: int | None

    @property
    def member(self) -> MemberRow:
        return self.phase.member


class MembersPane(Vertical):
    """A table of members; below it, details of the selected member and the reason for values that are `-`."""

    DEFAULT_CSS = """
    MembersPane { height: 1fr; }
    MembersPane > Rows { scrollbar-gutter: stable; }
    MembersPane > Static, MembersPane > MemberLine { height: 1; text-wrap: nowrap; text-overflow: ellipsis; padding: 0 2; color: $foreground; }
    MembersPane > .members--why { color: $text-muted; }
    """
    COLUMNS: ClassVar[tuple[Column[MemberItem], ...]] = (
        Column(
            "member",
            "  MEMBER",
            lambda item: (LEADER if item.member.leader else "  ") + item.name,
            14,
            flex=1,
            most=34,
            order=lambda item: item.name,
        ),
        catalogue.instance(lambda item: item.member.group_instance_id, priority=1),
        catalogue.host(lambda item: item.member.host),
        catalogue.consumer_id(lambda item: item.member.consumer_id, priority=2),
        Column(
            "partitions",
            "PARTITIONS",
            lambda item: cells.count(item.partitions),
            10,
            right=True,
            order=lambda item: item.partitions,
            falling=True,
        ),
        Column("phase", "PHASE", lambda item: _phase(item), 18, style=lambda item: "warn" if item.is_awaited else ""),
        Column(
            "heartbeat",
            "HEARTBEAT",
            lambda item: heartbeat(item.member),
            20,
            flex=1,
            most=23,
            style=lambda item: "bad" if item.phase.is_silent else "",
            order=lambda item: item.member.heartbeat_age_ms,
            falling=True,
        ),
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._group: GroupDescription | None = None
        self._rows: Rows[MemberItem] = Rows(
            self.COLUMNS, key=lambda item: item.member.consumer_id or "", empty="No members."
        )
        self._more = MemberLine()
        self._why = Static("", markup=False, classes="members--why")

    def compose(self) -> ComposeResult:
        yield self._rows
        yield self._more
        yield self._why

    @property
    def cursor_row(self) -> MemberRow | None:
        item = self._rows.cursor_row
        return None if item is None else item.member

    @property
    def rows(self) -> Rows[MemberItem]:
        return self._rows

    def show(self, group: GroupDescription) -> None:
        self._group = group
        called = names(group.members)
        is_hidden = hides_assignments(group)
        items = [
            MemberItem(
                one,
                called[one.member.consumer_id or ""],
                is_awaited(group, one.phase),
                None if is_hidden else one.member.partitions,
            )
            for one in member_phases(group)
        ]
        self._rows.show(items)
        self._show_member()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._show_member()

    def focus(self, scroll_visible: bool = True) -> MembersPane:
        self._rows.focus(scroll_visible)
        return self

    def _show_member(self) -> None:
        member = self.cursor_row
        self._more.show(member)
        reason = "" if self._group is None else why(self._group)
        if self._why.content != reason:
            self._why.update(reason)


def hides_assignments(group: GroupDescription) -> bool:
    """Whether the coordinator reports no assignments, as during a rebalance; that does not mean that they are empty."""
    return group.state in REBALANCING and not any(member.partitions for member in group.members)


def heartbeat(member: MemberRow) -> str:
    """The age of the last heartbeat relative to the session timeout, as a bar and in figures; `-` if not reported."""
    age_ms, session_ms = member.heartbeat_age_ms, member.session_timeout_ms
    if age_ms is None:
        return MISSING
    if not session_ms:
        return cells.milliseconds(age_ms)
    full = min(BAR_CELLS, round(BAR_CELLS * age_ms / session_ms))
    return (
        f"{FULL * full}{HOLLOW * (BAR_CELLS - full)} {cells.milliseconds(age_ms)} of {cells.milliseconds(session_ms)}"
    )


class MemberLine(Line):
    """Facts about the selected member that columns lack or a narrow terminal hides; the former come first, no part is cut."""

    def __init__(self) -> None:
        super().__init__()
        self._member: MemberRow | None = None

    def show(self, member: MemberRow | None) -> None:
        self._member = member
        self.refresh()

    def text(self, width: int) -> Content:
        member = self._member
        if member is None:
            return Content()
        parts = [Content(part) for part in _parts(member)]
        return as_fits(Content(cells.name(member.consumer_id)), parts, PART, PART, width)


def _parts(member: MemberRow) -> list[str]:
    parts = []
    if not (member.consumer_id or "").startswith(member.client_id or ""):
        parts.append(f"client id {cells.name(member.client_id)}")
    parts += [f"instance {cells.name(member.group_instance_id)}"] if member.group_instance_id else []
    if member.current_epoch is not None:
        parts.append(f"epoch {member.current_epoch} of {cells.count(member.target_epoch)}")
    if member.rebalance_timeout_ms is not None:
        parts.append(f"rebalance timeout {cells.milliseconds(member.rebalance_timeout_ms)}")
    return [*parts, f"host {cells.name(member.host)}"]


def why(group: GroupDescription) -> str:
    """One line: why values of the members are `-`, or what the sign of the leader means."""
    if any(member.heartbeat_age_ms is None and member.session_timeout_ms is None for member in group.members):
        if any(one.phase is None for one in member_phases(group)):
            return "PHASE and HEARTBEAT are -: this cluster does not report them."
        return "HEARTBEAT is -: this cluster does not report it."
    if hides_assignments(group) and group.members:
        return "PARTITIONS is -: the assignment is made at the end of the rebalance."
    if any(member.partitions is None for member in group.members):
        return "PARTITIONS is -: the members are not consumers; their assignments have another format."
    return f"{LEADER}leader" if any(member.leader for member in group.members) else ""


def _phase(item: MemberItem) -> str:
    phase = item.phase.phase
    return MISSING if phase is None else f"{SIGNS.get(phase, UNKNOWN)} {cells.name(phase)}"
