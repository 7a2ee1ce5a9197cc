"""The members of a group: who they are, what they own, where they stand, and when each was last heard of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from kgctl.model.groups import REBALANCING, GroupDescription, MemberRow
from kgctl.render.table import MISSING
from kgctl.tui import cells
from kgctl.tui.widgets.columns import Column
from kgctl.tui.widgets.group_lines import Line, as_fits
from kgctl.tui.widgets.rows import Rows
from kgctl.tui.widgets.standing import SIGNS, UNKNOWN, is_awaited, names
from kgctl.watch.phases import Standing, standings

LEADER = "\u2605 "
PART = " \u00b7 "
FULL, HOLLOW, BAR_CELLS = "\u2588", "\u2591", 5


@dataclass(frozen=True, slots=True)
class Seat:
    """A member as a row: what to call it, where it stands, whether the group waits for it, how much it has (None: not told)."""

    standing: Standing
    name: str
    is_awaited: bool
    partitions: int | None

    @property
    def member(self) -> MemberRow:
        return self.standing.member


class MembersPane(Vertical):
    """A table of members; below it the one of the cursor in words, and why something is `-`.

    `show(group)` after each look. `cursor_row` is the member to act on, None without members.
    """

    DEFAULT_CSS = """
    MembersPane { height: 1fr; }
    MembersPane > Rows { scrollbar-gutter: stable; }
    MembersPane > Static, MembersPane > MemberLine { height: 1; text-wrap: nowrap; text-overflow: ellipsis; padding: 0 2; color: $foreground; }
    MembersPane > .members--why { color: $text-muted; }
    """
    COLUMNS: ClassVar[tuple[Column[Seat], ...]] = (
        Column(
            "member",
            "  MEMBER",
            lambda seat: (LEADER if seat.member.leader else "  ") + seat.name,
            14,
            flex=1,
            most=34,
            order=lambda seat: seat.name,
        ),
        Column(
            "instance",
            "INSTANCE",
            lambda seat: cells.name(seat.member.group_instance_id),
            12,
            flex=1,
            most=24,
            priority=1,
        ),
        Column("host", "HOST", lambda seat: cells.name(seat.member.host), 10, flex=1, most=20),
        Column("id", "CONSUMER-ID", lambda seat: cells.name(seat.member.consumer_id), 20, flex=6, most=60, priority=2),
        Column(
            "partitions",
            "PARTITIONS",
            lambda seat: cells.count(seat.partitions),
            10,
            right=True,
            order=lambda seat: seat.partitions,
            falling=True,
        ),
        Column("phase", "PHASE", lambda seat: _phase(seat), 15, style=lambda seat: "warn" if seat.is_awaited else ""),
        Column(
            "heartbeat",
            "HEARTBEAT",
            lambda seat: heartbeat(seat.member),
            20,
            flex=1,
            most=23,
            style=lambda seat: "bad" if seat.standing.is_dead else "",
            order=lambda seat: seat.member.heartbeat_age_ms,
            falling=True,
        ),
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._group: GroupDescription | None = None
        self._rows: Rows[Seat] = Rows(self.COLUMNS, key=lambda seat: seat.member.consumer_id or "", empty="No members.")
        self._more = MemberLine()
        self._why = Static("", markup=False, classes="members--why")

    def compose(self) -> ComposeResult:
        yield self._rows
        yield self._more
        yield self._why

    @property
    def cursor_row(self) -> MemberRow | None:
        seat = self._rows.cursor_row
        return None if seat is None else seat.member

    @property
    def rows(self) -> Rows[Seat]:
        return self._rows

    def show(self, group: GroupDescription) -> None:
        self._group = group
        told = names(group.members)
        is_hidden = is_silent(group)
        seats = [
            Seat(
                one,
                told[one.member.consumer_id or ""],
                is_awaited(group, one.word),
                None if is_hidden else one.member.partitions,
            )
            for one in standings(group)
        ]
        self._rows.show(seats)
        self._tell()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._tell()

    def focus(self, scroll_visible: bool = True) -> MembersPane:
        self._rows.focus(scroll_visible)
        return self

    def _tell(self) -> None:
        member = self.cursor_row
        self._more.tell(member)
        reason = "" if self._group is None else why(self._group)
        if self._why.content != reason:
            self._why.update(reason)


def is_silent(group: GroupDescription) -> bool:
    """Whether the coordinator tells of no assignment at all, as in a rebalance: nobody can say that each has nothing."""
    return group.state in REBALANCING and not any(member.partitions for member in group.members)


def heartbeat(member: MemberRow) -> str:
    """How long it was silent against its session timeout, as a bar and in figures; `-` where it is not told."""
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
    """What the columns leave out or cut where the terminal is narrow; what no column has goes first, and no part is cut."""

    def __init__(self) -> None:
        super().__init__()
        self._member: MemberRow | None = None

    def tell(self, member: MemberRow | None) -> None:
        self._member = member
        self.refresh()

    def text(self, width: int) -> Content:
        member = self._member
        if member is None:
            return Content()
        parts = [Content(part) for part in _parts(member)]
        return as_fits(Content(cells.name(member.consumer_id)), parts, PART, PART, width)


def _parts(member: MemberRow) -> list[str]:
    said = []
    if not (member.consumer_id or "").startswith(member.client_id or ""):
        said.append(f"client id {cells.name(member.client_id)}")
    said += [f"instance {cells.name(member.group_instance_id)}"] if member.group_instance_id else []
    if member.current_epoch is not None:
        said.append(f"epoch {member.current_epoch} of {cells.count(member.target_epoch)}")
    if member.rebalance_timeout_ms is not None:
        said.append(f"rebalance timeout {cells.milliseconds(member.rebalance_timeout_ms)}")
    return [*said, f"host {cells.name(member.host)}"]


def why(group: GroupDescription) -> str:
    """Why something about the members is `-`, or what the sign of the leader means; one line."""
    if any(member.heartbeat_age_ms is None and member.session_timeout_ms is None for member in group.members):
        if any(one.word is None for one in standings(group)):
            return "PHASE and HEARTBEAT are -: DescribeGroups has no such fields."
        return "HEARTBEAT is -: Kafka's answers about groups have no such field."
    if is_silent(group) and group.members:
        return "PARTITIONS is -: who gets what is decided at the end of the rebalance."
    if any(member.partitions is None for member in group.members):
        return "PARTITIONS is -: the assignments of this protocol type are not those of consumers."
    return f"{LEADER}leader" if any(member.leader for member in group.members) else ""


def _phase(seat: Seat) -> str:
    word = seat.standing.word
    return MISSING if word is None else f"{SIGNS.get(word, UNKNOWN)} {cells.name(word)}"
