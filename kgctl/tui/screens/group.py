"""The screen of one group: state, lag, members, partitions, rebalances, and what the selected rebalance moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content

from broker.light_dataclasses import replace
from kgctl.model.groups import CONSUMER, REBALANCING
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Assignment, GroupSnapshot, Rebalance
from kgctl.tui import cells, command_line
from kgctl.tui.screens.changes import Aim, ChangesGroups
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.events.lines import of_group
from kgctl.tui.widgets.frame.table_panel import GONE
from kgctl.tui.widgets.group.bars import Bar, clock_time
from kgctl.tui.widgets.group.lag_panel import GroupLagPanel, headline
from kgctl.tui.widgets.group.machine import path_of
from kgctl.tui.widgets.group.members import MembersPanel
from kgctl.tui.widgets.group.names import former_names, name_of, names
from kgctl.tui.widgets.group.partitions import PartitionsPanel
from kgctl.tui.widgets.group.rebalance_panel import RebalancePanel
from kgctl.tui.widgets.group.rebalances import RebalancesPanel
from kgctl.tui.widgets.group.state_panel import StateNow, StatePanel
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.assignments import assignment_of, held_in, target_of
from kgctl.watch.cluster import ClusterView
from kgctl.watch.figures import counted
from kgctl.watch.group import GroupView
from kgctl.watch.opened import OpenedGroup
from kgctl.watch.series import BUCKETS, Values
from kgctl.watch.timeline import Timeline
from kgctl.watch.visits import visits

NOT_REPORTED = "Generation and leader are -: this cluster does not report them."
# Lines around the rows of a table: its frame, its header, the line below it.
AROUND_ROWS = 4
# The fewest lines of the panels in the middle and at the bottom, and the lines at the top: usual, most, most on a high terminal.
LEAST_MIDDLE, LEAST_BOTTOM, TOP, MOST_TOP = 7, 9, 7, (12, 20)


class GroupScreen(ChangesGroups, PolledScreen[OpenedGroup]):
    """Six panels; a narrow terminal stacks the tables and leaves out what a zoom shows."""

    DEFAULT_CSS = """
    GroupScreen #top { height: 7; }
    GroupScreen #middle, GroupScreen #bottom { height: 1fr; }
    GroupScreen #state { width: 4fr; min-width: 56; }
    GroupScreen #lag { width: 3fr; }
    GroupScreen #members { width: 8fr; }
    GroupScreen #partitions { width: 7fr; }
    GroupScreen #rebalances { width: 3fr; }
    GroupScreen #rebalance { width: 2fr; }
    GroupScreen.-low #top { height: 5; }
    GroupScreen.-narrow #lag { display: none; }
    GroupScreen.-narrow #middle, GroupScreen.-narrow #bottom { layout: vertical; }
    GroupScreen.-narrow #middle { height: 2fr; }
    GroupScreen.-narrow #middle > *, GroupScreen.-narrow #bottom > * { width: 1fr; }
    GroupScreen.-narrow.-low #rebalance { display: none; }
    GroupScreen.-narrow.-usual #bottom, GroupScreen.-narrow.-high #bottom { height: 2fr; }
    GroupScreen.-low .-detail { max-height: 0; }
    GroupScreen.-low .-zoomed .-detail { max-height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "other_group(-1)", "Previous group", show=False, key_display="["),
        Binding("right_square_bracket", "other_group(1)", "Next group", show=False, key_display="]"),
        Binding("v", "next_view", "Before/after", tooltip="Show the assignment before and after, after, or before"),
        Binding("escape", "app.pop_screen", "Back"),
    ]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("1-5", "zoom"), ("tab", "next"), ("[ ]", "other group"))

    def __init__(self, group: str, at_ms: int | None = None, zoomed: int | None = None) -> None:
        """`at_ms`: of the rebalance to begin with; `zoomed`: the number of the panel to zoom at first."""
        super().__init__(cells.name(group))
        self.group = group
        self._at_ms, self._first_zoom = at_ms, zoomed
        self._reads_whole_history = True
        self._opened = OpenedGroup()
        self._passed_s = 0.0  # since the snapshot; stops while no answers arrive
        self._snapshot: GroupSnapshot | None = None
        self._view: GroupView | None = None
        self._names: Mapping[str, str] = {}  # of members by id, from the last good snapshot
        self.state, self.lag = StatePanel(), GroupLagPanel()
        self.members, self.partitions = MembersPanel(), PartitionsPanel()
        self.rebalances, self.rebalance = RebalancesPanel(), RebalancePanel()

    def contents(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield self.state
            yield self.lag
        with Horizontal(id="middle"):
            yield self.members
            yield self.partitions
        with Horizontal(id="bottom"):
            yield self.rebalances
            yield self.rebalance

    def headline(self) -> Sequence[Content]:
        return headline(self._view.summary) if self._view is not None else ()

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
            self._names = {**former_names(self._timeline.clients), **names(group.members)}
        baseline = self.dashboard.baseline
        before = None if baseline is None else baseline.partitions(self.group)
        is_owned = group.state not in REBALANCING
        self.partitions.show_partitions(answer.view.partitions, self._names, is_owned=is_owned, before=before)
        self._show_lag()
        self._show_times()
        if self._at_ms is not None:
            self.rebalances.go_to_time(self._at_ms)
            self._at_ms = None
        self._show_rebalance()
        self._fit()
        if self._first_zoom is not None:
            self.action_zoom(self._first_zoom)
            self._first_zoom = None

    def cluster_answered(self, view: ClusterView) -> None:
        self._show_lag()
        self._show_times()

    def tick(self) -> None:
        super().tick()
        self._show_times()

    def on_screen_resume(self) -> None:
        # A snapshot that was cancelled when the screen was covered may have consumed events.
        self._reads_whole_history = True

    def copied_command(self, row: object) -> str:
        return command_line.showing(self.dashboard.feed.cluster, "groups", "describe", self.group)

    def copied_name(self, rows: Rows[Any], row: Any) -> str:
        if rows is self.members.table:
            return row.member.consumer_id or ""
        return f"{row.topic}-{row.partition}" if rows is self.partitions.table else str(row.cause)

    # ---- contents

    @property
    def _timeline(self) -> Timeline:
        return self._opened.timeline

    def _show_lag(self) -> None:
        """The series of all groups goes back further than this screen."""
        if self._view is None:
            return
        cluster, row = self.dashboard.cluster, self._view.summary
        lags: Values = cluster.lags(self.group) if cluster is not None else (None,) * BUCKETS
        if row.lag is not None and lags[-1] is None:
            lags = (*lags[1:], float(row.lag))
        self.lag.show(row, lags)

    def _show_times(self) -> None:
        """Update durations, which grow between two snapshots."""
        snapshot, view = self._snapshot, self._view
        if snapshot is None or view is None:
            return
        if not self.polling.freshness.is_lost and not self.dashboard.is_paused:
            self._passed_s = max(0.0, self.dashboard.now_s() - snapshot.at_s)
        # The view knows from earlier snapshots what members have not given up.
        group, passed_s = view.group if snapshot.group.error is None and view.group else snapshot.group, self._passed_s
        now_ms = snapshot.wall_ms + int(passed_s * 1000)
        state_s = None if view.state_s is None else view.state_s + passed_s
        if state_s is not None and group.state_since_ms is not None:
            # All other times on this screen are of the coordinator's clock, which may differ from ours.
            now_ms = group.state_since_ms + int(state_s * 1000)
        rebalances = self._rebalances(snapshot)
        found = visits(path_of(group), group, state_s, rebalances)
        cluster = self.dashboard.cluster
        events = of_group(cluster.events, self.group) if cluster is not None else []
        self.state.show(StateNow(group, view.summary, state_s, view.is_state_s_least, now_ms, passed_s, found, events))
        self.members.show_members(view.group or group, view.partitions, passed_s)
        self.rebalances.show_rebalances(
            rebalances, now_ms, self._names, self._notes(snapshot), is_reconciliation=group.type == CONSUMER
        )

    def _rebalances(self, snapshot: GroupSnapshot) -> tuple[Rebalance, ...]:
        """The rows, with the duration of the first phase of an open one: the history has it only when the rebalance has ended."""
        rows, since_ms = self._timeline.rows, snapshot.group.state_since_ms
        if not rows or not rows[-1].is_under_way or rows[-1].prepare_ms is not None:
            return rows
        if snapshot.group.state != "CompletingRebalance" or since_ms is None:
            return rows
        return (*rows[:-1], replace(rows[-1], prepare_ms=max(0, since_ms - rows[-1].started_ms)))

    def _show_rebalance(self) -> None:
        if self._view is None:
            return
        bar = self.rebalances.table.cursor_row
        after, before = self._selected(bar)
        reading = [TopicPartition(row.topic, row.partition) for row in self._view.partitions]
        is_newest = bar is None or bar.rebalance.started_ms == self._timeline.rows[-1].started_ms
        called = {member: name_of(member, self._names) for member in {*(after or {}), *(before or {})}}
        self.rebalance.show(bar, after, before, {**self._names, **called}, reading if is_newest else ())

    def _selected(self, bar: Bar | None) -> tuple[Assignment | None, Assignment | None]:
        """The assignments after and before the selected rebalance; without rebalances, the current assignment.

        Of members that reconcile, their targets and what they have.
        """
        group = self._view.group if self._view else None
        now = assignment_of(group) if group is not None else None
        target = None if group is None else target_of(group)
        if group is not None and target is not None and (bar is None or bar.is_under_way):
            return target, held_in(group)
        if bar is None:
            return now, None
        selected = bar.rebalance
        after = selected.assignment
        if after is None and selected.started_ms == self._timeline.rows[-1].started_ms and not selected.is_under_way:
            after = now
        return after, self._timeline.assignment_before(selected)

    def _notes(self, snapshot: GroupSnapshot) -> list[str]:
        """The source of the rebalances if it is not a complete history, and why values of the group are `-`."""
        notes = []
        group = snapshot.group
        if snapshot.history_error is not None and self._timeline.has_history:
            notes.append(f"Reading the history failed: {cells.name(snapshot.history_error)}")
        elif not self._timeline.has_history:
            notes.append(f"Only rebalances observed since {clock_time(self._opened.since_ms)} are shown.")
            notes += [cells.name(snapshot.history_error)] if snapshot.history_error else []
        elif self._timeline.unreadable:
            unreadable = counted(self._timeline.unreadable, "unreadable event")
            notes.append(f"The history is incomplete: {unreadable} left out.")
        elif self._timeline.is_derived:
            notes.append("Derived from __consumer_offsets: not whether members left or timed out.")
        if group.error is None and group.generation is None and group.group_epoch is None:
            notes.append(NOT_REPORTED)
        return notes

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows is self.rebalances.table:
            self._show_rebalance()

    # ---- layout

    def focus_first(self) -> None:
        self.set_focus(self.members.table)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Give the tables in the middle the lines that they need, the rest to the bottom; what is left goes to the top."""
        top, middle = self.query_one("#top"), self.query_one("#middle")
        height = self.query_one("#contents").size.height
        if self.zoom.panel is not None or self.has_class("-narrow") or self.has_class("-low") or not height:
            top.styles.clear_rule("height")
            middle.styles.clear_rule("height")
            return
        wants = max(LEAST_MIDDLE, max(len(self.members.table.rows), len(self.partitions.table.rows)) + AROUND_ROWS)
        below = max(
            LEAST_BOTTOM, max(len(self.rebalances.table.rows), self.rebalance.grid.line_count + 5) + AROUND_ROWS
        )
        room = height - TOP
        lines = min(wants, max(room // 2, room - below))
        top.styles.height = min(MOST_TOP[self.has_class("-high")], TOP + max(0, room - lines - below))
        middle.styles.height = lines

    def action_zoom(self, number: int) -> None:
        super().action_zoom(number)
        self._fit()

    # ---- keys

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Zoom the members or what the rebalance moved; show the records around a committed offset."""
        if event.rows is self.partitions.table:
            self.dashboard.open_records(event.row.topic, event.row.partition, self.group)
        else:
            self.action_zoom(1 if event.rows is self.members.table else 4)

    def action_next_view(self) -> None:
        self.rebalance.next_view()

    def action_other_group(self, by: int) -> None:
        groups = self.dashboard.groups_in_order()
        at = groups.index(self.group) if self.group in groups else -by
        zoomed = self.zoom.panel.number if self.zoom.panel is not None else None
        self.app.switch_screen(GroupScreen(groups[(at + by) % len(groups)], zoomed=zoomed))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "other_group" and set(self.dashboard.groups_in_order()) <= {self.group}:
            return None
        return super().check_action(action, parameters)

    def aim(self, what: str) -> Aim:
        """The group with the partition or the member under the cursor, if the focus is on them."""
        groups = [self.group]
        if what in ("reset", "delete_offsets") and self.partitions.has_focus_within:
            row = self.partitions.cursor_partition
            if row is None:
                return Aim(groups)
            name = f"{row.topic} {row.partition}"
            return Aim(gone=name) if self.partitions.table.gone == GONE else Aim(groups, row.topic, row.partition)
        if what == "remove" and self.members.has_focus_within:
            item = self.members.table.cursor_row
            if item is None:
                return Aim(groups)
            member = item.member
            if self.members.table.gone == GONE:
                return Aim(gone=item.name)
            return Aim(groups, member_id=member.consumer_id, instance=member.group_instance_id)
        return Aim(groups)
