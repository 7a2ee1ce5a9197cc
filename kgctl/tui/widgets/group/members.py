"""The members of a group: partitions, lag, rate, the age of the last heartbeat, and what each is doing."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.content import Content

from broker.light_dataclasses import dataclass, replace
from kgctl.model.groups import CLASSIC, REBALANCING, GroupDescription, MemberRow, TopicPartitions
from kgctl.model.reconciliation import AWAY, REVOKING, WAITING
from kgctl.model.watched import WatchedPartition
from kgctl.render.table import MISSING
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.looks import Look
from kgctl.tui.widgets.frame.table_panel import GONE, TablePanel
from kgctl.tui.widgets.group.names import names
from kgctl.tui.widgets.group.progress import LOOKS, NO_LOOK, grown, is_awaited, shown_phase
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.tui.widgets.text.line import Parts
from kgctl.watch.figures import counted
from kgctl.watch.phases import NOT_REJOINED, SILENT, member_phases
from kgctl.watch.silence import evicted_in_s

PART = f" {glyphs.SEPARATOR} "
LEADER = f" {glyphs.LEADER}"
BAR_CELLS = 5
# The width of HEARTBEAT from which the session timeout stands beside the age.
OF_FROM = 12
# From this width of the table, instance, host and id have columns.
WIDE, WIDER = 90, 120


@dataclass(frozen=True, slots=True)
class MemberItem:
    """A member as a row. `is_awaited`: the group waits for it. `partitions` and `lag` are None if not known."""

    member: MemberRow
    name: str
    phase: str | None
    is_awaited: bool
    partitions: int | None
    lag: int | None
    rate_out: float | None
    topics: tuple[str, ...]


class MembersPanel(TablePanel[MemberItem]):
    """Below the table: details of the selected member, and the reason for values that are `-`."""

    def __init__(self) -> None:
        super().__init__(
            "Members",
            COLUMNS,
            key=lambda item: item.member.consumer_id or "",
            name=_text,
            fields=FIELDS,
            look=_look,
            empty="No members.",
            no_match="No member matches. Press Esc to show all members.",
            number=1,
            least=(38, 4),
            id="members",
        )
        self._details = Parts(PART, "-detail")
        self._why = Parts(" ", "-detail")

    def compose(self) -> ComposeResult:
        yield self.table
        yield self._details
        yield self._why
        yield self.bar

    @property
    def cursor_member(self) -> MemberRow | None:
        item = self.table.cursor_row
        return None if item is None else item.member

    def show_members(self, group: GroupDescription, partitions: Sequence[WatchedPartition], passed_s: float) -> None:
        """`passed_s` is how old the description is: silent members have been silent for that much longer."""
        parts: list[str | Content] = ["\u2605 leader"] if any(one.leader for one in group.members) else []
        self.show(items(group, partitions, passed_s), parts=parts, gone=lambda _: GONE)
        self._why.show([reason] if (reason := why(group)) else [])
        self._show_member()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._show_member()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        # Which columns there are follows from the layout of the table.
        self.call_after_refresh(self._show_member)

    def _show_member(self) -> None:
        member = self.cursor_member
        self._details.show(details(member, self.table.visible_columns) if member is not None else [])


def items(group: GroupDescription, partitions: Sequence[WatchedPartition], passed_s: float) -> list[MemberItem]:
    called, is_hidden = names(group.members), hides_assignments(group)
    lags: dict[str | None, int | None] = {}
    rates: dict[str | None, float] = {}
    for row in partitions:
        if row.lag is not None:
            lags[row.consumer_id] = (lags.get(row.consumer_id) or 0) + max(0, row.lag)
        if row.rate_out is not None:
            rates[row.consumer_id] = rates.get(row.consumer_id, 0.0) + row.rate_out
    found = []
    for one in member_phases(group):
        member = grown(one.member, passed_s) if one.is_silent else one.member
        key = member.consumer_id
        has_nothing = not is_hidden and member.partitions == 0
        found.append(
            MemberItem(
                member,
                called[key or ""],
                shown_phase(one),
                is_awaited(group, one.phase),
                None if is_hidden else member.partitions,
                0 if has_nothing else lags.get(key),
                0.0 if has_nothing else rates.get(key),
                tuple(entry.topic for entry in member.current_assignment or ()),
            )
        )
    return found


def hides_assignments(group: GroupDescription) -> bool:
    """Whether the coordinator reports no assignments, as during a rebalance; that does not mean that they are empty."""
    return group.state in REBALANCING and not any(member.partitions for member in group.members)


def heartbeat(member: MemberRow, width: int = 100) -> str:
    """The age of the last heartbeat relative to the session timeout: in figures, with a bar if there is room; `-` if not reported."""
    age_ms, session_ms = member.heartbeat_age_ms, member.session_timeout_ms
    if age_ms is None:
        return MISSING
    age = cells.age(age_ms / 1000)
    if not session_ms:
        return age
    of = f"{age} of {cells.age(session_ms / 1000)}"
    if width < OF_FROM:
        return age
    full = min(BAR_CELLS, round(BAR_CELLS * age_ms / session_ms))
    bar = f"{glyphs.FULL * full}{glyphs.SHADE * (BAR_CELLS - full)} {of}"
    return bar if width >= len(bar) + 2 else of


def status(item: MemberItem, width: int) -> str:
    """The longest form that fits."""
    if item.phase is None:
        return MISSING
    forms: tuple[str, ...]
    if item.phase == SILENT and (left_s := evicted_in_s(item.member)) is not None:
        left = cells.age(left_s)
        forms = (f"silent, evicted in {left}", f"silent, {left} left", f"silent {left}", SILENT)
    elif item.phase == NOT_REJOINED:
        forms = (NOT_REJOINED, "not rejoined")
    elif item.phase == REVOKING:
        forms = _moving(REVOKING, item.member.revoking)
    elif item.phase == WAITING:
        forms = _moving("waiting for", item.member.waiting_for)
    elif item.phase == AWAY:
        forms = ("away, expected back", AWAY)
    else:
        forms = (cells.name(item.phase),)
    return next((one for one in forms if len(one) <= width), forms[-1])


def _moving(word: str, places: Sequence[TopicPartitions] | None) -> tuple[str, ...]:
    count = sum(len(entry.partitions) for entry in places or ())
    named = cells.name(";".join(map(str, places or ())))
    return f"{word} {named}", f"{word} {counted(count, 'partition')}", f"{word} {count}"


def details(member: MemberRow, visible: set[str]) -> list[str]:
    """Facts about a member that no visible column shows, the most important first."""
    parts = {"id": cells.name(member.consumer_id)}
    if not (member.consumer_id or "").startswith(member.client_id or ""):
        parts["client"] = f"client id {cells.name(member.client_id)}"
    if member.group_instance_id:
        parts["instance"] = f"instance {cells.name(member.group_instance_id)}"
    if member.current_epoch is not None:
        parts["epoch"] = f"epoch {member.current_epoch} of {cells.count(member.target_epoch)}"
    if member.revoking:
        parts["revoking"] = f"has not given up {cells.name(';'.join(map(str, member.revoking)))}"
    if member.waiting_for:
        parts["waiting"] = f"waits for {cells.name(';'.join(map(str, member.waiting_for)))}"
    if member.subscribed_regex:
        parts["regex"] = f"topics {cells.name(member.subscribed_regex)}"
    if member.rack_id:
        parts["rack"] = f"rack {cells.name(member.rack_id)}"
    if member.member_type == CLASSIC:
        parts["protocol"] = "classic protocol"
    parts["host"] = f"host {cells.name(member.host)}"
    if member.rebalance_timeout_ms is not None:
        parts["timeout"] = f"rebalance timeout {cells.milliseconds(member.rebalance_timeout_ms)}"
    return [text for key, text in parts.items() if key not in visible]


def why(group: GroupDescription) -> str:
    """One line: why values of the members are `-`."""
    if any(member.heartbeat_age_ms is None and member.session_timeout_ms is None for member in group.members):
        if any(one.phase is None for one in member_phases(group)):
            return "HEARTBEAT and STATUS are -: this cluster does not report them."
        return "HEARTBEAT is -: this cluster does not report it."
    if hides_assignments(group) and group.members:
        return "PARTS is - until the rebalance ends."
    if any(member.partitions is None for member in group.members):
        return "PARTS is -: the members are not consumers."
    return ""


def _name(item: MemberItem, width: int) -> str:
    if not item.member.leader:
        return item.name
    return cells.fitted(item.name, min(len(item.name), width - len(LEADER))) + LEADER


def _lag(item: MemberItem, width: int) -> str:
    return cells.whole(item.lag, width)


def _look(item: MemberItem) -> Look:
    return LOOKS.get(item.phase or "", NO_LOOK)


def _style(item: MemberItem) -> str:
    found = _look(item).style
    return "" if found == "good" else found


def _text(item: MemberItem) -> str:
    member = item.member
    return " ".join(filter(None, (item.name, member.consumer_id, member.group_instance_id, member.host)))


COLUMNS: tuple[Column[MemberItem], ...] = (
    Column("member", "MEMBER", lambda item: item.name, 9, flex=3, most=34, order=lambda item: item.name, drawn=_name),
    replace(catalogue.instance(lambda item: item.member.group_instance_id), from_room=WIDE),
    replace(catalogue.host(lambda item: item.member.host), from_room=WIDE),
    replace(catalogue.consumer_id(lambda item: item.member.consumer_id), from_room=WIDER),
    catalogue.number("partitions", "PARTS", lambda item: item.partitions, cells.count, 5),
    replace(catalogue.number("lag", "LAG", lambda item: item.lag, cells.count, 7), flex=1, most=13, drawn=_lag),
    catalogue.rate("out", "OUT/s", lambda item: item.rate_out, 1),
    Column(
        "heartbeat",
        "HEARTBEAT",
        lambda item: heartbeat(item.member),
        9,
        flex=1,
        most=21,
        style=lambda item: "bad" if item.phase == SILENT else "",
        order=lambda item: item.member.heartbeat_age_ms,
        falling=True,
        drawn=lambda item, width: heartbeat(item.member, width),
        priority=2,
    ),
    Column("phase", "STATUS", lambda item: item.phase or MISSING, 12, flex=4, most=24, style=_style, drawn=status,
           order=lambda item: item.phase),
)  # fmt: skip
FIELDS: tuple[Field[MemberItem], ...] = (
    Field("status", lambda item: ((item.phase or "").replace(" ", "-"),)),
    Field("topic", lambda item: item.topics),
    Field("host", lambda item: (item.member.host,)),
    Field("lag", number=lambda item: item.lag),
)
