"""The screen of one group: state machine, rebalances, members, assignment, offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from broker.light_dataclasses import replace
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Assignment, GroupSnapshot, Rebalance
from kgctl.tui import cells, command_line
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.assignment.pane import AssignmentPane
from kgctl.tui.widgets.frame.pane_names import PaneNames
from kgctl.tui.widgets.group.members import MembersPane
from kgctl.tui.widgets.group.offsets import OffsetsPane
from kgctl.tui.widgets.group.overview import OverviewPane
from kgctl.tui.widgets.group.progress import names, short_id
from kgctl.tui.widgets.group.state_machine import StateMachine
from kgctl.tui.widgets.group.timeline import clock_time
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.assignments import assignment_of
from kgctl.watch.figures import counted
from kgctl.watch.group import GroupView
from kgctl.watch.opened import OpenedGroup
from kgctl.watch.timeline import Timeline

OVERVIEW, MEMBERS, ASSIGNMENT, OFFSETS = range(4)
PANES = ("Overview", "Members", "Assignment", "Offsets")
NOT_REPORTED = "Generation and leader are -: this cluster does not report them."
UNDER_WAY = "A rebalance is under way; there is no assignment yet."
NOT_KNOWN = "The assignment of this rebalance is not known."


class GroupScreen(PolledScreen[OpenedGroup]):
    """The state machine above one of four panes; on a large terminal the first pane includes the members."""

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
        Binding("shift+tab,h,left", "next_pane(-1)", "Previous pane", show=False, key_display="shift+tab"),
        Binding("r", "reset", "Reset", tooltip="Reset offsets of the group"),
        Binding("b", "rebalance", "Rebalance", tooltip="Trigger a rebalance of the group"),
        Binding("x", "remove", "Remove", tooltip="Remove a member of the group"),
    ]
    # The terminal size from which members are below the rebalances, and the width from which details are beside them.
    WIDE, HIGH, BESIDE = 110, 34, 150

    def __init__(self, group: str, at_ms: int | None = None) -> None:
        super().__init__(cells.name(group))
        self.group = group
        self._at_ms = at_ms  # of the rebalance to begin with
        self.pane = OVERVIEW
        self._reads_whole_history = True
        self._opened = OpenedGroup()
        self._passed_s = 0.0  # since the snapshot; stops while no answers arrive
        self._snapshot: GroupSnapshot | None = None
        self._view: GroupView | None = None
        self._names: Mapping[str, str] = {}  # of members by id, from the last good snapshot
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

    async def ask(self) -> OpenedGroup:
        found = await self.dashboard.background.observer.group(self.group, whole_history=self._reads_whole_history)
        self._reads_whole_history = False
        return found

    def answered(self, answer: OpenedGroup) -> None:
        assert answer.snapshot is not None
        assert answer.view is not None
        self._opened = answer
        self._snapshot, self._view, self._passed_s = answer.snapshot, answer.view, 0.0
        group = answer.snapshot.group
        if group.error is None:
            self._names = names(group.members)
        self.members.show(self._view.group or group)
        self.offsets.show(self._view.partitions)
        self._show_times()
        if self._at_ms is not None:
            self.overview.timeline.go_to_time(self._at_ms)
            self._at_ms = None
        self._show_assignment()

    def tick(self) -> None:
        super().tick()
        self._show_times()

    def on_mount(self) -> None:
        self._switch(OVERVIEW)

    def on_resize(self) -> None:
        self._switch(self.pane)

    def on_screen_resume(self) -> None:
        # A snapshot that was cancelled when the screen was covered may have consumed events.
        self._reads_whole_history = True

    def copied_command(self, row: object) -> str:
        return command_line.showing(self.dashboard.feed.cluster, "groups", "describe", self.group)

    # ---- contents

    @property
    def _timeline(self) -> Timeline:
        return self._opened.timeline

    @property
    def _panes(self) -> tuple[Widget, ...]:
        return self.overview, self.members, self.assignment, self.offsets

    def _show_times(self) -> None:
        """Update durations, which grow between two snapshots."""
        snapshot, view = self._snapshot, self._view
        if snapshot is None or view is None:
            return
        if not self.polling.freshness.is_lost and not self.dashboard.is_paused:
            self._passed_s = max(0.0, self.dashboard.now_s() - snapshot.at_s)
        now_ms = snapshot.wall_ms + int(self._passed_s * 1000)
        state_s = None if view.state_s is None else view.state_s + self._passed_s
        if state_s is not None and snapshot.group.state_since_ms is not None:
            # All other times on this screen are of the coordinator's clock, which may differ from ours.
            now_ms = snapshot.group.state_since_ms + int(state_s * 1000)
        self.machine.show(snapshot.group, state_s, now_ms, is_least=view.is_state_s_least)
        self.overview.show(self._rebalances(snapshot), now_ms, self._names, self._note(snapshot))

    def _rebalances(self, snapshot: GroupSnapshot) -> tuple[Rebalance, ...]:
        """The rows, with the duration of the first phase of an open one: the history has it only when the rebalance has ended."""
        rows, since_ms = self._timeline.rows, snapshot.group.state_since_ms
        if not rows or not rows[-1].is_under_way or rows[-1].prepare_ms is not None:
            return rows
        if snapshot.group.state != "CompletingRebalance" or since_ms is None:
            return rows
        return (*rows[:-1], replace(rows[-1], prepare_ms=max(0, since_ms - rows[-1].started_ms)))

    def _show_assignment(self) -> None:
        if self._snapshot is None or self._view is None:
            return
        bar = self.overview.timeline.cursor_row
        after, before, title = self._selected(bar.rebalance if bar else None)
        reading = [TopicPartition(row.topic, row.partition) for row in self._view.partitions]
        reason = UNDER_WAY if bar is not None and bar.is_under_way else NOT_KNOWN
        self.assignment.show(
            after,
            before,
            names={member: self._names.get(member) or short_id(member) for member in {*(after or {}), *(before or {})}},
            title=title,
            partitions=reading if bar is None or bar is self.overview.timeline.rows[0] else (),
            reason=reason,
        )

    def _selected(self, selected: Rebalance | None) -> tuple[Assignment | None, Assignment | None, str]:
        """The assignments after and before the selected rebalance, with a title; without rebalances, the current assignment."""
        group = self._view.group if self._view else None
        now = assignment_of(group) if group is not None else None
        if selected is None:
            return now, None, "Assignment"
        is_newest = selected.started_ms == self._timeline.rows[-1].started_ms
        after = selected.assignment
        if after is None and is_newest and not selected.is_under_way:
            after = now
        number = "Under way" if selected.is_under_way else f"Generation {cells.count(selected.generation)}"
        return after, self._timeline.assignment_before(selected), f"{number}, {clock_time(selected.started_ms)}"

    def _note(self, snapshot: GroupSnapshot) -> str:
        """The source of the rebalances if it is not a complete history, and why values of the group are `-`."""
        notes = []
        group = snapshot.group
        if group.error is None and group.generation is None and group.group_epoch is None:
            notes.append(NOT_REPORTED)
        if snapshot.history_error is not None and self._timeline.has_history:
            notes.append(f"Reading the history failed: {cells.name(snapshot.history_error)}")
        elif not self._timeline.has_history:
            notes.append(f"Only rebalances observed since {clock_time(self._opened.since_ms)} are shown.")
            notes += [cells.name(snapshot.history_error)] if snapshot.history_error else []
        elif self._timeline.unreadable:
            unreadable = counted(self._timeline.unreadable, "unreadable event")
            notes.append(f"The history is incomplete: {unreadable} left out.")
        return " ".join(notes)

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
        has_changed, self.pane = pane != self.pane, pane
        width, height = self.size
        has_room = width >= self.WIDE and height >= self.HIGH
        self.set_class(width >= self.BESIDE, "-beside")
        for place, widget in enumerate(self._panes):
            widget.display = place == pane
        self.members.display = pane == MEMBERS or (pane == OVERVIEW and has_room)
        self.members.set_class(pane == OVERVIEW, "-below")
        self.pane_names.show(pane)
        if has_changed:
            self._panes[pane].focus()

    # ---- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("reset", "rebalance", "remove") and self.dashboard.read_only:
            return None
        return super().check_action(action, parameters)

    def action_reset(self) -> None:
        row = self.offsets.cursor_row if self.pane == OFFSETS else None
        topic, partition = (row.topic, row.partition) if row else (None, None)
        self._open(ResetDialog(self.dashboard.feed, self.group, topic, partition, read_only=self.dashboard.read_only))

    def action_rebalance(self) -> None:
        self._open(RebalanceDialog(self.dashboard.feed, self.group, read_only=self.dashboard.read_only))

    def action_remove(self) -> None:
        is_on_members = self.pane == MEMBERS or self.members.rows.has_focus
        member = self.members.cursor_row if is_on_members else None
        self._open(
            RemoveMemberDialog(
                self.dashboard.feed,
                self.group,
                member_id=member.consumer_id if member else None,
                instance=member.group_instance_id if member else None,
                read_only=self.dashboard.read_only,
            )
        )

    def _open(self, dialog: Screen[bool]) -> None:
        # The result is not needed: this screen refreshes at once when it resumes.
        self.app.push_screen(dialog)
