"""One group, live: its states, its rebalances, its members, who has what, how far it has read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Assignment, GroupLook, Rebalance
from kgctl.tui import cells
from kgctl.tui.screens.rebalance import RebalanceDialog
from kgctl.tui.screens.removal import RemoveMemberDialog
from kgctl.tui.screens.reset import ResetDialog
from kgctl.tui.screens.watching import Watching
from kgctl.tui.widgets.assignment import AssignmentPane
from kgctl.tui.widgets.members import MembersPane
from kgctl.tui.widgets.offsets import OffsetsPane
from kgctl.tui.widgets.overview import OverviewPane
from kgctl.tui.widgets.pane_names import PaneNames
from kgctl.tui.widgets.rows import Rows
from kgctl.tui.widgets.standing import names, short_id
from kgctl.tui.widgets.state_machine import StateMachine
from kgctl.tui.widgets.timeline import clock_time
from kgctl.watch.assignments import assignment_of
from kgctl.watch.partitions import GroupView, GroupWatch
from kgctl.watch.rebalances import Timeline

OVERVIEW, MEMBERS, ASSIGNMENT, OFFSETS = range(4)
PANES = ("Overview", "Members", "Assignment", "Offsets")
NOT_TOLD = "Generation and leader are -: DescribeGroups has no such fields."
UNDER_WAY = "A rebalance is under way: who gets what is not decided yet."


@dataclass
class Seen:
    """What looks from outside have shown of a group. It outlives the screen, which is made anew each time it is opened."""

    timeline: Timeline = field(default_factory=Timeline)
    since_ms: int = 0


class GroupScreen(Watching[GroupLook]):
    """The states on top, below them one of the panes; where there is room the first one has the members too."""

    DEFAULT_CSS = """
    GroupScreen #panes { height: 1fr; }
    GroupScreen #members.-below { height: 1fr; border-top: solid $panel; }
    GroupScreen.-beside #rebalances { layout: horizontal; }
    GroupScreen.-beside RebalanceDetail { width: 2fr; height: 1fr; }
    GroupScreen.-beside #past { width: 3fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Back"),
        *[Binding(str(place + 1), f"pane({place})", name, show=False) for place, name in enumerate(PANES)],
        Binding("tab,l,right", "next_pane(1)", "Next pane", show=False, key_display="tab"),
        Binding("shift+tab,h,left", "next_pane(-1)", "Pane before", show=False, key_display="shift+tab"),
        Binding("r", "reset", "Reset", tooltip="Reset offsets of the group"),
        Binding("b", "rebalance", "Rebalance", tooltip="Trigger a rebalance of the group"),
        Binding("x", "remove", "Remove", tooltip="Remove a member of the group"),
    ]
    # From how many columns and lines on the members are below the rebalances, and the details of one beside them.
    WIDE, HIGH, BESIDE = 110, 34, 150

    def __init__(self, group: str, seen: Seen) -> None:
        super().__init__(cells.name(group))
        self.group = group
        self.pane = OVERVIEW
        self._is_anew = True
        self._passed_s = 0.0  # since the look, as long as looks come
        self._look: GroupLook | None = None
        self._view: GroupView | None = None
        self._watch, self._timeline, self._seen = GroupWatch(), seen.timeline, seen
        self._names: Mapping[str, str] = {}  # of the members when they were last told
        self.machine = StateMachine()
        self.pane_names = PaneNames(PANES)
        self.overview = OverviewPane(id="overview")
        self.members = MembersPane(id="members")
        self.assignment = AssignmentPane(id="assignment")
        self.offsets = OffsetsPane(id="offsets")

    def contents(self) -> ComposeResult:
        yield self.machine
        yield self.pane_names
        yield from self._panes

    async def ask(self) -> GroupLook:
        return await self.kgctl.feed.look_at(self.group, anew=self._is_anew)

    def answered(self, answer: GroupLook) -> None:
        self._seen.since_ms = self._seen.since_ms or answer.wall_ms
        self._look, self._view, self._passed_s = answer, self._watch.add(answer), 0.0
        self._timeline.add(answer, anew=self._is_anew)
        # Where the story could not be read, what came meanwhile is not known: all of it again.
        self._is_anew = answer.events is None
        if answer.group.error is None:
            self._names = names(answer.group.members)
        self.members.show(self._view.group or answer.group)
        self.offsets.show(self._view.partitions)
        self._show_moving()
        self._show_assignment()

    def tick(self) -> None:
        super().tick()
        self._show_moving()

    def on_mount(self) -> None:
        self._switch(OVERVIEW)

    def on_resize(self) -> None:
        self._switch(self.pane)

    def on_screen_resume(self) -> None:
        # A look that was under way when the screen was covered may have taken events along.
        self._is_anew = True

    # ---- what is shown

    @property
    def _panes(self) -> tuple[Widget, ...]:
        return self.overview, self.members, self.assignment, self.offsets

    def _show_moving(self) -> None:
        """What goes on between two looks: times."""
        look, view = self._look, self._view
        if look is None or view is None:
            return
        if not self.polling.freshness.is_lost and not self.kgctl.is_paused:
            self._passed_s = max(0.0, self.kgctl.clock() - look.at_s)
        now_ms = look.wall_ms + int(self._passed_s * 1000)
        state_s = None if view.state_s is None else view.state_s + self._passed_s
        if state_s is not None and look.group.state_since_ms is not None:
            # All other times on this screen are by the coordinator's clock, which may not be ours.
            now_ms = look.group.state_since_ms + int(state_s * 1000)
        self.machine.show(look.group, state_s, now_ms, is_least=view.is_state_s_least)
        self.overview.show(self._rebalances(look), now_ms, self._names, self._story(look))

    def _rebalances(self, look: GroupLook) -> tuple[Rebalance, ...]:
        """The story tells how long members were awaited only when all is over; the description tells it before."""
        rows, since_ms = self._timeline.rows, look.group.state_since_ms
        if not rows or rows[-1].outcome or rows[-1].prepare_ms is not None:
            return rows
        if look.group.state != "CompletingRebalance" or since_ms is None:
            return rows
        return (*rows[:-1], replace(rows[-1], prepare_ms=max(0, since_ms - rows[-1].started_ms)))

    def _show_assignment(self) -> None:
        if self._look is None or self._view is None:
            return
        bar = self.overview.timeline.cursor_row
        after, before, title = self._chosen(bar.rebalance if bar else None)
        reading = [TopicPartition(row.topic, row.partition) for row in self._view.partitions]
        reason = UNDER_WAY if bar is not None and bar.is_under_way else "Who got what by this rebalance is not known."
        self.assignment.show(
            after,
            before,
            names={member: self._names.get(member) or short_id(member) for member in {*(after or {}), *(before or {})}},
            title=title,
            partitions=reading if bar is None or bar is self.overview.timeline.rows[0] else (),
            reason=reason,
        )

    def _chosen(self, chosen: Rebalance | None) -> tuple[Assignment | None, Assignment | None, str]:
        """After and before the rebalance under the cursor; without any, what is now."""
        group = self._view.group if self._view else None
        now = assignment_of(group) if group is not None else None
        if chosen is None:
            return now, None, "Assignment"
        is_newest = chosen.started_ms == self._timeline.rows[-1].started_ms
        after = chosen.assignment
        if after is None and is_newest and chosen.outcome:
            after = now
        number = "Under way" if not chosen.outcome else f"Generation {cells.count(chosen.generation)}"
        return after, self._timeline.assignment_before(chosen), f"{number}, {clock_time(chosen.started_ms)}"

    def _story(self, look: GroupLook) -> str:
        """Where the rebalances are known from, and why something of the group is `-`."""
        said = []
        if look.group.error is None and look.group.generation is None and look.group.group_epoch is None:
            said.append(NOT_TOLD)
        if look.story_error is not None and self._timeline.is_told:
            said.append(f"The story could not be read again: {cells.name(look.story_error)}")
        elif not self._timeline.is_told:
            said.append(f"Rebalances are those seen since {clock_time(self._seen.since_ms)}.")
            said += [cells.name(look.story_error)] if look.story_error else []
        elif self._timeline.unreadable:
            said.append(f"Unreadable and left out: {self._timeline.unreadable:,} of the events.")
        return " ".join(said)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows is self.overview.timeline:
            self._show_assignment()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if event.rows is self.overview.timeline:
            self._switch(ASSIGNMENT)

    # ---- panes

    def on_pane_names_chosen(self, event: PaneNames.Chosen) -> None:
        self._switch(event.place)

    def action_pane(self, place: int) -> None:
        self._switch(place)

    def action_next_pane(self, by: int) -> None:
        self._switch((self.pane + by) % len(PANES))

    def _switch(self, pane: int) -> None:
        is_other, self.pane = pane != self.pane, pane
        width, height = self.size
        has_room = width >= self.WIDE and height >= self.HIGH
        self.set_class(width >= self.BESIDE, "-beside")
        for place, widget in enumerate(self._panes):
            widget.display = place == pane
        self.members.display = pane == MEMBERS or (pane == OVERVIEW and has_room)
        self.members.set_class(pane == OVERVIEW, "-below")
        self.pane_names.show(pane)
        if is_other:
            self._panes[pane].focus()

    # ---- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("reset", "rebalance", "remove") and self.kgctl.read_only:
            return None
        return super().check_action(action, parameters)

    def action_reset(self) -> None:
        row = self.offsets.cursor_row if self.pane == OFFSETS else None
        topic, partition = (row.topic, row.partition) if row else (None, None)
        self._open(ResetDialog(self.kgctl.feed, self.group, topic, partition, read_only=self.kgctl.read_only))

    def action_rebalance(self) -> None:
        self._open(RebalanceDialog(self.kgctl.feed, self.group, read_only=self.kgctl.read_only))

    def action_remove(self) -> None:
        is_on_members = self.pane == MEMBERS or self.members.rows.has_focus
        member = self.members.cursor_row if is_on_members else None
        self._open(
            RemoveMemberDialog(
                self.kgctl.feed,
                self.group,
                member_id=member.consumer_id if member else None,
                instance=member.group_instance_id if member else None,
                read_only=self.kgctl.read_only,
            )
        )

    def _open(self, dialog: Screen[bool]) -> None:
        # Nothing to do when it ends: a screen that comes back looks at once, whatever was changed.
        self.app.push_screen(dialog)
