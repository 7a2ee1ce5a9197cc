"""The screen of topics: all of them, the partitions of one, and the groups that read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.worker import Worker

from kgctl.client.net.errors import KgctlError
from kgctl.model.watched_topics import TopicReader, TopicsSnapshot, TopicStorage, WatchedTopic, WatchedTopicPartition
from kgctl.tui import cells, command_line
from kgctl.tui.feed.topics import Storage, Topics
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.looks import look
from kgctl.tui.widgets.frame.shelf import Shelf
from kgctl.tui.widgets.frame.table_panel import TablePanel
from kgctl.tui.widgets.table.rows import Rows
from kgctl.tui.widgets.text.plain_line import PlainLine
from kgctl.tui.widgets.topics.columns import (
    most_lag,
    partition_columns,
    partition_look,
    reader_columns,
    topic_columns,
    topic_look,
)
from kgctl.watch.cluster import ClusterView
from kgctl.watch.topics import TopicsWatch

# Sizes and ages change slowly, and brokers look into every log to answer.
STORAGE_EVERY_S = 15.0
# A frame, a header and the line of a filter; the fewest lines of both.
AROUND_ROWS, LEAST_TOPICS, LEAST_BELOW = 4, 7, 9
NO_PARTITIONS = "No partitions."


class TopicsScreen(PolledScreen[TopicsSnapshot]):
    """`topic`: the topic under the cursor at the start."""

    DEFAULT_CSS = """
    TopicsScreen #topics { height: 1fr; min-height: 7; }
    TopicsScreen #below { height: 1fr; }
    TopicsScreen #below #partitions { width: 2fr; }
    TopicsScreen #topics-note { color: $text-muted; display: none; }
    TopicsScreen #topics-note.-visible { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "internal", "Internal", tooltip="Show or hide internal topics"),
        Binding("escape", "app.pop_screen", "Back"),
    ]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("enter", "open"), ("1-3", "zoom"), ("tab", "next"))

    def __init__(self, topic: str | None = None) -> None:
        super().__init__("Topics")
        self.watched = TopicsWatch()
        self.shows_internal = False
        self._wanted = topic
        self._storage_at_s: float | None = None
        self._reading: Worker[None] | None = None
        self.note = PlainLine()
        self.note.id = "topics-note"
        self.topics: TablePanel[WatchedTopic] = TablePanel(
            "Topics",
            topic_columns(),
            key=lambda row: row.topic,
            fields=[
                Field("group", lambda row: row.readers),
                Field("verdict", lambda row: (row.health.value.replace(" ", "-"),) if row.health else ()),
                Field("records", number=lambda row: row.records),
                Field("in", number=lambda row: row.rate_in),
            ],
            look=topic_look,
            empty="No topics.",
            number=1,
            id="topics",
        )
        self.partitions: TablePanel[WatchedTopicPartition] = TablePanel(
            "Partitions",
            partition_columns(),
            key=lambda row: f"{row.topic}-{row.partition}",
            name=lambda row: " ".join([str(row.partition), *(one.group for one in row.readers)]),
            fields=[Field("lag", number=most_lag)],
            look=partition_look,
            empty=NO_PARTITIONS,
            number=2,
            least=(60, 4),
            id="partitions",
        )
        self.readers: TablePanel[TopicReader] = TablePanel(
            "Read by",
            reader_columns(),
            key=lambda row: row.group,
            look=lambda row: look(row.health),
            empty="No group reads this topic.",
            number=3,
            least=(44, 4),
            id="readers",
        )

    def contents(self) -> ComposeResult:
        yield self.topics
        with Shelf(id="below"):
            yield self.partitions
            yield self.readers
        yield self.note

    def on_mount(self) -> None:
        self.topics.table.sort_by("topic")

    def focus_first(self) -> None:
        self.topics.table.focus()

    @property
    def current(self) -> WatchedTopic | None:
        """The topic under the cursor."""
        return self.topics.table.cursor_row

    def copied_command(self, row: Any) -> str:
        cluster = self.dashboard.feed.cluster
        if isinstance(row, TopicReader):
            return command_line.showing(cluster, "groups", "describe", row.group)
        return command_line.showing(cluster, "topics", "describe", row.topic)

    # ---- data

    async def ask(self) -> TopicsSnapshot:
        return await self.dashboard.feed.read(Topics())

    def answered(self, answer: TopicsSnapshot) -> None:
        self.watched.add(answer)
        if self.dashboard.cluster is not None:
            self.watched.add_groups(self.dashboard.cluster)
        self._show()
        self._read_storage()

    def cluster_answered(self, view: ClusterView) -> None:
        if self.watched.snapshot is not None:
            self.watched.add_groups(view)
            self._show()

    def _read_storage(self) -> None:
        """Ask for sizes and ages if they are not new, unless an answer is still awaited."""
        now_s, last_s = self.dashboard.now_s(), self._storage_at_s
        is_due = self.dashboard.replay is not None or last_s is None or abs(now_s - last_s) >= STORAGE_EVERY_S
        if is_due and (self._reading is None or self._reading.is_finished):
            self._storage_at_s = now_s
            self._reading = self.run_beside(self._storage, self._show)

    async def _storage(self) -> None:
        try:
            self.watched.add_storage(await self.dashboard.feed.read(Storage()))
        except KgctlError as error:
            self.watched.add_storage(TopicStorage(0, missing={"sizes, ages and retention": str(error)}))

    # ---- contents

    def _show(self) -> None:
        rows = self.watched.topics()
        shown = rows if self.shows_internal else [row for row in rows if not row.internal]
        internal = sum(row.internal for row in rows)
        part = f"internal {internal:,}" + (" (i hides)" if self.shows_internal else " hidden (i)")
        self.topics.show(shown, total=len(rows), parts=[part] if internal else ())
        if self._wanted is not None and self.topics.table.put_cursor(self._wanted):
            self._wanted = None
        self._show_topic()
        missing = "; ".join(f"no {kind}: {reason}" for kind, reason in self.watched.storage.missing.items())
        self.note.show(cells.name(missing))
        self.note.set_class(bool(missing), "-visible")
        self._fit()

    def _fit(self) -> None:
        """Give the panels below the lines that the topics do not need, or the topics those that the panels do not need."""
        rows = self.topics.table.rows
        height = self.query_one("#contents").size.height - self.note.outer_size.height * self.note.display
        if self.zoom.panel is not None or height <= 0:
            self.topics.styles.clear_rule("height")
            return
        below = max(LEAST_BELOW, max((one.partitions for one in rows), default=0) + AROUND_ROWS)
        self.topics.styles.height = max(LEAST_TOPICS, min(len(rows) + AROUND_ROWS, max(height // 2, height - below)))

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._fit)

    def action_zoom(self, number: int) -> None:
        super().action_zoom(number)
        self._fit()

    def _show_topic(self) -> None:
        """The panels about the topic under the cursor."""
        row = self.current
        name = row.topic if row else ""
        of = [f"of {cells.name(name)}"] if row else []
        self.partitions.explain_empty(cells.name(row.error.message) if row and row.error else NO_PARTITIONS)
        self.partitions.show(self.watched.partitions(name), parts=of)
        self.readers.show(self.watched.readers(name), note="~ estimated")

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows is self.topics.table and self.partitions.is_mounted:
            self._show_topic()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if event.rows is self.topics.table:
            self.partitions.table.focus()
        elif event.rows is self.partitions.table:
            row: WatchedTopicPartition = event.row
            behind = next((one.group for one in row.readers if one.committed is not None), None)
            self.dashboard.open_records(row.topic, row.partition, behind)
        elif event.rows is self.readers.table:
            self.dashboard.open_group(event.row.group)

    def action_internal(self) -> None:
        self.shows_internal = not self.shows_internal
        self._show()
